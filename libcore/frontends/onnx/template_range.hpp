// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "npu/support/json.hpp"
#include "npu/tensor/tensor.hpp"

namespace npu::onnx {

/// Whether two documents of a model at the same sizes are one.
enum class Agreement : std::uint8_t {
  kNone,    ///< they are not
  kShapes,  ///< tensors that both have are of the same shapes, and other nodes keep a shape
  kWhole,
};

/// Compares a template that is bound with what an import at these sizes writes.
/// O(size x log(size)).
Agreement agreement_of(const Json& bound, const Json& imported);

bool is_same_tensor(const Tensor& a, const Tensor& b);

/// Of two sets of values the ones that are the same in both, by name.
std::map<std::string, Tensor> alike(std::map<std::string, Tensor> values,
                                    const std::map<std::string, Tensor>& others);

}  // namespace npu::onnx
