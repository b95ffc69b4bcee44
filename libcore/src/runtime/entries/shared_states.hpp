// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "npu/ir/graph.hpp"
#include "npu/support/error.hpp"

namespace npu {

/// An entry of a bundle that shares states with others.
struct EntryWithStates {
  std::string name;
  const Graph& graph;
};

/// Whether entries that are made of several documents agree about their states, which are matched
/// by name: adds an error for each that has another dtype or shape than in an entry before, and for
/// each that is read and written by none; a warning for one that is written and read by none.
/// O(states of all entries).
void check_shared_states(const std::vector<EntryWithStates>& entries, Diagnostics& diagnostics);

}  // namespace npu
