// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "npu/ir/graph.hpp"
#include "npu/support/error.hpp"

namespace npu {

/// Every node in the order of the document, folded ones included.
std::vector<const Node*> document_nodes(const Graph& graph);

/// Folds the nodes for which `fold`, by NodeId, is not 0: they lose device, partition and fusion
/// group. All ids change.
void fold_nodes(Graph& graph, const std::vector<char>& fold);

/// Makes every folded node an ordinary one without a device. All ids change if there is one.
void unfold_nodes(Graph& graph);

}  // namespace npu
