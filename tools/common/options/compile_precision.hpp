// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "options/quantize_options.hpp"
#include "profile/compile_quantized.hpp"
#include "tool.hpp"

namespace npu::cli {

/// The options of npu-compile that quantize a model in the same go.
struct CompilePrecision {
  std::string mode;  ///< "int8" or "mixed"; empty: neither
  std::vector<InputFile> samples;
  QuantizeChoice choice;

  /// Whether a model is to be quantized. Throws Error kUsage for options that do not go together.
  bool asked(const Tool& tool) const;
  CompileQuantizedOptions options(const CompileModelOptions& model) const;
};

void add_compile_precision(Tool& tool, CompilePrecision& options);

/// Quantizes and compiles, says how far the result is from float, reports, checks and writes it.
ExitStatus compile_int8(Tool& tool, Graph& graph, const CompilePrecision& options,
                        const CompileModelOptions& model, std::optional<double> deadline);

}  // namespace npu::cli
