// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gnn/model/staged_model.hpp"

namespace npu::gnn {

/// What is measured at once: stages of a layer on a device, at one size.
struct BlockPoint {
  std::int32_t device;
  std::int32_t layer;
  std::int32_t first;
  std::int32_t last;
  std::int64_t n;
  std::int64_t m;
  std::int32_t runs;  ///< timed ones, on this visit
};

/// Why a device does not run a stage, or nothing; by device, layer and stage.
using StageRefusals = std::vector<std::vector<std::vector<std::string>>>;

/// Bytes of what enters and leaves a block, and of its weights.
double block_bytes(const LayerInfo& info, const BlockPoint& point);

/// Bytes of what a block makes for later stages of its layer.
double crossing_bytes(const LayerInfo& info, const BlockPoint& front);

/// The halves of a layer, one for each of two devices, at the sizes of `size`, between which the
/// fewest bytes cross: what a plan with both devices would choose. Nothing if no layer can be
/// divided so.
std::optional<std::pair<BlockPoint, BlockPoint>> halves_of_layer(
    const std::vector<LayerInfo>& layers, const StageRefusals& refusals, const BlockPoint& size,
    std::int32_t front, std::int32_t back);

}  // namespace npu::gnn
