// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "compile/state_aliases.hpp"
#include "device/device_program.hpp"
#include "npu/ir/graph.hpp"
#include "npu/ir/subgraph.hpp"
#include "npu/target/target.hpp"

namespace npu {

/// What a backend compiles.
struct SubIr {
  std::string text;
  std::int64_t predicted_kernels = 0;  ///< by its fusion groups
};

/// The fusion patterns of a device: its own, else those that a built-in target gives a device with
/// the same backend; nothing if there are none.
std::optional<std::vector<std::string>> device_patterns(const Device& device);
std::optional<std::vector<std::string>> backend_patterns(const std::string& backend);

/// Some nodes, in list order, as a graph: with the fusion groups that they have, or, where none of
/// them is in one, with those that `patterns` make of them, if given. `aliases` are its "aliases",
/// for a backend with the feature "alias". O(size of the set).
Graph fused_part(const Graph& graph, const std::vector<NodeId>& nodes,
                 const SubgraphBoundary& boundary,
                 const std::optional<std::vector<std::string>>& patterns,
                 const std::vector<StateAlias>& aliases = {});
/// The same as the sub-IR that a backend gets.
SubIr make_sub_ir(const Graph& graph, const std::vector<NodeId>& nodes,
                  const SubgraphBoundary& boundary,
                  const std::optional<std::vector<std::string>>& patterns,
                  const std::vector<StateAlias>& aliases = {});

/// What a program of `nodes` nodes returns.
ProgramSignature program_signature(const Graph& graph, std::size_t nodes,
                                   const std::vector<TensorId>& outputs);

}  // namespace npu
