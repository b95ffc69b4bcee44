// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "ir/graph_editor.hpp"
#include "passes/quantize/constant_writer.hpp"
#include "passes/quantize/precision_rewrite.hpp"

namespace npu::quantize {

std::vector<float> inverse_of(const std::vector<float>& factors);

/// A tensor as integers, and what these stand for.
struct IntegerPair {
  Mention integers;
  Mention floats;
};
/// Inserts a pair of nodes of the quantized_decomposed library. `more` are operands behind the
/// tensor, `attrs` those in front of the ones that every form has.
IntegerPair add_integer_pair(ConstantWriter& writer, NodeId place, const Mention& tensor,
                             const std::vector<Mention>& more, const std::string& form,
                             const Json& attrs, const QuantForm& integers);
/// The second node of such a pair once more, for readers elsewhere.
Mention add_floats(ConstantWriter& writer, NodeId place, const Mention& tensor,
                   const std::vector<Mention>& operands, const std::string& form, Json attrs,
                   const QuantForm& integers);

/// Rewrites the constants of products and norms: weights that are multiplied by the factors of what
/// they read and divided by those of what they make, and become integers with a scale for each
/// channel; biases that are divided, and corrected for the rounding of weights.
class ProductRewriter {
 public:
  ProductRewriter(Graph& graph, const PrecisionChoice& choice, const TensorRanges& ranges,
                  const QuantizationRules& rules, GraphEditor& editor, ConstantWriter& writer)
      : graph_(graph),
        choice_(choice),
        ranges_(ranges),
        rules_(rules),
        editor_(editor),
        writer_(writer) {}

  /// The product that a unit begins with, whose operand has this scale if it is int8.
  void add(const Unit& unit, bool is_int8, double operand_scale);
  /// The norms that take divisions in.
  void divide_norms();
  /// Names of products whose bias was corrected.
  const std::vector<std::string>& corrected() const noexcept { return corrected_; }

 private:
  /// Of a product: the values whose factors its operand and its result are divided by, or null.
  struct Factors {
    const SmoothedValue* in = nullptr;
    const SmoothedValue* out = nullptr;
  };
  /// Weight, axis of its channels, and what it is multiplied and divided by.
  using WeightKey = std::tuple<TensorId, std::int32_t, const SmoothedValue*, const SmoothedValue*>;

  /// A weight that became integers.
  struct WeightPair {
    Mention mention;
    std::vector<double> scales;
  };

  Factors factors_of(NodeId node) const;
  Mention scaled_weight(NodeId node, const Factors& factors);
  const WeightPair& weight_pair(NodeId node, const Factors& factors);
  /// `sum_scales`: those of the sums that a bias of int32 is added to; empty: biases stay float.
  void rewrite_bias(const Unit& unit, bool is_int8, const Factors& factors,
                    const std::vector<double>& sum_scales);
  Mention integer_bias(NodeId node, const Mention& bias, const std::vector<double>& sum_scales);
  std::vector<float> correction_of(const Unit& unit, const Factors& factors) const;

  Graph& graph_;
  const PrecisionChoice& choice_;
  const TensorRanges& ranges_;
  const QuantizationRules& rules_;
  GraphEditor& editor_;
  ConstantWriter& writer_;
  std::map<WeightKey, Mention> scaled_;
  std::map<WeightKey, WeightPair> pairs_;
  std::vector<std::string> corrected_;
};

}  // namespace npu::quantize
