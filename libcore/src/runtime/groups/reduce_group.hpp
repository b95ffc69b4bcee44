// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "runtime/groups/model_groups.hpp"

namespace npu {

/// Nodes of a graph, what they give to others, and values of all that they read and give.
struct ReducedPart {
  std::vector<NodeId> nodes;
  std::vector<std::string> inputs;
  std::vector<std::string> results;
  TensorMap values;  ///< the reference's
};

/// Whether nodes, on the values of the reference, give results that differ from it.
using PartDiffers =
    std::function<bool(const std::vector<NodeId>& nodes, const std::vector<std::string>& results,
                       const TensorMap& expected)>;

/// The fewest of `nodes`, in list order, that still differ: nodes are left out at the end, then at
/// the beginning, as long as the rest differs. O(nodes) runs.
ReducedPart reduce_part(const Graph& graph, std::vector<NodeId> nodes, TensorMap values,
                        const PartDiffers& differs);

/// Writes a part as a document for its device, with its weights, inputs and the reference's results
/// beside it: FILE, and FILE's stem with .safetensors, .inputs.safetensors and
/// .outputs.safetensors. Returns their names.
std::vector<std::string> write_part(const ModelPiece& piece, const ReducedPart& part,
                                    const PartRunner& runner, const std::string& file);

}  // namespace npu
