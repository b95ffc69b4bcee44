// SPDX-License-Identifier: Apache-2.0
// The dtype of a result of operands of several.
#pragma once

#include <initializer_list>
#include <string_view>

#include "emit/model.hpp"

namespace npu::opencl {

DType promote(DType a, DType b);
/// PyTorch's result dtype of the arguments named, tensors or numbers.
DType promoted(const Model& model, const BoundNode& node,
               std::initializer_list<std::string_view> arguments);

}  // namespace npu::opencl
