// SPDX-License-Identifier: Apache-2.0
// Rows of values between segments: a share that is the whole subgraph passes tensors on without a
// copy; others copy their rows. O(bytes of the share).
#include "gnn/run/segment_values.hpp"

#include <cstring>
#include <utility>

#include "gnn/block/tensor_rows.hpp"
#include "npu/support/ids.hpp"

namespace npu::gnn {
Tensor SegmentValues::read(const StageTensor& tensor, const ShareTask& task) const {
  Tensor value;
  {
    const std::lock_guard lock(mutex_);
    value = values_.at(tensor.name);
  }
  if (tensor.edge_bytes > 0) return rows_of(value, task.edge_begin, task.view.edges());
  if (tensor.node_bytes <= 0) return value;
  if (!tensor.local_rows) return rows_of(value, task.row_begin, task.view.owned);
  if (task.local.empty()) return value;
  return gather_rows(value, task.local.data(), task.view.local);
}

void SegmentValues::store(const StageTensor& tensor, const Tensor& value, const Subgraph& part,
                          const ShareTask& task) {
  const std::lock_guard lock(mutex_);
  Tensor& target = values_[tensor.name];
  if (task.local.empty()) {
    target = value;
    return;
  }
  Shape shape = value.shape();
  shape[0] = tensor.edge_bytes > 0 ? static_cast<std::int64_t>(part.sources.size())
             : tensor.local_rows   ? static_cast<std::int64_t>(part.nodes.size())
                                   : part.owned;
  if (target.shape() != shape) target = Tensor(value.dtype(), shape);
  if (tensor.edge_bytes <= 0 && tensor.local_rows) {
    scatter_rows(value, task.local.data(), task.view.local, target);
    return;
  }
  const std::int64_t begin = tensor.edge_bytes > 0 ? task.edge_begin : task.row_begin;
  if (value.bytes() > 0) {
    std::memcpy(target.mutable_data() + index_of(begin) * row_bytes(value), value.data(),
                value.bytes());
  }
}

std::map<std::string, Tensor> SegmentValues::take() {
  const std::lock_guard lock(mutex_);
  return std::exchange(values_, {});
}

}  // namespace npu::gnn
