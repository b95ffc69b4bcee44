// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "npu/ir/graph.hpp"
#include "npu/target/target.hpp"

namespace npu {

/// By NodeId: whether the node can be folded, that is, follows from weights and constants alone, is
/// run by the device that folds (folding_device), and has results that are not too large. `nodes`
/// for which `is_fixed` is not 0 cannot.
std::vector<char> find_constants(const Graph& graph, const Target& target,
                                 const std::vector<char>& is_fixed);

/// By NodeId: those of `constants` that are worth folding where `devices` are the devices of the
/// nodes, and those that they depend on. Not worth it are nodes that their device computes when it
/// compiles, and views that cost it nothing.
std::vector<char> choose_folded(const Graph& graph, const std::vector<char>& constants,
                                const std::vector<const Device*>& devices);

/// The number of nodes that are on a device which computes them when it compiles, since they follow
/// from weights and constants alone.
std::int64_t count_kept_constants(const Graph& graph, const Target& target);

}  // namespace npu
