// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "ir/size_expression.hpp"
#include "npu/ir/graph.hpp"
#include "npu/tensor/tensor.hpp"

namespace npu {

/// The valid size that a graph input of a padded entry asks for, "npu.n.S"; nothing if the input is
/// none of these.
std::optional<Tensor> valid_size(const TensorInfo& input, const SizeBindings& valid);

/// What a padded entry is not proved for, "S is 1, expected at least 2"; empty if it is.
std::string unproved_size(const Graph& entry, const SizeBindings& valid);

/// Throws Error kInfeasible if a padded entry is not proved for these sizes.
void check_proved(const Graph& entry, const SizeBindings& valid);

/// The tensor in a larger shape of as many dimensions: behind the last row of each dimension come
/// copies of it. Throws Error kInvalidGraph if a dimension is smaller, or has no row to copy.
Tensor padded_rows(const Tensor& tensor, const Shape& capacity);

/// The first rows of a tensor in each dimension. Throws Error kInvalidGraph if it has fewer.
Tensor first_rows(const Tensor& tensor, const Shape& extents);

}  // namespace npu
