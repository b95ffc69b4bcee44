// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>

#include "npu/runtime/run_model.hpp"

namespace npu::cli {

/// Calls `body` with a stop and a deadline in `options`. SIGINT and SIGTERM ask a run to end, where
/// a backend can cancel one, and end the program as soon as it has; elsewhere at once. A run that
/// goes on for 1.7 s after a signal is left behind. If a signal came, this does not return.
void run_interruptibly(RunModelOptions& options, std::optional<double> deadline_s,
                       const std::function<void()>& body);

}  // namespace npu::cli
