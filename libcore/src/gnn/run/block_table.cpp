// SPDX-License-Identifier: Apache-2.0
// Compiles blocks when they are first asked for, or loads what was compiled before. On static
// devices tasks of nearly the same size share a program, because shapes are padded to a quantum.
// O(log blocks), plus the compilation.
#include "gnn/run/block_table.hpp"

#include <algorithm>

#include "npu/support/ids.hpp"
#include "support/elapsed.hpp"

namespace npu::gnn {
namespace {

bool reads_edges(const LayerInfo& layer, const ShareTask& task) {
  return std::any_of(layer.tensors.begin(), layer.tensors.end(), [&](const StageTensor& tensor) {
    return tensor.edge_bytes > 0 &&
           (tensor.is_made_in(task.first, task.last) || tensor.is_read_in(task.first, task.last));
  });
}

bool writes_rows(const LayerInfo& layer, const ShareTask& task) {
  const auto begin = layer.stages.begin();
  return std::any_of(begin + task.first - 1, begin + task.last,
                     [](const StageInfo& stage) { return stage.writes_rows; });
}

}  // namespace

BlockKey block_key(const StagedModel& model, std::int32_t layer, const ShareTask& task,
                   std::int32_t device, bool is_static, std::int64_t pad) {
  BlockKey key{.device = device,
               .layer = layer,
               .first = task.first,
               .last = task.last,
               .owned = task.view.owned,
               .local = task.view.local,
               .edges = task.view.edges()};
  if (!is_static) return key;
  const auto padded = [&](std::int64_t value) {
    return std::max<std::int64_t>(1, (value + pad - 1) / pad) * pad;
  };
  const LayerInfo& info = model.layers[index_of(layer - 1)];
  key.edges = reads_edges(info, task) ? padded(key.edges) : pad;
  // What padding edges write has to go to a row that is no node's.
  const bool needs_row = key.edges > task.view.edges() && writes_rows(info, task);
  key.owned = padded(key.owned + (needs_row ? 1 : 0));
  key.local = std::max(key.owned, padded(key.local));
  return key;
}

BlockTable::BlockTable(const StagedModel& model, const std::map<std::string, Tensor>& weights,
                       const std::vector<GnnDevice>& devices, std::int64_t pad,
                       const BlockStore* units)
    : model_(model),
      weights_(weights),
      devices_(devices),
      pad_(std::max<std::int64_t>(1, pad)),
      units_(units) {}

const GnnBlock& BlockTable::block(std::int32_t layer, const ShareTask& task, std::int32_t device,
                                  bool is_moved) {
  const GnnDevice& on = devices_[index_of(device)];
  const BlockKey key = block_key(model_, layer, task, device, on.is_static, pad_);
  const std::lock_guard lock(mutex_);
  auto& block = blocks_[key];
  if (block == nullptr) {
    const auto start = Clock::now();
    std::optional<CompiledBlock> unit;
    if (units_ != nullptr) unit = units_->find(key, on);
    if (units_ != nullptr && !unit && !is_moved) units_->refuse_missing(key, on.name);
    const BlockRequest request{key.layer, key.first, key.last, key.shape(),
                               unit ? &*unit : nullptr};
    block = std::make_unique<GnnBlock>(model_, request, on, weights_);
    if (unit) {
      ++loaded_units_;
    } else {
      compile_ms_ += milliseconds_since(start);
    }
    fused_ += block->fused_reductions();
    products_first_ += block->products_first();
  }
  return *block;
}

}  // namespace npu::gnn
