// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "npu/runtime/weight_store.hpp"
#include "passes/quantize/quantize.hpp"
#include "tool.hpp"

namespace npu::cli {

/// What npu-align and npu-compile can say of a choice of precisions.
struct QuantizeChoice {
  std::optional<double> max_error;
  std::string calibration = "minmax";
  bool full = false;
  bool no_smooth = false;
  bool no_bias_correction = false;

  /// Throws Error kUsage if one of them was given, for commands without --quantize.
  static void refuse(const Tool& tool);
  /// Throws Error kUsage for values that do not go together.
  void check(const std::string& mode) const;
  /// Throws Error kUsage for a method that does not exist.
  QuantizeOptions options() const;
};

/// The options of npu-align that choose precisions rather than layouts.
struct PrecisionOptions {
  std::string mode;     ///< "int8" or "mixed"; empty: layouts
  std::string profile;  ///< file
  bool verify = false;
  std::string ranges;    ///< file
  std::string onnx_qdq;  ///< file; empty: none
  WeightSource weights;  ///< for onnx_qdq
  QuantizeChoice choice;

  /// Whether precisions are asked for. Throws Error kUsage for options that do not go together.
  bool asked(const Tool& tool) const;
};

/// Adds --quantize int8|mixed.
void add_quantize_mode(Tool& tool, std::string& mode, const std::string& what);

void add_quantize_choice(Tool& tool, QuantizeChoice& choice);

void add_precision_options(Tool& tool, PrecisionOptions& options);

/// Writes the tool's graph, which is quantized already, as a model of ONNX, and as it was read.
ExitStatus export_graph_qdq(Tool& tool, const PrecisionOptions& options, const std::string& target);

/// Quantizes the tool's graph, reports, checks and writes it.
ExitStatus quantize_graph(Tool& tool, const PrecisionOptions& options, const std::string& target,
                          bool explain);

}  // namespace npu::cli
