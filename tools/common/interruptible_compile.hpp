// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>

#include "npu/runtime/compile_model.hpp"

namespace npu::cli {

/// Calls `compile` with options by which SIGINT and SIGTERM ask it to stop instead of ending the
/// program, and with which it throws Error kInfeasible if it takes more than `deadline_s`. A
/// backend that goes on for 1.7 s after a signal or the deadline is left behind: the program
/// removes its unfinished files and ends. A second signal ends it at once. Unless `quiet`, progress
/// is shown on a terminal after two seconds. If a signal came, this does not return: the program
/// ends by it.
void compile_interruptibly(CompileModelOptions options, std::optional<double> deadline_s,
                           bool quiet,
                           const std::function<void(const CompileModelOptions&)>& compile);

/// The same with compile_model.
CompileModelResult compile_interruptibly(Graph& graph, const CompileModelOptions& options,
                                         std::optional<double> deadline_s, bool quiet,
                                         Diagnostics& diagnostics);

}  // namespace npu::cli
