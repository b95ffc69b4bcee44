// SPDX-License-Identifier: Apache-2.0
// Compiles blocks when they are first asked for. On static devices tasks of nearly the same size
// share a program, because shapes are padded to a quantum. O(log blocks), plus the compilation.
#include "gnn/run/block_table.hpp"

#include <algorithm>

#include "npu/support/elapsed.hpp"
#include "npu/support/ids.hpp"

namespace npu::gnn {
BlockTable::BlockTable(const StagedModel& model, const std::map<std::string, Tensor>& weights,
                       const std::vector<GnnDevice>& devices, std::int64_t pad)
    : model_(model), weights_(weights), devices_(devices), pad_(std::max<std::int64_t>(1, pad)) {}

const GnnBlock& BlockTable::block(std::int32_t layer, const ShareTask& task, std::int32_t device) {
  const GnnDevice& on = devices_[index_of(device)];
  const BlockShape shape = shape_of(layer, task, on);
  const std::lock_guard lock(mutex_);
  auto& block =
      blocks_[{device, layer, task.first, task.last, shape.owned, shape.local, shape.edges}];
  if (block == nullptr) {
    const auto start = Clock::now();
    block = std::make_unique<GnnBlock>(model_, layer, task.first, task.last, shape, on, weights_);
    compile_ms_ += milliseconds_since(start);
    fused_ += block->fused_reductions();
    products_first_ += block->products_first();
  }
  return *block;
}

BlockShape BlockTable::shape_of(std::int32_t layer, const ShareTask& task,
                                const GnnDevice& device) const {
  const BlockShape exact{task.view.owned, task.view.local, task.view.edges()};
  if (!device.is_static) return exact;
  const auto padded = [&](std::int64_t value) {
    return std::max<std::int64_t>(1, (value + pad_ - 1) / pad_) * pad_;
  };
  const std::int64_t edges = reads_edges(layer, task) ? padded(exact.edges) : pad_;
  return {padded(exact.owned), padded(exact.local), edges};
}

bool BlockTable::reads_edges(std::int32_t layer, const ShareTask& task) const {
  const auto is_inside = [&](std::int32_t stage) {
    return stage >= task.first && stage <= task.last;
  };
  const auto& tensors = model_.layers[index_of(layer - 1)].tensors;
  return std::any_of(tensors.begin(), tensors.end(), [&](const StageTensor& tensor) {
    return tensor.edge_bytes > 0 &&
           (is_inside(tensor.producer) ||
            std::any_of(tensor.consumers.begin(), tensor.consumers.end(), is_inside));
  });
}

}  // namespace npu::gnn
