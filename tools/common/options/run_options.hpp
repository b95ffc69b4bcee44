// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "npu/runtime/run_model.hpp"
#include "options/gnn_run_options.hpp"
#include "tool.hpp"

namespace npu::cli {

/// Adds --load-ops and --promote, for every tool that passes documents to the aten backend.
void add_custom_op_options(Tool& tool, std::vector<std::string>& load_ops, bool& promote);

/// Adds the options for inputs, devices and results, of documents, bundles and plans.
void add_run_options(Tool& tool, RunModelOptions& options, PlanRunOptions& plan_options);

/// Prints a message for each output that fails --expect or --verify. True if there is none.
bool complain_of_mismatches(Tool& tool, const RunModelOptions& options, const RunReport& report);

/// Adds the examples of its --help.
void add_run_examples(Tool& tool);

}  // namespace npu::cli
