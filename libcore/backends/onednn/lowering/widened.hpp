// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "npu/ir/graph.hpp"

namespace npu::onednn {

/// The graph with float32 in place of float16, in tensors and in what nodes say of dtypes; tensors
/// and nodes keep their numbers. Nothing if the graph has no float16. Throws Error kInvalidGraph if
/// the document contradicts itself. O(size of the document).
std::optional<Graph> widened(const Graph& graph);

}  // namespace npu::onednn
