// SPDX-License-Identifier: Apache-2.0
// The operation behind npu-compile --buckets and --entry: binds each template to each choice of its
// sizes and compiles what comes out, as any document; of a decoder, a choice of several tokens
// gives a second entry for the token loop, with one row of logits. Entries are compiled one after
// another, in the order of documents and sizes, so the bundle does not depend on how sizes were
// asked for; what they have in common is found when the bundle is written, but for sizes of kernels
// that a backend measures, which go from each entry to those behind it. The cost is that of the
// backends.
#include "runtime/entries/compile_entries.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <span>
#include <utility>

#include "compile/join_entries.hpp"
#include "npu/compile/cache.hpp"
#include "npu/compile/memory_needs.hpp"
#include "npu/partition/metrics.hpp"
#include "runtime/entries/buckets.hpp"
#include "runtime/entries/shared_states.hpp"
#include "runtime/predicted_steps.hpp"
#include "runtime/prepare_compile.hpp"
#include "support/json_fields.hpp"
#include "support/text.hpp"

namespace npu {
namespace {

/// Adds what was found about an entry, with its name.
void add_about(const std::string& entry, const Diagnostics& from, Diagnostics& to) {
  for (const Diagnostic& found : from.entries()) {
    const std::string text = entry + ": " + found.text;
    switch (found.level) {
      case Level::kError:
        to.error(found.location, text);
        break;
      case Level::kWarning:
        to.warning(found.location, text);
        break;
      case Level::kNote:
        to.note(found.location, text);
        break;
    }
  }
}

/// A choice of sizes, or a graph, on its way to a bundle.
struct PreparedEntry {
  std::string name;
  std::size_t of = 0;  ///< its document
  SizeBindings bound = {};
  bool has_last_row = false;
  Graph graph = {};
  /// How messages call it.
  std::string told() const { return (bound.empty() ? "entry " : "bucket ") + name; }
  Diagnostics found = {};
  PreparedCompile compile = {};
};

/// What compiles together with other entries, by entry.
std::vector<KnownPartitions> joined_partitions(std::vector<PreparedEntry>& prepared,
                                               CompileCache& cache) {
  std::vector<EntryToJoin> entries;
  entries.reserve(prepared.size());
  for (const PreparedEntry& each : prepared) {
    entries.push_back({each.name, each.graph, each.compile.placed.plan, each.compile.weights});
  }
  PreparedCompile& first = prepared.front().compile;
  OpenDevices devices = first.folded.devices;
  std::vector<KnownPartitions> known =
      join_entries(entries, first.placed.target, first.options, &cache, devices);
  // One device for all.
  for (PreparedEntry& each : prepared) each.compile.folded.devices = devices;
  return known;
}

/// Tells the entries behind one what it has measured (npu-compile --tune): a kernel of several is
/// measured once, and has the same sizes in all of them. A device that was opened without that
/// opens again.
void pass_on_measured(const BundleContent::Entry& entry, std::span<PreparedEntry> later) {
  for (const BundleContent::PartitionPiece& piece : entry.partitions) {
    const Json* measured = member_object(*piece.entry.report, "tuned");
    if (measured == nullptr) continue;
    for (PreparedEntry& each : later) {
      Json& tuning = each.compile.options.backend_options["tuning"];
      tuning[piece.entry.fingerprint].update(*measured);
      each.compile.folded.devices.erase(piece.entry.device);
    }
  }
}

void add_to_total(const CompileReport& report, CompileReport& total) {
  total.partitions.insert(total.partitions.end(), report.partitions.begin(),
                          report.partitions.end());
  total.refusals.insert(total.refusals.end(), report.refusals.begin(), report.refusals.end());
  total.cache_enabled = report.cache_enabled;
  total.cache_hits += report.cache_hits;
  total.cache_misses += report.cache_misses;
  total.programs_built += report.programs_built;
  total.programs_found += report.programs_found;
  total.compile_ms += report.compile_ms;
  total.folded.nodes += report.folded.nodes;
  total.folded.tensors += report.folded.tensors;
  total.folded.bytes += report.folded.bytes;
  total.precision = report.precision;
  if (report.worst_relative_error) {
    total.worst_relative_error =
        std::max(total.worst_relative_error.value_or(0), *report.worst_relative_error);
  }
  if (needed_bytes(report.memory) >= needed_bytes(total.memory)) total.memory = report.memory;
}

double reported_bytes(const Json& report, const char* object, const char* key) {
  const Json* from = report.is_object() ? &report : nullptr;
  if (from != nullptr && object != nullptr) from = member_object(*from, object);
  return from == nullptr ? 0 : std::max(0.0, member_double(*from, key).value_or(0));
}

/// The bytes of weights in all blobs, for each of those that documents read, of each document by
/// the entry with most of them; by blobs where a backend does not say how many bytes they are. To
/// two places: entries also have constants of their own, such as masks.
double copies_of_weights(const BundleContent& content) {
  std::set<const std::byte*> all;
  std::size_t most = 0;
  double stored = 0;
  std::map<std::size_t, double> most_read;  // by document
  bool are_stated = true;
  for (const BundleContent::Entry& entry : content.entries) {
    std::set<const std::byte*> own;
    double read = 0;
    for (const auto& piece : entry.partitions) {
      if (!piece.entry.holds_weights) continue;
      own.insert(piece.blob.get());
      const double bytes = reported_bytes(*piece.entry.report, nullptr, "weight_bytes");
      read += bytes;
      if (!all.insert(piece.blob.get()).second) continue;
      const double in_blob = reported_bytes(*piece.entry.report, "memory", "weights_bytes");
      stored += in_blob;
      are_stated = are_stated && (in_blob > 0 || bytes == 0);
    }
    most = std::max(most, own.size());
    most_read[entry.of] = std::max(most_read[entry.of], read);
  }
  if (most == 0) return 1;
  double needed = 0;
  for (const auto& [document, bytes] : most_read) needed += bytes;
  if (!are_stated || needed == 0) {
    return static_cast<double>(all.size()) / static_cast<double>(most);
  }
  return std::max(1.0, std::round(10 * stored / needed) / 10);
}

/// Counts a blob that several partitions have with the first of them alone.
void count_blobs_once(const BundleContent& content, CompileReport& total) {
  std::set<const std::byte*> seen;
  std::size_t row = 0;
  for (const BundleContent::Entry& entry : content.entries) {
    for (const auto& piece : entry.partitions) {
      if (!seen.insert(piece.blob.get()).second) total.partitions[row].blob_bytes = 0;
      ++row;
    }
  }
}

std::string template_text(const Template& model) {
  Json document = model.document();
  // The bundle says where its weights are.
  if (Json* npu = find_member(document, "npu")) {
    npu->erase("weights_file");
    npu->erase("weights_map");
  }
  return document.dump();
}

/// All entries, with their graphs, in the order of the bundle; behind one of all rows of logits
/// that of the last row.
std::vector<PreparedEntry> entries_of(std::vector<DocumentToCompile>& documents,
                                      Diagnostics& diagnostics) {
  std::vector<PreparedEntry> entries;
  for (std::size_t d = 0; d < documents.size(); ++d) {
    DocumentToCompile& document = documents[d];
    if (!document.model) {
      PreparedEntry& entry = entries.emplace_back();
      entry.name = document.name;
      entry.of = d;
      entry.graph = std::move(document.graph);
      continue;
    }
    for (const SizeBindings& bucket : document.buckets) {
      PreparedEntry& entry = entries.emplace_back();
      const std::string sizes = bucket_name(bucket);
      entry.name = document.name.empty() ? sizes : document.name + ":" + sizes;
      entry.of = d;
      entry.bound = bucket;
      entry.graph = bucket_graph(*document.model, bucket, entry.found);
      if (entry.found.has_errors()) {
        add_about(entry.told(), entry.found, diagnostics);
        return entries;
      }
      PreparedEntry loop{
          .name = entry.name + " last", .of = d, .bound = bucket, .has_last_row = true};
      if (auto graph = last_row_graph(*document.model, bucket, loop.found)) {
        loop.graph = *std::move(graph);
        entries.push_back(std::move(loop));
      }
    }
  }
  if (documents.size() < 2) return entries;
  std::vector<EntryWithStates> sharing;
  for (const PreparedEntry& entry : entries) sharing.push_back({entry.name, entry.graph});
  check_shared_states(sharing, diagnostics);
  return entries;
}

/// A bundle has one target, that of the first entry.
void check_targets(const std::vector<PreparedEntry>& entries) {
  const auto target_of = [](const PreparedEntry& entry) {
    const Json* target = entry.graph.npu_member("target");
    return target == nullptr ? std::string() : target->dump();
  };
  const std::string first = target_of(entries.front());
  for (const PreparedEntry& entry : entries) {
    if (target_of(entry) == first) continue;
    throw Error(ErrorCode::kInvalidGraph,
                "is tagged for another target than the document of entry '" + entries.front().name +
                    "': tag both with the same --target",
                {.file = entry.graph.file});
  }
}

}  // namespace

CompileEntriesResult compile_entries(std::vector<DocumentToCompile> documents,
                                     const CompileModelOptions& options, Diagnostics& diagnostics) {
  CompileEntriesResult result;
  result.content.entries.clear();
  CompileCache cache(options.cache);
  std::vector<PreparedEntry> prepared = entries_of(documents, diagnostics);
  if (diagnostics.has_errors()) return result;
  PreparedBefore before;
  std::size_t of = 0;
  for (PreparedEntry& entry : prepared) {
    if (entry.of != of) before = {};
    of = entry.of;
    entry.compile = prepare_compile(entry.graph, options, cache, entry.found, before);
    before = {&entry.graph, &entry.compile};
    if (!entry.found.has_errors()) continue;
    add_about(entry.told(), entry.found, diagnostics);
    return result;
  }
  check_targets(prepared);
  std::vector<KnownPartitions> known = joined_partitions(prepared, cache);
  for (std::size_t i = 0; i < prepared.size(); ++i) {
    PreparedEntry& from = prepared[i];
    CompileModelResult compiled = finish_compile(from.graph, std::move(from.compile), options,
                                                 cache, std::move(known[i]), from.found);
    add_about(from.told(), from.found, diagnostics);
    if (from.found.has_errors()) return result;
    const PlanMetrics metrics = plan_metrics(from.graph, compiled.model.plan, compiled.target);
    const PredictedSteps predicted(from.graph, compiled.model.plan, compiled.target);
    const double us = predicted.total_ms(metrics.predicted_us) * 1000;
    BundleContent::Entry& entry = compiled.content.entries.front();
    entry.name = from.name;
    entry.of = from.of;
    entry.bound = from.bound;
    entry.predicted_us = us;
    entry.has_last_row = from.has_last_row;
    pass_on_measured(entry, std::span(prepared).subspan(i + 1));
    if (result.entries.empty()) {
      result.content = std::move(compiled.content);
    } else {
      result.content.entries.push_back(std::move(entry));
    }
    add_to_total(compiled.report, result.total);
    result.entries.push_back({from.name, us, std::move(compiled.report)});
  }
  result.content.documents.clear();
  for (const DocumentToCompile& document : documents) {
    result.content.documents.push_back(
        {document.name, document.model ? template_text(*document.model) : std::string()});
  }
  result.weights_copies = copies_of_weights(result.content);
  count_blobs_once(result.content, result.total);
  return result;
}

CompileEntriesResult compile_entries(const Template& model,
                                     const std::vector<SizeBindings>& buckets,
                                     const CompileModelOptions& options, Diagnostics& diagnostics) {
  std::vector<DocumentToCompile> documents(1);
  documents.front().model = model;
  documents.front().buckets = buckets;
  return compile_entries(std::move(documents), options, diagnostics);
}

std::string format_entries_report(const CompileEntriesResult& result) {
  std::vector<std::vector<std::string>> rows{{"entry", ">partitions", ">kernels", ">weights",
                                              ">blobs", ">predicted ms", ">compile ms",
                                              ">cache hits"}};
  const auto add = [&](const std::string& name, const CompileReport& report,
                       const std::string& predicted) {
    const auto metrics = compile_metrics(report);
    rows.push_back({name, std::to_string(report.partitions.size()),
                    fixed_text(metrics.at("kernels"), 0), bytes_text(metrics.at("weight_bytes")),
                    bytes_text(metrics.at("blob_bytes")), predicted,
                    fixed_text(report.compile_ms, 1), std::to_string(report.cache_hits)});
  };
  for (const CompiledEntry& entry : result.entries) {
    add(entry.name, entry.report, fixed_text(entry.predicted_us / 1000, 3));
  }
  add("total", result.total, "");
  std::string text = table_text(rows);
  text += "copies of weights in blobs: " + fixed_text(result.weights_copies, 2) + "\n";
  for (const CompiledEntry& entry : result.entries) {
    for (const Refusal& refusal : entry.report.refusals) {
      text += entry.name + ": " + std::to_string(refusal.nodes) + " nodes from '" +
              refusal.first_node + "' on went from " + refusal.device + " to " + refusal.to + ": " +
              refusal.reason + "\n";
    }
  }
  return text;
}

std::map<std::string, double> entries_metrics(const CompileEntriesResult& result) {
  auto metrics = compile_metrics(result.total);
  metrics["entries"] = static_cast<double>(result.entries.size());
  metrics["weights_copies"] = result.weights_copies;
  return metrics;
}

}  // namespace npu
