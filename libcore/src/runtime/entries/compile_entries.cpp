// SPDX-License-Identifier: Apache-2.0
// The operation behind npu-compile --buckets: binds a template to each choice of its sizes and
// compiles what comes out as any document; of a decoder, a choice of several tokens gives a second
// entry for the token loop, with one row of logits. Choices are compiled one after another, in the
// order of their sizes, so the bundle does not depend on how they were asked for; what they have in
// common is found when the bundle is written. The cost is that of the backends.
#include "runtime/entries/compile_entries.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "compile/join_entries.hpp"
#include "npu/compile/cache.hpp"
#include "npu/compile/memory_needs.hpp"
#include "npu/partition/metrics.hpp"
#include "runtime/entries/buckets.hpp"
#include "runtime/predicted_steps.hpp"
#include "runtime/prepare_compile.hpp"
#include "support/json_fields.hpp"
#include "support/text.hpp"

namespace npu {
namespace {

/// Adds what was found about an entry, with its name.
void add_about(const std::string& entry, const Diagnostics& from, Diagnostics& to) {
  for (const Diagnostic& found : from.entries()) {
    const std::string text = "bucket " + entry + ": " + found.text;
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

/// A choice of sizes on its way to a bundle.
struct PreparedEntry {
  std::string name;
  SizeBindings bound;
  bool has_last_row = false;
  Graph graph = {};
  Diagnostics found = {};
  PreparedCompile compile = {};
};

/// The graphs of all choices, in order; behind that of all rows the one of the last row.
std::vector<PreparedEntry> entry_graphs(const Template& model,
                                        const std::vector<SizeBindings>& buckets) {
  std::vector<PreparedEntry> entries;
  for (const SizeBindings& bucket : buckets) {
    PreparedEntry& entry = entries.emplace_back();
    entry.name = bucket_name(bucket);
    entry.bound = bucket;
    entry.graph = bucket_graph(model, bucket, entry.found);
    if (entry.found.has_errors()) break;
    PreparedEntry loop{.name = entry.name + " last", .bound = bucket, .has_last_row = true};
    if (auto graph = last_row_graph(model, bucket, loop.found)) {
      loop.graph = *std::move(graph);
      entries.push_back(std::move(loop));
    }
  }
  return entries;
}

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

/// The bytes of weights in all blobs, for each of those that the entry with most of them reads; by
/// blobs where a backend does not say how many bytes they are. To two places: entries also have
/// constants of their own, such as masks.
double copies_of_weights(const BundleContent& content) {
  std::set<const std::byte*> all;
  std::size_t most = 0;
  double stored = 0;
  double most_read = 0;
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
    most_read = std::max(most_read, read);
  }
  if (most == 0) return 1;
  if (!are_stated || most_read == 0) {
    return static_cast<double>(all.size()) / static_cast<double>(most);
  }
  return std::max(1.0, std::round(100 * stored / most_read) / 100);
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

}  // namespace

CompileEntriesResult compile_entries(const Template& model,
                                     const std::vector<SizeBindings>& buckets,
                                     const CompileModelOptions& options, Diagnostics& diagnostics) {
  CompileEntriesResult result;
  result.content.entries.clear();
  CompileCache cache(options.cache);
  std::vector<PreparedEntry> prepared = entry_graphs(model, buckets);
  for (PreparedEntry& entry : prepared) {
    if (!entry.found.has_errors()) {
      entry.compile = prepare_compile(entry.graph, options, cache, entry.found);
    }
    if (!entry.found.has_errors()) continue;
    add_about(entry.name, entry.found, diagnostics);
    return result;
  }
  std::vector<KnownPartitions> known = joined_partitions(prepared, cache);
  for (std::size_t i = 0; i < prepared.size(); ++i) {
    PreparedEntry& from = prepared[i];
    CompileModelResult compiled = finish_compile(from.graph, std::move(from.compile), options,
                                                 cache, std::move(known[i]), from.found);
    add_about(from.name, from.found, diagnostics);
    if (from.found.has_errors()) return result;
    const PlanMetrics metrics = plan_metrics(from.graph, compiled.model.plan, compiled.target);
    const PredictedSteps predicted(from.graph, compiled.model.plan, compiled.target);
    const double us = predicted.total_ms(metrics.predicted_us) * 1000;
    BundleContent::Entry& entry = compiled.content.entries.front();
    entry.name = from.name;
    entry.bound = from.bound;
    entry.predicted_us = us;
    entry.has_last_row = from.has_last_row;
    if (result.entries.empty()) {
      result.content = std::move(compiled.content);
    } else {
      result.content.entries.push_back(std::move(entry));
    }
    add_to_total(compiled.report, result.total);
    result.entries.push_back({from.name, us, std::move(compiled.report)});
  }
  result.content.template_document = template_text(model);
  result.weights_copies = copies_of_weights(result.content);
  count_blobs_once(result.content, result.total);
  return result;
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
