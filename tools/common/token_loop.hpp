// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "npu/compile/bundle.hpp"
#include "npu/runtime/run_model.hpp"
#include "options/generate_options.hpp"
#include "tool.hpp"

namespace npu::cli {

/// Throws Error kUsage for options of a token loop that exclude each other, before anything is
/// read.
void check_token_loop(Tool& tool, const TokenLoopOptions& options);

/// Opens the decoder that `bundle`, or the document of the input if it is null, holds; runs the
/// loop; checks --assert, prints --report and keeps the report for --output.
ExitStatus run_decoder(Tool& tool, const Bundle* bundle, RunModelOptions& options,
                       std::optional<double> deadline, const TokenLoopOptions& loop);

}  // namespace npu::cli
