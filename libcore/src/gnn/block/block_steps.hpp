// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "device/device_instance.hpp"
#include "gnn/block/find_reductions.hpp"
#include "gnn/block/gnn_programs.hpp"
#include "npu/ir/subgraph.hpp"

namespace npu::gnn {

/// A program of a block with what a bundle needs of it.
struct KeptProgram {
  StoredProgram stored;
  std::vector<NodeId> nodes;
  std::vector<NamedTensor> weights;
  std::int64_t predicted_kernels = 0;
};

/// Nodes that the backend computes.
struct ProgramStep {
  std::unique_ptr<DeviceProgram> program;
  SubgraphBoundary boundary;
  std::optional<KeptProgram> kept;
};

/// Where the programs of a block come from.
struct ProgramSource {
  /// Compiled before, in the order of the steps; null: they are compiled.
  const std::vector<StoredProgram>* stored = nullptr;
  std::string stored_in;  ///< the file, for messages
  bool keeps = false;     ///< fills in ProgramStep::kept
};

/// The nodes that programs compute: all that the outputs of a block need but what the own kernels
/// do. O(nodes).
std::set<NodeId> nodes_in_programs(const Graph& graph, const OwnKernels& own);

using BlockStep = std::variant<ProgramStep, Reduction, OwnedSlice, Product>;

/// The steps that make the outputs of a block, in order: the own kernels, and programs of an
/// instance of the device with the nodes between them. Nodes that nothing needs any more are left
/// out. Throws Error kInvalidGraph for weights that are missing or of another shape than the model
/// says and for stored programs that are not those of the block, and what the backend throws.
/// O(nodes * own kernels), plus compiling.
std::vector<BlockStep> build_block_steps(const Graph& graph, OwnKernels own,
                                         const GnnDevice& device, DeviceInstance& instance,
                                         const std::map<std::string, Tensor>& weights,
                                         const ProgramSource& source = {});

}  // namespace npu::gnn
