// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/ScalarType.h>

#include <cstdint>
#include <string_view>

#include "npu/tensor/tensor.hpp"

namespace npu::aten {

/// Computes `count` elements; `out` may be `a` or `b`, or overlap neither. A unary op ignores `b`.
using DirectFunction = void (*)(const void* a, const void* b, void* out, std::int64_t count);

/// The largest result for which the loop is faster than libtorch's dispatcher and iterator.
inline constexpr std::int64_t kMostDirectElements = 4096;

/// The loop of an element-wise op whose operands and result have one dtype and shape, with exactly
/// the results of libtorch's kernel; null for every other op or dtype. `operands` is 1 or 2.
DirectFunction find_direct(std::string_view op_type, c10::ScalarType type, int operands);

}  // namespace npu::aten
