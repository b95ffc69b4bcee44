// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "npu/passes/quantize.hpp"
#include "tool.hpp"

namespace npu::cli {

/// The options of npu-align that choose precisions rather than layouts.
struct PrecisionOptions {
  std::string mode;  ///< "int8" or "mixed"; empty: layouts
  std::optional<double> max_error;
  std::string profile;  ///< file
  bool verify = false;
  std::string ranges;  ///< file
  std::string calibration = "minmax";
  bool full = false;

  /// Whether precisions are asked for. Throws Error kUsage for options that do not go together.
  bool asked(const Tool& tool) const;
};

void add_precision_options(Tool& tool, PrecisionOptions& options);

/// Checks the certificate of the tool's graph and prints what it proves.
ExitStatus verify_graph_precisions(Tool& tool);

/// Quantizes the tool's graph, reports, checks and writes it.
ExitStatus quantize_graph(Tool& tool, const PrecisionOptions& options, const std::string& target,
                          bool explain);

}  // namespace npu::cli
