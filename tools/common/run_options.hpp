// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "gnn_run_options.hpp"
#include "npu/runtime/run_model.hpp"
#include "tool.hpp"

namespace npu::cli {

/// --load-ops and --promote, of every tool that hands documents to the aten backend.
void add_custom_op_options(Tool& tool, std::vector<std::string>& load_ops, bool& promote);

/// What is run, on what, and where results go: of documents and bundles, and of plans.
void add_run_options(Tool& tool, RunModelOptions& options, PlanRunOptions& plan_options);

/// A message for each output that is not what --expect or --verify say. True if there is none.
bool complain_of_mismatches(Tool& tool, const RunModelOptions& options, const RunReport& report);

/// The examples of its --help.
void add_run_examples(Tool& tool);

}  // namespace npu::cli
