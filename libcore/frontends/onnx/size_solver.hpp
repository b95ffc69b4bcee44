// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ir/size_expression.hpp"

namespace npu::onnx {

/// A dimension or a number of which something is known; nothing: unknown.
using Dim = std::optional<SizeExpression>;

/// Equations between sizes, solved as they come: each one that is new expresses a symbol by others.
class SizeSolver {
 public:
  /// Symbols in the order of their first appearance; later ones are expressed by earlier ones where
  /// there is the choice.
  explicit SizeSolver(std::vector<std::string> symbols) : symbols_(std::move(symbols)) {}

  /// Two sizes that must be equal. What contradicts, or does not give a symbol as whole number of
  /// others, says nothing here: the import will.
  void equate(const SizeExpression& a, const SizeExpression& b);
  void equate(const Dim& a, const Dim& b) {
    if (a && b) equate(*a, *b);
  }
  /// `index` counts up to `size` when elements below it are read, all of them if nothing else says
  /// how many there are; decided by settle().
  void reaches(const Dim& size, const Dim& count) {
    if (size && count) reached_.emplace_back(*size, *count);
  }
  /// `count` is at most `most`, a number.
  void limit(const Dim& count, const Dim& most) {
    if (count && most && most->is_constant()) limits_.emplace_back(*count, *most->constant());
  }
  void settle();

  /// What limits say of a symbol that is not expressed by others, behind settle().
  std::optional<std::int64_t> most(const std::string& symbol) const;

  /// With every symbol that is expressed by others replaced.
  SizeExpression current(const SizeExpression& size) const;

 private:
  std::vector<std::string> symbols_;
  SizeSubstitution solution_;  // of no symbol that is expressed itself
  std::vector<std::pair<SizeExpression, SizeExpression>> reached_;
  std::vector<std::pair<SizeExpression, std::int64_t>> limits_;
};

}  // namespace npu::onnx
