// SPDX-License-Identifier: Apache-2.0
// The kernels that a compiled model runs and the reasons for them, from the backends' reports.
// Reports are untrusted: a member that is missing or of another type is shown as "-".
#include "compile/kernel_report.hpp"

#include <vector>

#include "support/text.hpp"

namespace npu {
namespace {

std::string text_of(const Json& row, const char* key) {
  const Json* value = find_member(row, key);
  if (value == nullptr || !value->is_string()) return "-";
  return printable_text(value->get_ref<const std::string&>());
}

std::string number_text(const Json& row, const char* key) {
  const Json* value = find_member(row, key);
  return value == nullptr || !value->is_number() ? "-" : value->dump();
}

/// The kernel, with its implementation if the backend has several.
std::string kernel_of(const Json& step) {
  const std::string kernel = text_of(step, "kernel");
  const std::string implementation = text_of(step, "implementation");
  return implementation == "-" ? kernel : kernel + " (" + implementation + ")";
}

/// Whether another number of threads may give other bits.
std::string bits_of(const Json& step) {
  const Json* by_threads = find_member(step, "bits_by_threads");
  if (by_threads == nullptr || !by_threads->is_boolean()) return "-";
  return by_threads->get<bool>() ? "by threads" : "the same";
}

/// One cell for each rejected candidate.
std::vector<std::string> rejected(const Json& step) {
  std::vector<std::string> cells;
  const Json* why = find_member(step, "why");
  if (why == nullptr || !why->is_array()) return {"-"};
  for (const Json& each : *why) {
    if (!each.is_object()) continue;
    cells.push_back(text_of(each, "kernel") + ": " + text_of(each, "reason"));
  }
  if (cells.empty()) cells.emplace_back("-");
  return cells;
}

}  // namespace

std::string format_kernel_report(const CompiledModel& model) {
  std::vector<std::vector<std::string>> rows{
      {">partition", "node", "kind", "kernel", "bits", ">estimate", "not taken"}};
  for (std::size_t i = 0; i < model.partitions.size(); ++i) {
    const Json* steps = find_member(*model.partitions[i].report, "steps");
    if (steps == nullptr || !steps->is_array()) continue;
    for (const Json& step : *steps) {
      if (!step.is_object()) continue;
      const auto others = rejected(step);
      rows.push_back({std::to_string(i), text_of(step, "node"), text_of(step, "kind"),
                      kernel_of(step), bits_of(step), number_text(step, "estimate"),
                      others.front()});
      for (std::size_t j = 1; j < others.size(); ++j) {
        rows.push_back({"", "", "", "", "", "", others[j]});
      }
    }
  }
  return table_text(rows);
}

}  // namespace npu
