// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "gnn/run/find_reductions.hpp"
#include "gnn/run/gnn_programs.hpp"
#include "npu/device/backend.hpp"
#include "npu/ir/subgraph.hpp"

namespace npu::gnn {

/// Nodes that the backend computes.
struct ProgramStep {
  std::unique_ptr<DeviceProgram> program;
  SubgraphBoundary boundary;
};

/// The names of the nodes that programs compute: all that the outputs of a block need but what the
/// own kernels do. O(nodes).
std::set<std::string> nodes_in_programs(const Graph& graph, const OwnKernels& own);

using BlockStep = std::variant<ProgramStep, Reduction, OwnedSlice>;

/// The steps that make the outputs of a block, in order: the own kernels, and programs of an
/// instance of the device with the nodes between them. Nodes that nothing needs any more are left
/// out. Throws Error kInvalidGraph for weights that are missing or of another shape than the model
/// says, and what the backend throws. O(nodes * own kernels), plus compiling.
std::vector<BlockStep> build_block_steps(const Graph& graph, OwnKernels own,
                                         const GnnDevice& device, DeviceInstance& instance,
                                         const std::map<std::string, Tensor>& weights);

}  // namespace npu::gnn
