// SPDX-License-Identifier: Apache-2.0
// Formats the report of npu-run as JSON and as tables for people. The report has full precision;
// both forms round milliseconds to 0.1 us. NaN and infinities, which JSON lacks, become strings.
#include "npu/runtime/run_report.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "device/cpu_family.hpp"
#include "runtime/report_metrics.hpp"
#include "runtime/report_numbers.hpp"
#include "support/text.hpp"

namespace npu {
namespace {

double rounded_ms(double ms) { return std::round(ms * 10000) / 10000; }

std::string ms_text(double ms) { return fixed_text(rounded_ms(ms), 3); }

/// Transfers that copied something: their number, tensors and bytes.
struct TransferTotals {
  std::int64_t transfers = 0;
  std::int64_t tensors = 0;
  std::int64_t bytes = 0;
  std::int64_t copied_bytes = 0;
};

TransferTotals transfer_totals(const RunReport& report) {
  TransferTotals totals;
  for (const RunStep& step : report.steps) {
    if (step.kind != StepRecord::Kind::kTransfer || step.tensors == 0) continue;
    ++totals.transfers;
    totals.tensors += step.tensors;
    totals.bytes += step.bytes;
    totals.copied_bytes += step.copied_bytes;
  }
  return totals;
}

Json step_json(const RunStep& step) {
  switch (step.kind) {
    case StepRecord::Kind::kPartition:
      return {{"kind", "partition"},       {"id", step.id},
              {"device", step.device},     {"nodes", step.nodes},
              {"ms", rounded_ms(step.ms)}, {"predicted_ms", rounded_ms(step.predicted_ms)}};
    case StepRecord::Kind::kTransfer:
      return {{"kind", "transfer"},
              {"id", step.id},
              {"device", step.device},
              {"from", step.from},
              {"to", step.to},
              {"tensors", step.tensors},
              {"listed_tensors", step.listed_tensors},
              {"bytes", step.bytes},
              {"copied_bytes", step.copied_bytes},
              {"path", step.path},
              {"ms", rounded_ms(step.ms)},
              {"predicted_ms", rounded_ms(step.predicted_ms)}};
    case StepRecord::Kind::kInput:
    case StepRecord::Kind::kOutput:
      break;
  }
  return {{"kind", step.kind == StepRecord::Kind::kInput ? "inputs" : "outputs"},
          {"device", step.device},
          {"tensors", step.tensors},
          {"bytes", step.bytes},
          {"copied_bytes", step.copied_bytes},
          {"path", step.path},
          {"ms", rounded_ms(step.ms)}};
}

const char* tap_text(TapSummary::From from) {
  switch (from) {
    case TapSummary::From::kProgram:
      return "tapped";
    case TapSummary::From::kBoundary:
      return "boundary";
    case TapSummary::From::kOutput:
      break;
  }
  return "compiled as an output";
}

Json output_comparison_json(const OutputComparison& output) {
  const Comparison& comparison = output.comparison;
  Json json = {{"name", output.name}, {"ok", comparison.ok}};
  if (!comparison.mismatch.empty()) {
    json["mismatch"] = comparison.mismatch;
    return json;
  }
  json["max_abs"] = json_safe(comparison.max_abs);
  json["max_rel"] = json_safe(comparison.max_rel);
  json["rtol"] = output.tolerance.rtol;
  json["atol"] = output.tolerance.atol;
  json["elements"] = comparison.elements;
  json["out_of_tolerance"] = comparison.out_of_tolerance;
  if (comparison.worst_index >= 0) {
    json["worst"] = {{"index", comparison.worst_index},
                     {"actual", json_safe(comparison.worst_actual)},
                     {"expected", json_safe(comparison.worst_expected)}};
  }
  return json;
}

Json comparison_json(const ComparisonReport& comparison) {
  Json list = Json::array();
  for (const OutputComparison& output : comparison.outputs) {
    list.push_back(output_comparison_json(output));
  }
  Json json = {{"ok", comparison.ok()}, {"outputs", std::move(list)}};
  if (comparison.device.empty()) return json;
  json["device"] = comparison.device;
  json["ms"] = rounded_ms(comparison.ms);
  return json;
}

/// What a step does with each state, and what that costs.
void add_states(const RunReport& report, Json& json) {
  std::int64_t bytes = 0;
  std::int64_t copied = 0;
  std::int64_t moved = 0;
  for (const StateUse& state : report.states) {
    json["states"].push_back({{"name", state.name},
                              {"path", state_path_name(state.path)},
                              {"bytes", state.bytes},
                              {"device", state.device}});
    bytes += state.bytes;
    copied += state.copied_bytes;
    moved += state.transfer_bytes;
  }
  json["state_bytes"] = bytes;
  json["state_copied_bytes"] = copied;
  json["state_transfer_bytes"] = moved;
  json["position"] = report.position;
}

Json bench_json(const RunReport& report) {
  const BenchSummary& bench = *report.bench;
  return {{"runs", bench.runs},
          {"median_ms", rounded_ms(bench.median_ms)},
          {"min_ms", rounded_ms(bench.min_ms)},
          {"p90_ms", rounded_ms(bench.p90_ms)},
          {"p99_ms", rounded_ms(bench.p99_ms)},
          {"runs_per_second", std::round(bench.runs_per_second * 100) / 100},
          {"first_ms", rounded_ms(report.first_ms)},
          {"load_ms", rounded_ms(report.load_ms)},
          {"peak_rss_bytes", bench.peak_rss_bytes}};
}

}  // namespace

bool ComparisonReport::ok() const {
  return std::all_of(outputs.begin(), outputs.end(),
                     [](const OutputComparison& output) { return output.comparison.ok; });
}

std::string mismatch_text(const OutputComparison& output) {
  const Comparison& comparison = output.comparison;
  if (!comparison.mismatch.empty()) return "output '" + output.name + "' " + comparison.mismatch;
  return "output '" + output.name + "': " + std::to_string(comparison.out_of_tolerance) + " of " +
         std::to_string(comparison.elements) +
         " elements are out of tolerance; the worst is element " +
         std::to_string(comparison.worst_index) + ": " + value_text(comparison.worst_actual) +
         ", expected " + value_text(comparison.worst_expected);
}

Json run_report_json(const RunReport& report) {
  Json json;
  json["model"] = report.model;
  json["target"] = report.target;
  json["precision"] = report.precision;
  if (report.compile) {
    json["compile"] = {{"ms", rounded_ms(report.compile->ms)},
                       {"cache", report.compile->cache_enabled},
                       {"cache_hits", report.compile->cache_hits},
                       {"cache_misses", report.compile->cache_misses}};
  }
  if (report.bundle) {
    json["bundle"] = {{"bytes", report.bundle->bytes},
                      {"open_ms", rounded_ms(report.bundle->open_ms)}};
    if (!report.bundle->cpu_family.empty()) {
      json["bundle"]["cpu_family"] = report.bundle->cpu_family;
    }
  }
  if (report.entry) {
    json["entry"] = report.entry->name;
    json["valid"] = report.entry->valid;
    json["padded_share"] = std::round(report.entry->padded_share * 1e6) / 1e6;
  }
  json["outputs"] = Json::array();
  for (const OutputSummary& output : report.outputs) {
    json["outputs"].push_back(
        {{"name", output.name}, {"shape", output.shape}, {"dtype", dtype_name(output.dtype)}});
  }
  for (const TapSummary& tap : report.taps) {
    json["taps"].push_back({{"name", tap.name}, {"from", tap_text(tap.from)}});
  }
  json["placement"] = Json::array();
  for (const DevicePlacement& row : report.placement) {
    json["placement"].push_back({{"device", row.device},
                                 {"backend", row.backend},
                                 {"nodes", row.nodes},
                                 {"partitions", row.partitions},
                                 {"ms", rounded_ms(row.ms)}});
  }
  json["left_device"] = left_device(report.coverage);
  json["steps"] = Json::array();
  for (const RunStep& step : report.steps) json["steps"].push_back(step_json(step));
  const TransferTotals totals = transfer_totals(report);
  json["transfers"] = totals.transfers;
  json["transferred_tensors"] = totals.tensors;
  json["transfer_bytes"] = totals.bytes;
  json["copied_bytes"] = totals.copied_bytes;
  json["overlap"] = report.overlap;
  json["weights"] = {{"tensors", report.weight_tensors}, {"bytes", report.weight_bytes}};
  if (!report.memory.empty()) {
    json["memory"] = memory_needs_json(report.memory);
    json["memory_bytes"] = needed_bytes(report.memory);
  }
  json["predicted_ms"] = rounded_ms(report.predicted_ms);
  json["measured_ms"] = rounded_ms(report.measured_ms);
  json["first_ms"] = rounded_ms(report.first_ms);
  json["load_ms"] = rounded_ms(report.load_ms);
  if (report.int8_macs) json["int8_macs"] = std::round(*report.int8_macs * 1e6) / 1e6;
  json["backends"] = report.backends;
  if (report.bench) json["bench"] = bench_json(report);
  if (report.in_flight) {
    json["in_flight"] = {{"runs", report.in_flight->runs},
                         {"same_outputs", report.in_flight->is_same}};
  }
  if (!report.states.empty()) add_states(report, json);
  if (report.is_cut_short || report.is_late) json["deadline_over"] = true;
  if (report.recovered != 0) json["recovered"] = report.recovered;
  if (report.expect) json["expect"] = comparison_json(*report.expect);
  if (report.worst_relative_error) {
    json["worst_relative_error"] = json_safe(*report.worst_relative_error);
  }
  if (report.verify) json["verify"] = comparison_json(*report.verify);
  if (report.groups) json["verify"]["groups"] = group_report_json(*report.groups);
  return json;
}

std::map<std::string, double> run_metrics(const RunReport& report) {
  return report_metrics(run_report_json(report));
}

namespace {

using Rows = std::vector<std::vector<std::string>>;

std::string comparison_table(const ComparisonReport& comparison) {
  Rows rows{{"output", "result", ">max abs", ">max rel", ">outside"}};
  for (const OutputComparison& output : comparison.outputs) {
    const Comparison& found = output.comparison;
    if (!found.mismatch.empty()) {
      rows.push_back({output.name, found.mismatch, "", "", ""});
    } else {
      rows.push_back(
          {output.name, found.ok ? "ok" : "differs", scientific_text(found.max_abs),
           scientific_text(found.max_rel),
           std::to_string(found.out_of_tolerance) + " of " + std::to_string(found.elements)});
    }
  }
  return table_text(rows);
}

std::string states_table(const RunReport& report) {
  Rows rows{{"state", "device", ">bytes", "path"}};
  for (const StateUse& state : report.states) {
    rows.push_back({printable_text(state.name), state.device, std::to_string(state.bytes),
                    state_path_name(state.path)});
  }
  return table_text(rows);
}

std::string placement_table(const RunReport& report) {
  Rows rows{{"device", "backend", ">nodes", ">partitions", ">ms"}};
  for (const DevicePlacement& row : report.placement) {
    rows.push_back({row.device, row.backend, std::to_string(row.nodes),
                    std::to_string(row.partitions), ms_text(row.ms)});
  }
  return table_text(rows);
}

std::string steps_table(const RunReport& report) {
  Rows rows{{"step", "device", ">nodes", ">tensors", ">bytes", ">ms", ">predicted ms", "path"}};
  for (const RunStep& step : report.steps) {
    const bool is_partition = step.kind == StepRecord::Kind::kPartition;
    const bool is_transfer = step.kind == StepRecord::Kind::kTransfer;
    const std::string name =
        is_partition  ? "partition " + std::to_string(step.id)
        : is_transfer ? "transfer " + std::to_string(step.from) + " -> " + std::to_string(step.to)
        : step.kind == StepRecord::Kind::kInput ? "inputs"
                                                : "outputs";
    rows.push_back({name, step.device, is_partition ? std::to_string(step.nodes) : "",
                    is_partition ? "" : std::to_string(step.tensors),
                    is_partition ? "" : bytes_text(static_cast<double>(step.bytes)),
                    ms_text(step.ms), is_partition || is_transfer ? ms_text(step.predicted_ms) : "",
                    step.path});
  }
  return table_text(rows);
}

/// A line if a bundle was compiled on a CPU of another family than this one.
std::string family_line(const RunReport& report) {
  const std::string here(cpu_family());
  if (!report.bundle || report.bundle->cpu_family.empty() || report.bundle->cpu_family == here) {
    return "";
  }
  return "the bundle's kernels were chosen for CPUs of the family " + report.bundle->cpu_family +
         ", this one is of " + here + ": others might be faster\n\n";
}

/// What ran of a bundle with a template, and how much of it was padding.
std::string entry_line(const RunReport& report) {
  if (!report.entry) return "";
  std::string valid;
  for (const auto& [symbol, value] : report.entry->valid) {
    valid += (valid.empty() ? "" : ", ") + printable_text(symbol) + "=" + std::to_string(value);
  }
  return "entry " + printable_text(report.entry->name) + " for " + valid + ": " +
         fixed_text(report.entry->padded_share * 100, 1) + "% of its inputs are padding\n\n";
}

std::string taps_table(const RunReport& report) {
  Rows rows{{"tap", "from"}};
  for (const TapSummary& tap : report.taps) rows.push_back({tap.name, tap_text(tap.from)});
  return table_text(rows);
}

std::string totals_table(const RunReport& report) {
  const TransferTotals transferred = transfer_totals(report);
  Rows rows{{"total", ">"}};
  if (report.worst_relative_error) {
    rows.push_back({"worst relative error", scientific_text(*report.worst_relative_error)});
  }
  rows.push_back({"transfers", std::to_string(transferred.transfers)});
  rows.push_back({"transferred", bytes_text(static_cast<double>(transferred.bytes))});
  rows.push_back({"copied", bytes_text(static_cast<double>(transferred.copied_bytes))});
  rows.push_back({"weights", bytes_text(static_cast<double>(report.weight_bytes))});
  rows.push_back({"load ms", ms_text(report.load_ms)});
  if (report.int8_macs) {
    rows.push_back({"int8 multiply-adds", fixed_text(*report.int8_macs * 100, 1) + "%"});
  }
  rows.push_back({"first run ms", ms_text(report.first_ms)});
  rows.push_back({"measured ms", ms_text(report.measured_ms)});
  rows.push_back({"predicted ms", ms_text(report.predicted_ms)});
  if (report.bench) {
    rows.push_back({"median ms", ms_text(report.bench->median_ms)});
    rows.push_back({"min ms", ms_text(report.bench->min_ms)});
    rows.push_back({"p90 ms", ms_text(report.bench->p90_ms)});
    rows.push_back({"p99 ms", ms_text(report.bench->p99_ms)});
    rows.push_back({"runs per second", fixed_text(report.bench->runs_per_second, 2)});
    if (report.in_flight) rows.push_back({"in flight", std::to_string(report.in_flight->runs)});
    rows.push_back({"peak memory", bytes_text(static_cast<double>(report.bench->peak_rss_bytes))});
  }
  if (report.recovered != 0) rows.push_back({"recovered", std::to_string(report.recovered)});
  if (report.is_late) rows.push_back({"deadline", "over before the last run ended"});
  if (report.is_cut_short) {
    rows.push_back(
        {"timed runs within the deadline", std::to_string(report.bench ? report.bench->runs : 0)});
  }
  return table_text(rows);
}

}  // namespace

std::string format_run_report(const RunReport& report) {
  std::string text = entry_line(report) + placement_table(report) +
                     format_left_device(report.coverage) + "\n" + steps_table(report) + "\n" +
                     family_line(report);
  if (!report.memory.empty()) text += format_memory_needs(report.memory) + "\n";
  if (!report.taps.empty()) text += taps_table(report) + "\n";
  if (!report.states.empty()) text += states_table(report) + "\n";
  text += totals_table(report);
  if (report.expect) {
    text += "\nagainst the expected outputs\n" + comparison_table(*report.expect);
  }
  if (report.verify) {
    text += "\nagainst the whole graph on " + report.verify->device + " (" +
            ms_text(report.verify->ms) + " ms)\n" + comparison_table(*report.verify);
  }
  if (report.groups) {
    text += "\nfusion groups against " + report.verify->device + "\n" +
            format_group_report(*report.groups);
  }
  return text;
}

}  // namespace npu
