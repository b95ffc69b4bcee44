// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "importer.hpp"
#include "ir/size_expression.hpp"
#include "ir/size_symbols.hpp"
#include "size_solver.hpp"

namespace npu::onnx {

/// The symbolic dimensions of a model's inputs, and what the model says of them: names that its
/// nodes make equal are one size, one that is a sum of others follows from them.
class SizeRelations {
 public:
  SizeRelations() = default;
  /// Dimensions that `settings` binds are numbers.
  SizeRelations(const ModelProto& model, std::string_view bytes, const Settings& settings);

  /// The name of a dimension: its symbol, or INPUT.AXIS if it has none.
  static std::string name_of(const ValueProto& input, std::size_t axis);
  /// What a dimension is in terms of those that are open. Nothing for a name that no input has.
  std::optional<SizeExpression> size(const std::string& name) const;
  /// All names, in terms of those that are open.
  const std::map<std::string, SizeExpression>& sizes() const noexcept { return sizes_; }
  /// The number that it is, if it follows from those that are bound.
  std::optional<std::int64_t> number(const std::string& name) const;
  /// Those that nothing else gives a number, each once, with where it stands. Sizes are over
  /// symbols(), in this order.
  const std::vector<UnboundSize>& open() const noexcept { return open_; }
  /// The largest value of open()[i] for which tables of the model have rows; nothing: no table
  /// says.
  std::optional<std::int64_t> most(std::size_t index) const { return most_[index]; }
  /// The symbol of open()[i] in expressions.
  static std::string symbol(std::size_t index) { return "d" + std::to_string(index); }

 private:
  void relate(const ModelProto& model, std::string_view bytes, const Settings& settings,
              SizeSolver& solver);

  std::set<std::string_view> constants_;
  std::map<std::string, SizeExpression> sizes_;
  std::vector<UnboundSize> open_;
  std::vector<std::optional<std::int64_t>> most_;  // by open_
};

}  // namespace npu::onnx
