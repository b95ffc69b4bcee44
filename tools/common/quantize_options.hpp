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

/// Adds --quantize int8|mixed.
void add_quantize_mode(Tool& tool, std::string& mode, const std::string& what);

/// Adds what npu-align and npu-compile say of a choice of precisions: --max-error, --calibration
/// and --full.
void add_quantize_choice(Tool& tool, std::optional<double>& max_error, std::string& calibration,
                         bool& full);

/// Throws Error kUsage for values of these that do not go together.
void check_quantize_choice(const std::string& mode, const std::optional<double>& max_error,
                           bool full);

void add_precision_options(Tool& tool, PrecisionOptions& options);

/// Checks the certificate of the tool's graph and prints what it proves.
ExitStatus verify_graph_precisions(Tool& tool);

/// Quantizes the tool's graph, reports, checks and writes it.
ExitStatus quantize_graph(Tool& tool, const PrecisionOptions& options, const std::string& target,
                          bool explain);

}  // namespace npu::cli
