// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "npu/ir/graph.hpp"
#include "options/profile_options.hpp"
#include "tool.hpp"

namespace npu::cli {

/// Measures the blocks of a staged model. Interrupted, it writes what it has to --output, and the
/// same command goes on from there; then it throws Error kIo.
void measure_staged(Tool& tool, gnn::ProfileStagesOptions& options);

/// Measures the nodes of a model, or calibrates it.
void measure_ordinary(Tool& tool, const Graph& graph, const ProfileOptions& options);

/// Measures the machine, and writes a target.
void measure_machine(Tool& tool, const ProfileMachineOptions& options);

/// Writes a target for a backend.
void measure_backend(Tool& tool, const ProfileBackendOptions& options);

/// Measures links in one of several processes, of which the first one writes `file`.
void measure_links(const std::string& file);

/// Writes a table of published form as one of ours, with link rates of published form if there are.
void convert_profile(Tool& tool, const std::string& import, const std::string& bandwidths);

}  // namespace npu::cli
