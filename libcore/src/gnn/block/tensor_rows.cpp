// SPDX-License-Identifier: Apache-2.0
// Rows of tensors: views, and copies from and to scattered rows. O(bytes copied).
#include "gnn/block/tensor_rows.hpp"

#include <cstring>
#include <memory>
#include <utility>

#include "npu/support/ids.hpp"

namespace npu::gnn {
std::size_t row_bytes(const Tensor& tensor) {
  const Shape& shape = tensor.shape();
  return !shape.empty() && shape[0] > 0 ? tensor.bytes() / index_of(shape[0]) : 0;
}

Tensor rows_of(const Tensor& tensor, std::int64_t begin, std::int64_t count) {
  if (tensor.shape().empty() || (begin == 0 && count == tensor.shape()[0])) return tensor;
  Shape shape = tensor.shape();
  shape[0] = count;
  const auto owner = std::make_shared<Tensor>(tensor);
  return Tensor(
      tensor.dtype(), std::move(shape),
      std::shared_ptr<const std::byte>(owner, owner->data() + index_of(begin) * row_bytes(tensor)));
}

Tensor gather_rows(const Tensor& tensor, const std::int32_t* rows, std::int64_t count) {
  Shape shape = tensor.shape();
  const std::size_t bytes = row_bytes(tensor);
  shape[0] = count;
  Tensor result(tensor.dtype(), std::move(shape));
  for (std::int64_t r = 0; r < count; ++r) {
    std::memcpy(result.mutable_data() + index_of(r) * bytes,
                tensor.data() + index_of(rows[r]) * bytes, bytes);
  }
  return result;
}

void scatter_rows(const Tensor& value, const std::int32_t* rows, std::int64_t count,
                  Tensor& target) {
  if (count == 0) return;
  const std::size_t bytes = row_bytes(value);
  std::byte* const target_rows = target.mutable_data();
  for (std::int64_t r = 0; r < count; ++r) {
    std::memcpy(target_rows + index_of(rows[r]) * bytes, value.data() + index_of(r) * bytes, bytes);
  }
}

}  // namespace npu::gnn
