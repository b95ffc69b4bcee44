// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "npu/ir/graph.hpp"
#include "passes/quantize/precision_problem.hpp"
#include "quant/choose_range.hpp"
#include "quant/tensor_ranges.hpp"

namespace npu::quantize {

/// A value whose channels are divided by the factors of its range before products read them; the
/// weights of the products are multiplied.
struct SmoothedValue {
  std::int32_t value = -1;
  const TensorRange* range = nullptr;
  NodeId into;  ///< the op whose constants are divided; invalid: a multiplication in front of
                ///< the products
  std::vector<std::int32_t> passed;  ///< values between that op and this one, divided as well
  std::vector<NodeId> products;      ///< all that read the value, or those in int8
};

struct Smoothing {
  std::vector<SmoothedValue> values;
  // Places in `values`:
  std::vector<std::int32_t> of_value;  ///< by value: whose factors divide the tensor itself, or -1
  std::map<NodeId, std::size_t> of_product;
  std::map<NodeId, std::size_t> of_source;  ///< ops whose constants are divided
};

/// What a multiplication in front of products has to gain to be worth its time.
constexpr double kMultiplicationGain = 10;

/// Which values are smoothed: those with factors that an op in front can take in exactly (a norm,
/// or a product, through ReLU and pools) if products alone read them, and those that gain at least
/// `multiplication_gain` by a multiplication of their own. O(values and readers).
Smoothing plan_smoothing(const Graph& graph, const PrecisionProblem& problem,
                         const std::vector<char>& int8, const TensorRanges& ranges,
                         double multiplication_gain = kMultiplicationGain);
/// That of a problem in which nothing is smoothed.
Smoothing no_smoothing(const PrecisionProblem& problem);

/// The extremes of a tensor with its channels divided.
NumberRange divided_range(const TensorRange& range, const std::vector<float>& factors);

/// The constants of a norm or product that its result is proportional to, by place in its inputs,
/// each with the axis of the channels; empty: it is not proportional to constants of `channels`.
std::vector<std::pair<std::size_t, std::int32_t>> proportional_operands(const Graph& graph,
                                                                        const Node& node,
                                                                        std::int64_t channels);

/// The place of a product's bias among its inputs; nothing if it has none.
std::optional<std::size_t> bias_operand(const Graph& graph, const Node& product);

}  // namespace npu::quantize
