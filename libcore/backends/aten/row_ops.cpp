// SPDX-License-Identifier: Apache-2.0
// Ops of this project that tell rows apart by their number, with libtorch's. O(elements).
#include "row_ops.hpp"

namespace npu::aten {

at::Tensor length_mask(const c10::optional<at::Tensor>& positions,
                       const c10::optional<at::Tensor>& valid, c10::string_view /*operands*/,
                       std::int64_t keys, bool causal, std::int64_t window) {
  const at::Tensor row = at::arange(keys, at::kLong);
  at::Tensor mask = valid ? at::lt(row, *valid) : at::ones({keys}, at::kBool);
  if (positions) {
    const at::Tensor column = positions->reshape({-1, 1});
    if (causal) mask = at::logical_and(mask, at::le(row, column));
    if (window > 0) mask = at::logical_and(mask, at::gt(row, column - window));
    mask = mask.expand({column.size(0), keys});
  }
  return mask.reshape({1, 1, -1, keys});
}

}  // namespace npu::aten
