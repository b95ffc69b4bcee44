// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "npu/compile/compiler.hpp"
#include "npu/ir/graph.hpp"
#include "npu/ir/subgraph.hpp"
#include "npu/partition/partition_plan.hpp"
#include "npu/runtime/executor.hpp"
#include "npu/target/target.hpp"
#include "npu/tensor/tensor.hpp"

namespace npu {

/// Values by the names of their tensors, which all parts of a model share.
using TensorMap = std::unordered_map<std::string, Tensor>;

/// A partition as its backend gets it: with the fusion groups that it is compiled in.
struct ModelPiece {
  std::size_t partition = 0;  ///< of the plan
  std::string device;
  Graph graph;
};

/// A fusion group of a piece, or a node without one.
struct ModelGroup {
  std::size_t piece = 0;
  std::vector<NodeId> nodes;  ///< of the piece's graph, in list order
  std::vector<std::string> inputs;
  std::vector<std::string> results;  ///< that other groups or the graph's outputs read
};

struct ModelGroups {
  std::vector<ModelPiece> pieces;  ///< in the order of the plan's steps
  std::vector<ModelGroup> groups;  ///< in an order of execution, piece by piece
};

/// The groups that the plan is compiled in. O(size of the graph).
ModelGroups find_model_groups(const Graph& graph, const PartitionPlan& plan, const Target& target);

/// What parts of a model run with.
struct PartRunner {
  const Target* target = nullptr;
  CompileOptions compile;
  ExecutorOptions executor;
  TensorMap weights;
  OpenDevices devices;  ///< open with the same options; others are opened for each part

  /// Compiles `nodes` of `graph` for a device, runs them on what `values` holds and adds
  /// `outputs`, tensors that they compute. Returns the backend's compile report.
  Json run(const Graph& graph, const std::vector<NodeId>& nodes,
           const std::vector<std::string>& outputs, const std::string& device,
           TensorMap& values) const;
  /// The same of a whole piece as it has been compiled: adds its outputs, and `taps`, which its
  /// program hands out.
  void run_compiled(const ModelPiece& piece, const CompiledPartition& compiled,
                    const std::vector<std::string>& taps, TensorMap& values) const;

 private:
  std::vector<Tensor> weights_of(const Graph& graph) const;
  static std::vector<Tensor> inputs_of(const Graph& graph, const TensorMap& values);
};

std::vector<std::string> tensor_names(const Graph& graph, const std::vector<TensorId>& tensors);
/// The names of all weights of a graph with their data, which is by TensorId.
TensorMap weights_by_name(const Graph& graph, const std::vector<Tensor>& weights);

}  // namespace npu
