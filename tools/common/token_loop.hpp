// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>

#include "npu/support/json.hpp"
#include "options/generate_options.hpp"
#include "runtime/generate/step_model.hpp"
#include "tool.hpp"

namespace npu::cli {

/// Throws Error kUsage for options of a token loop that exclude each other, before anything is
/// read.
void check_token_loop(const Tool& tool, const TokenLoopOptions& options);

/// Reads the requests, generates or scores, and writes ids; returns the report.
Json run_token_loop(const Tool& tool, StepModel& model, const StepModelFacts& facts,
                    const TokenLoopOptions& options);

/// Checks --assert, prints --report and keeps the report for --output.
ExitStatus finish_token_loop(Tool& tool, const Json& report, const TokenLoopOptions& options);

}  // namespace npu::cli
