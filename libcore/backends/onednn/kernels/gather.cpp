// SPDX-License-Identifier: Apache-2.0
// Rows of embedding tables, and sequences of indices. O(bytes moved).
#include "kernels/gather.hpp"

#include <cstring>

#include "kernels/elements.hpp"
#include "npu/support/error.hpp"

namespace npu::onednn {

void GatherRows::run(const Operands& operands) const {
  const auto [table, indices, target] = operands;
  const auto index_at = [&, indices = indices](std::int64_t i) -> std::int64_t {
    return wide_indices ? elements<std::int64_t>(indices)[i] : elements<std::int32_t>(indices)[i];
  };
  for (std::int64_t i = 0; i < count; ++i) {
    if (index_at(i) >= 0 && index_at(i) < rows) continue;
    throw Error(ErrorCode::kInfeasible,
                node + ": an index is not in 0.." + std::to_string(rows - 1));
  }
#pragma omp parallel for if (count * row_bytes >= 4 * kParallelElements)
  for (std::int64_t i = 0; i < count; ++i) {
    std::memcpy(operands.target + i * row_bytes, operands.table + index_at(i) * row_bytes,
                static_cast<std::size_t>(row_bytes));
  }
}

void Sequence::run(const Operands& operands) const {
  for (std::int64_t i = 0; i < count; ++i) operands.target[i] = start + i * step;
}

}  // namespace npu::onednn
