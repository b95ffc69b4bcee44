// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "npu/runtime/gnn_runner.hpp"
#include "npu/runtime/run_model.hpp"
#include "tool.hpp"

namespace npu::cli {

/// --load-ops and --promote, of every tool that hands documents to the aten backend.
void add_custom_op_options(Tool& tool, std::vector<std::string>& load_ops, bool& promote);

/// What is run, on what, and where results go: of documents and bundles, and of plans.
void add_run_options(Tool& tool, RunModelOptions& options, GnnRunOptions& plan_options);

/// The examples of its --help.
void add_run_examples(Tool& tool);

}  // namespace npu::cli
