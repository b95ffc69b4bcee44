// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cost/node_table.hpp"
#include "npu/ir/graph.hpp"
#include "npu/support/error.hpp"
#include "quant/choose_range.hpp"
#include "quant/tensor_ranges.hpp"

namespace npu {

enum class Precision : std::uint8_t {
  kNone,   ///< the op has no float32 result
  kFloat,  ///< float32
  kInt8,   ///< on integers of 8 bits
};
/// "none", "float", "int8".
std::string_view precision_name(Precision precision) noexcept;

struct QuantizeOptions {
  CalibrationMethod calibration;
  bool full = false;   ///< fail if an op of the device is not int8
  std::string target;  ///< of a document without `npu.target`; empty: no rules but the defaults
  /// The errors of int8 ops, each alone, may add up to this, and the choice is that of the least
  /// predicted time. Nothing: int8 wherever an op can, and the fewest conversions.
  std::optional<double> max_error;
  std::optional<NodeTable> profile;  ///< with max_error: times in float; nothing: the target's
  bool smooth = true;  ///< divide channels of activations where calibration says that it pays
  bool correct_biases = true;  ///< for the rounding of weights
};

struct QuantizedNode {
  std::string name;
  std::string op_type;
  Precision precision = Precision::kNone;
  std::string reason;
};

/// A tensor that has integers beside it or instead of it.
struct QuantizedTensor {
  std::string tensor;
  QuantParams params;
};

/// Where a tensor changes between the two forms.
struct PrecisionConversion {
  std::string tensor;
  bool to_int8 = false;
  std::string from;  ///< the op that makes it, or "graph input"
  std::string to;    ///< the first op that reads the other form, or "graph output"
};

/// A tensor whose channels are divided by factors before products in int8 read it, whose weights
/// are multiplied.
struct SmoothedTensor {
  std::string tensor;
  std::string into;  ///< the op whose constants are divided; empty: a multiplication of its own
  double gain = 1;   ///< the predicted ratio of the powers of these products' errors
};

struct QuantizeResult {
  QuantizeOptions options;
  std::vector<QuantizedNode> nodes;      ///< as the document's, without the conversions
  std::vector<QuantizedTensor> tensors;  ///< in the order of the document
  std::vector<PrecisionConversion> conversions;
  std::vector<SmoothedTensor> smoothed;
  std::string weights_reason;          ///< why weights have less than 8 bits; empty: a rule says so
  std::vector<std::string> corrected;  ///< products whose bias makes up for rounded weights
  std::int64_t int8_ops = 0;
  std::int64_t float_ops = 0;
  double int8_macs = 1;  ///< the share of the arithmetic of products that is done on integers
  // The certificate: a cut, which is the number of conversions, and a flow of its value.
  std::int64_t cut = 0;
  std::int64_t flow = 0;
  std::int64_t vertices = 0;
  std::int64_t arcs = 0;
  // With max_error:
  double predicted_us = 0;
  double lower_bound_us = 0;  ///< no choice within the error is predicted to take less
  double float_us = 0;        ///< everything in float
  double predicted_error = 0;
};

/// Gives every op of a model a precision, int8 wherever an op can and the fewest conversions allow,
/// and inserts quantize and dequantize nodes of PyTorch's quantized_decomposed library: one pair
/// for each tensor that an int8 op reads, and one for each weight of such an op. Writes
/// `npu.precision` (npu-ir(5)). Works on a bare or a tagged document; throws Error kInvalidGraph
/// for one that is fused, partitioned or quantized already, kUsage if the ranges are those of
/// another model, kInfeasible if `full` is asked for and some ops are not int8, with an error in
/// `diagnostics` for each, which also gets what npu-tag has to say. Nearly linear
/// without max_error.
QuantizeResult quantize_model(Graph& graph, const TensorRanges& ranges,
                              const QuantizeOptions& options, Diagnostics& diagnostics);

/// Checks the certificate of a quantized document, independently of how it was found: that its ops
/// read what the certificate says, what its precisions cost, their errors, and the bound that no
/// choice beats. Returns a line for each check; throws Error kInvalidGraph at the first fault.
std::string verify_precisions(const Graph& graph);

/// int8_ops, float_ops, int8_macs, conversions, to_int8, to_float, quantized_tensors,
/// smoothed_tensors, corrected_biases; with
/// max_error also predicted_us, lower_bound_us, float_us, gap, predicted_error.
std::map<std::string, double> quantize_metrics(const QuantizeResult& result);
/// Totals, for --report.
std::string format_quantize_report(const QuantizeResult& result);
/// Each op with its precision and the reason, the conversions and the certificate, for --explain.
std::string format_quantize_explanation(const QuantizeResult& result);

}  // namespace npu
