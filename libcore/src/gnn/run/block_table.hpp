// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

#include "gnn/run/gnn_block.hpp"
#include "gnn/run/task_graph.hpp"
#include "npu/gnn/staged_model.hpp"

namespace npu::gnn {

/// The compiled blocks of a plan: one for each device, range of stages and shape. Refers to what it
/// is made of.
class BlockTable {
 public:
  /// `pad` is the quantum of the shapes of static devices.
  BlockTable(const StagedModel& model, const std::map<std::string, Tensor>& weights,
             const std::vector<GnnDevice>& devices, std::int64_t pad);

  /// The block that computes a task of a layer (from 1) on a device; compiles it at the first call.
  /// Any thread may call; one block is compiled at a time. Throws Error if the device cannot.
  const GnnBlock& block(std::int32_t layer, const ShareTask& task, std::int32_t device);

  double compile_ms() const noexcept { return compile_ms_; }
  /// Segment reductions in all blocks.
  std::int32_t fused_reductions() const noexcept { return fused_; }
  /// Linear layers before the aggregations that they follow, in all blocks.
  std::int32_t products_first() const noexcept { return products_first_; }

 private:
  BlockShape shape_of(std::int32_t layer, const ShareTask& task, const GnnDevice& device) const;
  bool reads_edges(std::int32_t layer, const ShareTask& task) const;

  using Key = std::tuple<std::int32_t, std::int32_t, std::int32_t, std::int32_t, std::int64_t,
                         std::int64_t, std::int64_t>;

  const StagedModel& model_;
  const std::map<std::string, Tensor>& weights_;
  const std::vector<GnnDevice>& devices_;
  std::int64_t pad_;
  std::mutex mutex_;  // of what follows, and of the devices' caches and counts
  std::map<Key, std::unique_ptr<GnnBlock>> blocks_;
  double compile_ms_ = 0;
  std::int32_t fused_ = 0;
  std::int32_t products_first_ = 0;
};

}  // namespace npu::gnn
