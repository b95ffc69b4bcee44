// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "ir/states_section.hpp"
#include "npu/ir/graph.hpp"
#include "npu/support/error.hpp"
#include "npu/support/json.hpp"

namespace npu {

/// Names of states: graph inputs, and the graph outputs with their next values. Both have one '*',
/// which stands for the same text in both, or none has.
struct StateNames {
  std::string input, output;
};

/// Reads "INPUT=OUTPUT". Throws Error kUsage.
StateNames parse_state_names(const std::string& text);

/// The states of a document whose ends are called so, named by their inputs, in the order of the
/// graph's inputs. Adds an error for names that no input has, and for outputs that are not there.
/// `file` is that of the document, for errors. O(names x inputs).
std::vector<State> named_states(const Json& document, const std::vector<StateNames>& names,
                                const std::string& file, Diagnostics& diagnostics);

/// Puts states behind those that a document has in `npu.states`.
void append_states(Json& document, const std::vector<State>& states);

/// Makes tensors of a graph states, and checks them as `read_states` does.
void name_states(Graph& graph, const std::vector<StateNames>& names, Diagnostics& diagnostics);

}  // namespace npu
