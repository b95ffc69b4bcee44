// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "gnn/model/stage_table.hpp"
#include "gnn/profile/block_point.hpp"

namespace npu::gnn {

/// Whether no plan gains by the block at the size of `point`, going by what `table` has of smaller
/// sizes and the same degree. At each of them the block took at least 1.5 times as long as all
/// stages of its layer on the same device, or, where that one cannot run all, on a device that
/// shares its resource; and at one of them at least 1 ms. Where all devices share one resource, the
/// fastest blocks for the other stages of the layer count with it. `stage_count` is the layer's.
/// False where nothing smaller was measured, and for whole layers.
bool is_dominated(const StageTable& table, const BlockPoint& point, std::int32_t stage_count);

}  // namespace npu::gnn
