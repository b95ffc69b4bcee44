// SPDX-License-Identifier: Apache-2.0
// What was found at the borders of fusion groups, as JSON and as a table.
#include <cmath>

#include "npu/runtime/group_comparison.hpp"
#include "runtime/report_numbers.hpp"
#include "support/text.hpp"

namespace npu {
namespace {

const char* error_name(GroupComparison::Error error) {
  switch (error) {
    case GroupComparison::Error::kNone:
      return "none";
    case GroupComparison::Error::kInherited:
      return "inherited";
    case GroupComparison::Error::kOwn:
      return "own";
  }
  return "";
}

Json result_json(const ResultComparison& result) {
  Json json = Json::object();
  json["tensor"] = result.tensor;
  json["ok"] = result.comparison.ok;
  if (!result.comparison.mismatch.empty()) {
    json["mismatch"] = result.comparison.mismatch;
    return json;
  }
  json["max_abs"] = json_safe(result.comparison.max_abs);
  json["max_rel"] = json_safe(result.comparison.max_rel);
  json["snr_db"] = json_safe(result.snr_db);
  json["out_of_tolerance"] = result.comparison.out_of_tolerance;
  json["elements"] = result.comparison.elements;
  return json;
}

Json row_json(const GroupComparison& row) {
  Json json = Json::object();
  json["nodes"] = row.nodes;
  json["device"] = row.device;
  if (!row.kernel.empty()) json["kernel"] = row.kernel;
  if (row.in_run) json["in_run"] = result_json(*row.in_run);
  if (row.isolated) json["isolated"] = result_json(*row.isolated);
  json["error"] = error_name(row.error);
  return json;
}

std::string db_text(double value) {
  if (std::isnan(value)) return "NaN";
  return std::isinf(value) ? (value > 0 ? "exact" : "-inf") : fixed_text(value, 1);
}

/// "conv2d .. relu" for the nodes of a group.
std::string nodes_text(const std::vector<std::string>& nodes) {
  return nodes.size() == 1 ? nodes.front() : nodes.front() + " .. " + nodes.back();
}

}  // namespace

bool GroupReport::ok() const noexcept {
  for (const GroupComparison& row : rows) {
    // What is inherited without a fault comes from steps of quantized numbers.
    if (row.error == GroupComparison::Error::kOwn) return false;
  }
  return true;
}

Json group_report_json(const GroupReport& report) {
  Json json = Json::object();
  json["count"] = report.groups;
  json["runs"] = report.runs;
  Json rows = Json::array();
  for (const GroupComparison& row : report.rows) rows.push_back(row_json(row));
  json["list"] = std::move(rows);
  json["first"] = report.first ? Json(report.rows[*report.first].nodes) : Json(nullptr);
  for (const auto& [device, sources] : report.sources) {
    json["results"][device] = {{"tapped", sources.tapped}, {"compiled", sources.compiled}};
  }
  if (!report.reduced_to.empty()) {
    json["reduced_to"] = report.reduced_to;
    json["files"] = report.files;
  }
  return json;
}

std::string format_group_report(const GroupReport& report) {
  std::vector<std::vector<std::string>> rows{
      {"group", "device", "kernel", ">max abs", ">max rel", ">SNR dB", ">alone", "error"}};
  for (const GroupComparison& row : report.rows) {
    const ResultComparison* shown = row.in_run     ? &*row.in_run
                                    : row.isolated ? &*row.isolated
                                                   : nullptr;
    if (shown == nullptr) continue;
    rows.push_back({nodes_text(row.nodes), row.device, row.kernel,
                    scientific_text(shown->comparison.max_abs),
                    scientific_text(shown->comparison.max_rel), db_text(shown->snr_db),
                    row.isolated ? scientific_text(row.isolated->comparison.max_abs) : "",
                    error_name(row.error)});
  }
  std::string text = table_text(rows);
  text += std::to_string(report.groups) + " groups, " + std::to_string(report.runs) + " runs\n";
  for (const auto& [device, sources] : report.sources) {
    text += "results on " + device + ": " + std::to_string(sources.tapped) +
            " out of the programs that run, " + std::to_string(sources.compiled) +
            " compiled as outputs\n";
  }
  if (report.first) {
    text += "first to differ: " + nodes_text(report.rows[*report.first].nodes) + "\n";
  } else {
    text += "all within tolerance\n";
  }
  if (!report.reduced_to.empty()) {
    text += "reduced to " + nodes_text(report.reduced_to) + ": " + report.files.front() + "\n";
  }
  return text;
}

std::string first_fault_text(const GroupReport& report) {
  const GroupComparison& row = report.rows[*report.first];
  const ResultComparison& found = row.isolated && !row.isolated->comparison.ok ? *row.isolated
                                  : row.in_run                                 ? *row.in_run
                                                                               : *row.isolated;
  std::string text = "the error begins in group '" + nodes_text(row.nodes) + "' on " + row.device;
  if (!row.kernel.empty()) text += " (" + row.kernel + ")";
  text += ", tensor '" + found.tensor + "': ";
  if (!found.comparison.mismatch.empty()) return text + found.comparison.mismatch;
  return text + std::to_string(found.comparison.out_of_tolerance) + " of " +
         std::to_string(found.comparison.elements) + " elements are out of tolerance";
}

}  // namespace npu
