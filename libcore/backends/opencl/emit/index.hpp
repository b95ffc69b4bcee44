// SPDX-License-Identifier: Apache-2.0
// Places in tensors as C expressions: what generated kernels compute addresses with.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "npu/tensor/tensor.hpp"

namespace npu::opencl {

/// One expression for each dimension; each is a name, a number, or in parentheses.
using Index = std::vector<std::string>;

/// Sums and products of expressions; numbers are computed at once.
std::string plus(const std::string& a, const std::string& b);
std::string plus(const std::string& a, std::int64_t b);
std::string times(const std::string& a, std::int64_t factor);
/// Of expressions that are not negative.
std::string divided(const std::string& a, std::int64_t divisor);
std::string modulo(const std::string& a, std::int64_t divisor);

/// The row-major place of an element.
std::string linear_place(const Index& index, const Shape& shape);
/// The inverse; `place` should be a name or a number, since it is written several times.
Index index_of_place(const std::string& place, const Shape& shape);
/// The index, in a tensor of shape `to`, of the element that has the same row-major place as
/// `index` in a tensor of shape `from`. Dimensions that both have are taken over as they are.
Index reshaped_index(const Index& index, const Shape& from, const Shape& to);
/// The index of an operand that is broadcast to a tensor with `index`.
Index broadcast_index(const Index& index, const Shape& operand);

/// Broadcasts `shape` to what `other` needs, too; false if they do not fit.
bool join_shape(Shape& shape, const Shape& other);

/// "[i0, i1]", to tell whether two are the same.
std::string index_key(const Index& index);

}  // namespace npu::opencl
