// SPDX-License-Identifier: Apache-2.0
// What npu-align --quantize prints and compares. O(nodes).
#include <cmath>
#include <cstdio>
#include <map>

#include "ops/op_name.hpp"
#include "passes/quantize/quantize.hpp"
#include "support/text.hpp"

namespace npu {
namespace {

std::int64_t to_int8_count(const QuantizeResult& result) {
  std::int64_t count = 0;
  for (const PrecisionConversion& conversion : result.conversions) {
    count += conversion.to_int8 ? 1 : 0;
  }
  return count;
}

/// By which share the time may be above the least.
double gap_of(const QuantizeResult& result) {
  return result.predicted_us > 0 ? 1 - result.lower_bound_us / result.predicted_us : 0;
}

std::string short_number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g", value);
  return text;
}

std::string percent(double share) { return fixed_text(100 * share, 1) + " %"; }

}  // namespace

std::map<std::string, double> quantize_metrics(const QuantizeResult& result) {
  const auto conversions = static_cast<double>(result.conversions.size());
  const auto to_int8 = static_cast<double>(to_int8_count(result));
  std::map<std::string, double> metrics{
      {"int8_ops", static_cast<double>(result.int8_ops)},
      {"float_ops", static_cast<double>(result.float_ops)},
      {"int8_macs", result.int8_macs},
      {"conversions", conversions},
      {"to_int8", to_int8},
      {"to_float", conversions - to_int8},
      {"quantized_tensors", static_cast<double>(result.tensors.size())},
      {"smoothed_tensors", static_cast<double>(result.smoothed.size())},
      {"corrected_biases", static_cast<double>(result.corrected.size())}};
  if (!result.options.max_error) return metrics;
  metrics["predicted_us"] = result.predicted_us;
  metrics["lower_bound_us"] = result.lower_bound_us;
  metrics["float_us"] = result.float_us;
  metrics["gap"] = gap_of(result);
  metrics["predicted_error"] = result.predicted_error;
  return metrics;
}

std::string format_quantize_report(const QuantizeResult& result) {
  const std::int64_t to_int8 = to_int8_count(result);
  const auto all = static_cast<std::int64_t>(result.conversions.size());
  std::map<std::string, std::int64_t> reasons;
  for (const QuantizedNode& node : result.nodes) {
    if (node.precision == Precision::kFloat) ++reasons[node.reason];
  }
  std::string text = "ops: int8 " + std::to_string(result.int8_ops) + ", float " +
                     std::to_string(result.float_ops) +
                     "; arithmetic of products in int8: " + percent(result.int8_macs) + "\n" +
                     "conversions: " + std::to_string(all) + " (to int8 " +
                     std::to_string(to_int8) + ", to float " + std::to_string(all - to_int8) +
                     "); tensors with a scale: " + std::to_string(result.tensors.size()) +
                     "\nsmoothed tensors: " + std::to_string(result.smoothed.size()) +
                     "; corrected biases: " + std::to_string(result.corrected.size()) + "\n";
  if (!result.weights_reason.empty()) text += result.weights_reason + "\n";
  if (result.options.max_error) {
    text += "predicted: " + fixed_text(result.predicted_us, 3) + " us, at least " +
            fixed_text(result.lower_bound_us, 3) + " us, all in float " +
            fixed_text(result.float_us, 3) + " us; error " + short_number(result.predicted_error) +
            " of " + short_number(*result.options.max_error) + "\n";
  }
  if (reasons.empty()) return text;
  std::vector<std::vector<std::string>> rows{{"float since", ">ops"}};
  for (const auto& [reason, count] : reasons) rows.push_back({reason, std::to_string(count)});
  return text + table_text(rows);
}

std::string format_quantize_explanation(const QuantizeResult& result) {
  std::vector<std::vector<std::string>> rows{{"op", "type", "precision", "reason"}};
  for (const QuantizedNode& node : result.nodes) {
    rows.push_back({node.name, std::string(short_name(node.op_type)),
                    std::string(precision_name(node.precision)), node.reason});
  }
  std::string text = table_text(rows);
  if (!result.conversions.empty()) {
    rows = {{"tensor", "to", "from op", "for op"}};
    for (const PrecisionConversion& conversion : result.conversions) {
      rows.push_back({conversion.tensor, conversion.to_int8 ? "int8" : "float", conversion.from,
                      conversion.to});
    }
    text += table_text(rows);
  }
  if (!result.smoothed.empty()) {
    rows = {{"channels divided", "by", ">predicted gain"}};
    for (const SmoothedTensor& each : result.smoothed) {
      rows.push_back({each.tensor, each.into.empty() ? "a multiplication" : each.into,
                      fixed_text(10 * std::log10(each.gain), 1) + " dB"});
    }
    text += table_text(rows);
  }
  if (!result.corrected.empty()) {
    rows = {{"bias corrected for rounded weights"}};
    for (const std::string& product : result.corrected) rows.push_back({product});
    text += table_text(rows);
  }
  if (result.options.max_error) {
    return text + "gap: " + percent(gap_of(result)) +
           " at most, by a bound that npu-align --verify "
           "proves\n";
  }
  return text + "conversions: " + std::to_string(result.cut) +
         ", the fewest: a cut of this value and a flow of " + std::to_string(result.flow) + " (" +
         std::to_string(result.vertices) + " vertices, " + std::to_string(result.arcs) + " arcs)\n";
}

}  // namespace npu
