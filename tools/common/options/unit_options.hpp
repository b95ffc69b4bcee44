// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "npu/runtime/compile_model.hpp"
#include "tool.hpp"

namespace npu::cli {

/// Compiles the plan that is the tool's input to the folder --output, with what plans and documents
/// share of `shared`. `devices` are the values of --device.
ExitStatus compile_plan(Tool& tool, const CompileModelOptions& shared,
                        const std::vector<std::string>& devices);

}  // namespace npu::cli
