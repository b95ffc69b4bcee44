// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "npu/tensor/tensor.hpp"

namespace npu::gnn {

/// Bytes of a row; 0 of a tensor without rows.
std::size_t row_bytes(const Tensor& tensor);

/// Rows begin .. begin + count of a tensor, sharing its bytes.
Tensor rows_of(const Tensor& tensor, std::int64_t begin, std::int64_t count);

/// Rows `rows` of a tensor, copied.
Tensor gather_rows(const Tensor& tensor, const std::int32_t* rows, std::int64_t count);

/// Writes the first `count` rows of `value` to rows `rows` of `target`, which has the same row
/// size.
void scatter_rows(const Tensor& value, const std::int32_t* rows, std::int64_t count,
                  Tensor& target);

}  // namespace npu::gnn
