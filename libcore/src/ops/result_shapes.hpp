// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "npu/tensor/tensor.hpp"

namespace npu {

/// Whether the shape of an op's first result follows from its operands' shapes alone, at least in
/// part: element-wise ops, products of matrices, views (which keep the number of elements).
bool has_shape_rule(std::string_view op_type);

/// "[2, 3], but operands of [2, 4] give [2, 4]" if the first result of a node has not the shape
/// that its operands give; nothing for ops without a rule. The shapes are those of tensors, whose
/// sizes fit in 63 bits.
std::optional<std::string> result_shape_fault(std::string_view op_type,
                                              const std::vector<const Shape*>& operands,
                                              const Shape& result);

}  // namespace npu
