// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "gnn/block/gnn_block.hpp"
#include "gnn/model/staged_model.hpp"
#include "gnn/run/block_store.hpp"
#include "gnn/run/task_graph.hpp"

namespace npu::gnn {

/// The unit that computes a task of a layer (from 1) on a device: its shape is rounded up to
/// multiples of `pad` if the device is static, with a row that is no node's where padding edges
/// write one. O(tensors of the layer).
BlockKey block_key(const StagedModel& model, std::int32_t layer, const ShareTask& task,
                   std::int32_t device, bool is_static, std::int64_t pad);

/// The compiled blocks of a plan: one for each device, range of stages and shape. Refers to what it
/// is made of.
class BlockTable {
 public:
  /// `pad` is the quantum of the shapes of static devices. With `units`, programs come from there.
  BlockTable(const StagedModel& model, const std::map<std::string, Tensor>& weights,
             const std::vector<GnnDevice>& devices, std::int64_t pad,
             const BlockStore* units = nullptr);

  /// The block that computes a task of a layer (from 1) on a device; compiles it at the first call.
  /// With units nothing is compiled, except if `is_moved`, which says that another device failed.
  /// Any thread may call; one block is compiled at a time. Throws Error if the device cannot, and
  /// for a unit that is not there.
  const GnnBlock& block(std::int32_t layer, const ShareTask& task, std::int32_t device,
                        bool is_moved = false);

  double compile_ms() const noexcept { return compile_ms_; }
  /// Segment reductions in all blocks.
  std::int32_t fused_reductions() const noexcept { return fused_; }
  /// Linear layers before the aggregations that they follow, in all blocks.
  std::int32_t products_first() const noexcept { return products_first_; }
  /// Blocks whose programs were compiled before.
  std::int32_t loaded_units() const noexcept { return loaded_units_; }

 private:
  const StagedModel& model_;
  const std::map<std::string, Tensor>& weights_;
  const std::vector<GnnDevice>& devices_;
  std::int64_t pad_;
  const BlockStore* units_;
  std::mutex mutex_;  // of what follows, and of the devices' caches and counts
  std::map<BlockKey, std::unique_ptr<GnnBlock>> blocks_;
  double compile_ms_ = 0;
  std::int32_t fused_ = 0;
  std::int32_t products_first_ = 0;
  std::int32_t loaded_units_ = 0;
};

}  // namespace npu::gnn
