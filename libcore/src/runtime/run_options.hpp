// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "npu/compile/compiler.hpp"
#include "npu/runtime/executor.hpp"
#include "npu/runtime/run_model.hpp"
#include "npu/target/target.hpp"

namespace npu {

/// What the devices are opened with for all runs that the options ask for. Libraries of custom ops
/// are loaded, so that a bad one is refused even if no step of the plan needs it.
ExecutorOptions executor_options(const RunModelOptions& options);

/// For runs that the results of the plan are compared with: one at a time, and never ended early.
ExecutorOptions reference_options(const RunModelOptions& options);

CompileOptions compile_options(const RunModelOptions& options);

/// Whether the error of a precision of 16 bits is to be measured.
bool measures_precision(const RunModelOptions& options);

/// Throws Error kUsage for options that do not go with a plan of so many outputs.
void check_options(const RunModelOptions& options, std::size_t outputs, const Target& target);

}  // namespace npu
