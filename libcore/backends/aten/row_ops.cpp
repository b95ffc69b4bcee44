// SPDX-License-Identifier: Apache-2.0
// Ops of this project that tell rows apart by their number, with libtorch's. O(elements).
#include "row_ops.hpp"

#include <limits>

namespace npu::aten {

at::Tensor tail(const at::Tensor& self, const at::Tensor& valid, std::int64_t dim,
                c10::string_view fill) {
  TORCH_CHECK(self.dim() > 0, "a scalar has no rows");
  const std::int64_t axis = at::maybe_wrap_dim(dim, self.dim());
  const std::int64_t rows = self.size(axis);
  const auto count = valid.item<std::int64_t>();
  TORCH_CHECK(count >= 0 && count <= rows, count, " valid rows are not in a dimension of ", rows);
  at::Tensor result = self.clone(at::MemoryFormat::Contiguous);
  if (count == rows) return result;
  at::Tensor rest = result.narrow(axis, count, rows - count);
  if (fill == "edge") {
    TORCH_CHECK(count > 0, "without a valid row there is none to repeat");
    rest.copy_(result.narrow(axis, count - 1, 1).expand_as(rest));
  } else if (fill == "lowest") {
    rest.fill_(-std::numeric_limits<double>::infinity());
  } else {
    TORCH_CHECK(fill == "zero", "fill is none of zero, edge and lowest");
    rest.zero_();
  }
  return result;
}

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
