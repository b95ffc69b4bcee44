// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "passes/fusion/fusion_builder.hpp"

namespace npu::fusion {

/// Whether an addition multiplies its second operand with something else than 1.
bool has_factor(const Node& node);
/// The only attribute of a node but for a factor of 1, if it is a number.
std::optional<double> only_number(const Node& node);

/// Finds a function that a model writes out as several ops, by an expression such as
/// "mul(mul(x,0.5),add(erf(_),1))|gelu(x)":
///
///   name(a,b)   an op of that name (functional_name) with these operands, of add and mul in either
///               order; a number at the end is its only_number(), as far as float32 holds it;
///               without one attributes are not looked at
///   a|b         one of both
///   x           a tensor, the same one wherever it stands
///   _           any tensor
///
/// The nodes may join the group of the one that gives the result, and inner results have one
/// reader.
class WrittenForm {
 public:
  WrittenForm(FusionBuilder& builder, Readers readers) : builder_(builder), readers_(readers) {}

  /// Whether `n` gives the result of such an expression. The time grows with its length alone.
  bool matches(std::int32_t n, std::string_view form);

  /// Of the last match, in the order in which they stand in the expression.
  const NodeList& nodes() const noexcept { return nodes_; }
  TensorId x() const noexcept { return x_; }

 private:
  bool matches_operand(TensorId id, std::int32_t reader, std::string_view form);

  FusionBuilder& builder_;
  Readers readers_;
  NodeList nodes_;
  TensorId x_;
};

}  // namespace npu::fusion
