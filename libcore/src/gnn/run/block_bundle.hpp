// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "gnn/block/gnn_block.hpp"
#include "npu/compile/bundle.hpp"
#include "npu/target/target.hpp"

namespace npu::gnn {

/// The bundle of a block that keeps its programs: a document of the nodes that they compute, with a
/// partition for each. It runs by itself if the target has a device with the backend of the block.
/// Nothing for a block without programs. O(nodes), plus the backend's reports.
std::optional<BundleContent> block_content(const GnnBlock& block, const GnnDevice& device,
                                           const Target& target);

}  // namespace npu::gnn
