// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "npu/ir/graph.hpp"

namespace npu {

/// Makes results whose names match one of the globs (shell patterns) outputs of the graph, behind
/// those that it has, in the order of the nodes. Throws Error kUsage for a glob that matches none.
void tap_tensors(Graph& graph, const std::vector<std::string>& globs);

/// Makes results outputs of the graph, behind those that it has. All ids may change.
void add_outputs(Graph& graph, const std::vector<TensorId>& tensors);

}  // namespace npu
