// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "ir/bind_sizes.hpp"
#include "ir/size_expression.hpp"

namespace npu::states {

/// An integer for each place of a tensor: a sum of multiples of the place's indices, and a rest
/// that all places share.
struct Affine {
  std::vector<std::int64_t> factors;  ///< by dimension; 0 along those of one element
  SizeExpression rest;

  bool is_shared() const noexcept;
  bool operator==(const Affine&) const = default;
};

/// Where all of `atoms` are at most 0; with `is_opposite`, where one of them is more.
struct Condition {
  std::vector<Affine> atoms = {};
  bool is_opposite = false;

  bool is_always() const noexcept { return atoms.empty() && !is_opposite; }
  bool is_never() const noexcept { return atoms.empty() && is_opposite; }
  bool operator==(const Condition&) const = default;
};

/// What a tensor that is computed from sizes and indices alone holds: integers, or one of two
/// numbers by a condition on the place; a bool is 1 or 0.
struct Formula {
  std::optional<Affine> integer = {};
  Condition when = {};
  double yes = 0;
  double no = 0;

  /// The one number that all places have, if it has no symbols.
  std::optional<double> number() const;
};

/// What is known of sizes: the dimensions of the tensor at hand and the ranges of symbols.
struct FormulaSpace {
  const SizeShape& shape;
  const SizeRanges& ranges;
};

Formula constant_formula(double number);
/// Of a constant: one number, a sequence, or two numbers, one of them between two diagonals or on
/// one side of one.
std::optional<Formula> constant_formula(const std::vector<double>& values, const Shape& shape,
                                        bool is_integer);
Formula integer_formula(std::size_t rank, SizeExpression rest);
/// One of two numbers; a single one where they are equal.
Formula choice_formula(Condition when, double yes, double no);

/// The formula of a tensor that is broadcast to `rank` dimensions.
Affine broadcast(const Affine& value, std::size_t rank);
Formula broadcast(Formula value, std::size_t rank);

Affine add(const Affine& a, const Affine& b, std::int64_t factor = 1);
Affine multiply(const Affine& a, std::int64_t factor);

/// Where `a` is at most 0: always, never, or a condition of one atom.
Condition at_most_zero(Affine a, const FormulaSpace& space);
Condition opposite(Condition condition);
/// Without the atoms that hold wherever another one does; of two that are alike the first stays.
std::vector<Affine> needed_atoms(const std::vector<Affine>& atoms, const FormulaSpace& space);
/// Where both hold; nothing if that is no condition of this form.
std::optional<Condition> both(const Condition& a, const Condition& b);

/// Two choices of the same rank joined element by element; nothing if more than two numbers come
/// out, or their places cannot be told.
std::optional<Formula> join(const Formula& a, const Formula& b,
                            const std::function<double(double, double)>& function);

}  // namespace npu::states
