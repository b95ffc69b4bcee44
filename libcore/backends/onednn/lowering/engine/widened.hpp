// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "npu/ir/graph.hpp"

namespace npu::onednn {

/// The graph with float32 in place of float16, and in place of float64 if that is between integers
/// of 8 bits alone (byte_region), in tensors and in what nodes say of dtypes; tensors and nodes
/// keep their numbers. Nothing if that changes nothing. Throws Error kInvalidGraph if the document
/// contradicts itself. O(size of the document).
std::optional<Graph> widened(const Graph& graph);

}  // namespace npu::onednn
