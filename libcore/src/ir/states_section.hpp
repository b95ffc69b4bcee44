// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "npu/ir/graph.hpp"
#include "npu/support/error.hpp"

namespace npu {

/// One of `npu.states` of a document: a tensor that a step reads as a graph input and whose next
/// value it gives as a graph output.
struct State {
  std::string name;
  std::string input;                 ///< graph input; empty: the graph only writes it
  std::string output;                ///< graph output; empty: the graph only reads it
  std::optional<std::int64_t> axis;  ///< the dimension that holds rows by position
};

/// Reads `npu.states`; faults of form and of the graph (dtype, shape, order of reads) are added to
/// `diagnostics`. Empty if there is none. The graph's nodes stand in topological order.
/// O(states + nodes that write them).
std::vector<State> read_states(const Graph& graph, Diagnostics& diagnostics);
/// Writes `npu.states`; none erases it.
void store_states(Graph& graph, const std::vector<State>& states);
Json states_json(const std::vector<State>& states);

/// Whether an op's result is its first operand with some of its elements replaced, so that it can
/// be written where the operand lies.
bool overwrites_in_part(std::string_view op_type) noexcept;
/// The tensors from a state's output back to its input, both included, if every node between them
/// overwrites the one before in part; otherwise empty, or if the state has only one of the two.
std::vector<TensorId> chain_in_place(const Graph& graph, const State& state);

}  // namespace npu
