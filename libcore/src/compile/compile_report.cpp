// SPDX-License-Identifier: Apache-2.0
// How each partition was compiled, for people and for --assert. A backend's report is untrusted: a
// number that is missing or not a number is shown as "-" and adds nothing. O(partitions).
#include "npu/compile/compile_report.hpp"

#include <array>
#include <cmath>
#include <cstdio>
#include <set>
#include <utility>

#include "support/json_fields.hpp"
#include "support/text.hpp"

namespace npu {
namespace {

/// A whole number without a decimal point, as JSON writes it.
std::string count_text(double value) {
  constexpr double kExactIntegers = 9007199254740992;  // 2^53
  if (std::abs(value) <= kExactIntegers && value == std::nearbyint(value)) {
    return std::to_string(static_cast<std::int64_t>(value));
  }
  return Json(value).dump();
}

template <typename Text>
std::string cell(const std::optional<double>& value, const Text& text) {
  return value ? text(*value) : "-";
}

std::optional<double> int8_share_of(const CompileReport& report) {
  Int8Share share;
  for (const CompiledRow& row : report.partitions) share.add(row.numbers);
  return share.value();
}

std::string computes_in(const Json& report) {
  const std::string* dtype = member_text(report, "computes_in");
  return dtype == nullptr ? std::string() : printable_text(*dtype);
}

/// ", computed in float32", "bfloat16" or both: what backends chose where they had the choice.
std::string arithmetic_text(const CompileReport& report) {
  std::string text;
  std::set<std::string> named;
  for (const CompiledRow& row : report.partitions) {
    if (row.computes_in.empty() || !named.insert(row.computes_in).second) continue;
    text += (text.empty() ? ", computed in " : " and ") + row.computes_in;
  }
  return text;
}

}  // namespace

CompileNumbers read_compile_numbers(const Json& report) {
  return {.nodes = member_double(report, "nodes"),
          .kernels = member_double(report, "kernels"),
          .reorders = member_double(report, "reorders"),
          .predicted_kernels = member_double(report, "predicted_kernels"),
          .flops = member_double(report, "flops"),
          .weight_bytes = member_double(report, "weight_bytes"),
          .arena_bytes = member_double(report, "arena_bytes"),
          .macs = member_double(report, "macs"),
          .int8_macs = member_double(report, "int8_macs")};
}

std::vector<GroupSplit> read_splits(const Json& report) {
  std::vector<GroupSplit> splits;
  const Json* list = find_member(report, "splits");
  if (list == nullptr || !list->is_array()) return splits;
  for (const Json& row : *list) {
    if (!row.is_object()) continue;
    const auto text = [&](const char* key) {
      const Json* value = find_member(row, key);
      if (value == nullptr || !value->is_string()) return std::string("-");
      return printable_text(value->get_ref<const std::string&>());
    };
    splits.push_back({text("pattern"), text("node"), text("reason")});
  }
  return splits;
}

std::vector<std::string> number_cells(const CompileNumbers& numbers) {
  return {cell(numbers.nodes, count_text),        cell(numbers.kernels, count_text),
          cell(numbers.reorders, count_text),     cell(numbers.flops, flops_text),
          cell(numbers.weight_bytes, bytes_text), cell(numbers.arena_bytes, bytes_text)};
}

void Int8Share::add(const CompileNumbers& numbers) {
  if (!numbers.macs || !numbers.int8_macs) return;
  macs_ += *numbers.macs;
  int8_macs_ += *numbers.int8_macs;
}

std::optional<double> Int8Share::value() const {
  if (!(macs_ > 0)) return std::nullopt;
  return int8_macs_ / macs_;
}

CompileReport compile_report(const CompiledModel& model, const FoldedConstants& folded) {
  CompileReport report;
  for (const CompiledPartition& partition : model.partitions) {
    report.partitions.push_back({.device = partition.device,
                                 .backend = partition.backend,
                                 .numbers = read_compile_numbers(*partition.report),
                                 .splits = read_splits(*partition.report),
                                 .computes_in = computes_in(*partition.report),
                                 .blob_bytes = partition.blob.size,
                                 .compile_ms = partition.compile_ms,
                                 .cache_hit = partition.cache_hit});
  }
  report.refusals = model.refusals;
  report.cache_hits = model.cache_hits;
  report.cache_misses = model.cache_misses;
  report.programs_built = model.programs_built;
  report.programs_found = model.programs_found;
  report.compile_ms = model.compile_ms + folded.ms;
  report.folded = folded;
  if (!folded.device.empty()) ++(folded.cache_hit ? report.cache_hits : report.cache_misses);
  return report;
}

std::string format_compile_report(const CompileReport& report) {
  std::vector<std::vector<std::string>> rows{{">partition", "device", "backend", ">nodes",
                                              ">kernels", ">reorders", ">flops", ">weights",
                                              ">arena", ">blob", ">compile ms", "cache"}};
  for (std::size_t i = 0; i < report.partitions.size(); ++i) {
    const CompiledRow& row = report.partitions[i];
    std::vector<std::string> cells{std::to_string(i), row.device, row.backend};
    for (std::string& number : number_cells(row.numbers)) cells.push_back(std::move(number));
    cells.push_back(bytes_text(static_cast<double>(row.blob_bytes)));
    cells.push_back(fixed_text(row.compile_ms, 1));
    cells.emplace_back(row.cache_hit ? "hit" : "miss");
    rows.push_back(std::move(cells));
  }
  std::string text = table_text(rows);
  for (const Refusal& refusal : report.refusals) {
    text += std::to_string(refusal.nodes) + " nodes from '" + refusal.first_node +
            "' on went from " + refusal.device + " to " + refusal.to + ": " + refusal.reason + "\n";
  }
  for (std::size_t i = 0; i < report.partitions.size(); ++i) {
    for (const GroupSplit& split : report.partitions[i].splits) {
      text += "partition " + std::to_string(i) + ": fusion group '" + split.pattern +
              "' is split at '" + split.node + "': " + split.reason + "\n";
    }
  }
  std::vector<std::vector<std::string>> totals{{"total", ">"}};
  totals.push_back({"partitions", std::to_string(report.partitions.size())});
  if (report.folded.nodes > 0) {
    totals.push_back({"folded nodes", std::to_string(report.folded.nodes)});
    totals.push_back({"folded constants", bytes_text(static_cast<double>(report.folded.bytes))});
  }
  totals.push_back({"compile ms", fixed_text(report.compile_ms, 1)});
  totals.push_back({"cache", report.cache_enabled
                                 ? std::to_string(report.cache_hits) + " hits, " +
                                       std::to_string(report.cache_misses) + " misses"
                                 : "off"});
  if (report.programs_built + report.programs_found > 0) {
    totals.push_back({"programs", std::to_string(report.programs_built) + " built, " +
                                      std::to_string(report.programs_found) + " found"});
  }
  totals.push_back({"precision", report.precision + arithmetic_text(report)});
  if (const auto share = int8_share_of(report)) {
    totals.push_back({"int8 multiply-adds", fixed_text(*share * 100, 1) + "%"});
  }
  if (report.worst_relative_error) {
    std::array<char, 32> number{};
    std::snprintf(number.data(), number.size(), "%.2e", *report.worst_relative_error);
    totals.push_back({"worst relative error", number.data()});
  }
  if (!report.memory.empty()) text += "\n" + format_memory_needs(report.memory);
  return text + "\n" + table_text(totals);
}

std::map<std::string, double> compile_metrics(const CompileReport& report) {
  std::map<std::string, double> metrics{
      {"partitions", static_cast<double>(report.partitions.size())},
      {"refused", static_cast<double>(report.refusals.size())},
      {"cache_hits", static_cast<double>(report.cache_hits)},
      {"cache_misses", static_cast<double>(report.cache_misses)},
      {"programs_built", static_cast<double>(report.programs_built)},
      {"programs_found", static_cast<double>(report.programs_found)},
      {"compile_ms", report.compile_ms},
      {"kernels", 0},
      {"reorders", 0},
      {"predicted_kernels", 0},
      {"splits", 0},
      {"flops", 0},
      {"weight_bytes", 0},
      {"arena_bytes", 0},
      {"folded_nodes", static_cast<double>(report.folded.nodes)},
      {"folded_bytes", static_cast<double>(report.folded.bytes)}};
  double blob_bytes = 0;
  for (const CompiledRow& row : report.partitions) {
    metrics["kernels"] += row.numbers.kernels.value_or(0);
    metrics["reorders"] += row.numbers.reorders.value_or(0);
    metrics["predicted_kernels"] += row.numbers.predicted_kernels.value_or(0);
    metrics["splits"] += static_cast<double>(row.splits.size());
    metrics["flops"] += row.numbers.flops.value_or(0);
    metrics["weight_bytes"] += row.numbers.weight_bytes.value_or(0);
    metrics["arena_bytes"] += row.numbers.arena_bytes.value_or(0);
    blob_bytes += static_cast<double>(row.blob_bytes);
  }
  metrics["blob_bytes"] = blob_bytes;
  metrics["int8_macs"] = int8_share_of(report).value_or(0);
  metrics["memory_bytes"] = static_cast<double>(needed_bytes(report.memory));
  if (report.worst_relative_error) metrics["worst_relative_error"] = *report.worst_relative_error;
  return metrics;
}

}  // namespace npu
