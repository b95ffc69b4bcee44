// SPDX-License-Identifier: Apache-2.0
// Products of a mixture of experts, which libtorch 1.13 lacks: one of ATen's for each group.
// O(those).
#include "grouped_product.hpp"

#include <ATen/ATen.h>

#include <cstdint>
#include <vector>

namespace npu::aten {

// Of rows, columns or of what is summed over in groups, which end where `offs` says; rows and
// columns that are in no group are zero, which PyTorch leaves open.
at::Tensor grouped_mm(const at::Tensor& self, const at::Tensor& mat2,
                      const c10::optional<at::Tensor>& offs, const c10::optional<at::Tensor>& bias,
                      c10::optional<at::ScalarType> out_dtype) {
  const bool has_ends = offs && offs->defined();
  TORCH_CHECK(self.dim() >= 2 && self.dim() <= 3 && mat2.dim() >= 2 && mat2.dim() <= 3,
              "self and mat2 need two or three dimensions");
  TORCH_CHECK(has_ends == (self.dim() == 2 || mat2.dim() == 2),
              "offs is needed where an operand has two dimensions, and only there");
  TORCH_CHECK(!bias || !bias->defined(), "a bias does not run here");
  const at::ScalarType type = out_dtype.value_or(self.scalar_type());
  if (!has_ends) return at::bmm(self, mat2).to(type);
  const bool groups_rows = self.dim() == 2 && mat2.dim() == 3;
  const bool groups_columns = self.dim() == 3;
  const at::Tensor ends = offs->to(at::kLong).contiguous();
  TORCH_CHECK(ends.dim() == 1 && (!groups_rows || ends.size(0) == mat2.size(0)) &&
                  (!groups_columns || ends.size(0) == self.size(0)),
              "offs needs an end for each group");
  std::vector<std::int64_t> shape{self.size(-2), mat2.size(-1)};
  if (!groups_rows && !groups_columns) shape.insert(shape.begin(), ends.size(0));
  at::Tensor result = at::zeros(shape, self.options().dtype(type));
  const std::int64_t most = groups_columns ? mat2.size(-1) : self.size(groups_rows ? 0 : 1);
  std::int64_t begin = 0;
  for (std::int64_t g = 0; g < ends.size(0); ++g) {
    const std::int64_t end = ends.data_ptr<std::int64_t>()[g];
    TORCH_CHECK(end >= begin && end <= most, "offs do not ascend up to ", most);
    const std::int64_t count = end - begin;
    if (groups_rows) {
      result.narrow(0, begin, count).copy_(at::mm(self.narrow(0, begin, count), mat2[g]));
    } else if (groups_columns) {
      result.narrow(1, begin, count).copy_(at::mm(self[g], mat2.narrow(1, begin, count)));
    } else {
      result[g].copy_(at::mm(self.narrow(1, begin, count), mat2.narrow(0, begin, count)));
    }
    begin = end;
  }
  return result;
}
at::Tensor grouped_mm_fallback(const at::Tensor& self, const at::Tensor& mat2,
                               const at::Tensor& offs) {
  return grouped_mm(self, mat2, offs, c10::nullopt, c10::nullopt);
}

}  // namespace npu::aten
