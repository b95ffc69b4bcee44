// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ir/size_expression.hpp"
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

/// A size of a template, and the values that the template is made of, of which the first ones make
/// one point.
struct TriedSize {
  TriedSize(std::string symbol, std::int64_t multiple) : name(std::move(symbol)), step(multiple) {}

  std::string name;
  std::int64_t step = 1;
  std::int64_t min = 1;
  std::optional<std::int64_t> max = {};
  std::vector<std::int64_t> tried = {};
};

/// Whether a model does at some sizes what its template does; nothing if it has no such sizes.
using AgreesAt = std::function<std::optional<bool>(const SizeBindings& point)>;

/// Brings the ends of ranges together until the template holds at them: each size alone, beside
/// values that were tried, and all together. Between an end and what was tried, a model is taken
/// to change once at most. Sizes without a largest one are tried up to 32,768. At most some 20
/// questions for each size.
void end_ranges(std::vector<TriedSize>& sizes, const AgreesAt& agrees);

}  // namespace npu::onnx
