// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "npu/ir/graph.hpp"

namespace npu {

/// The names of results that match one of the globs (shell patterns) and are no outputs of the
/// graph, in the order of the nodes. Throws Error kUsage for a glob that matches no result.
std::vector<std::string> tapped_names(const Graph& graph, const std::vector<std::string>& globs);

/// Makes results outputs of the graph, behind those that it has. All ids may change.
void add_outputs(Graph& graph, const std::vector<TensorId>& tensors);
void add_outputs(Graph& graph, const std::vector<std::string>& tensors);

}  // namespace npu
