// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "npu/runtime/compile_model.hpp"

namespace npu::cli {

/// compile_model, which SIGINT and SIGTERM ask to stop instead of ending the program, and which
/// throws Error kInfeasible if it takes more than `deadline_s`. A backend that goes on for 1.7 s
/// after a signal or the deadline is left behind: the program removes its unfinished files and
/// ends. A second signal ends it at once. Unless `quiet`, progress is shown on a terminal after two
/// seconds. If a signal came, this does not return: the program ends by it.
CompileModelResult compile_interruptibly(Graph& graph, CompileModelOptions options,
                                         std::optional<double> deadline_s, bool quiet,
                                         Diagnostics& diagnostics);

}  // namespace npu::cli
