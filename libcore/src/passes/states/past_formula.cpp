// SPDX-License-Identifier: Apache-2.0
// Arithmetic of formulas: what masks and positions of a decoder are made of. A condition is a
// conjunction of linear inequalities, or the opposite of one, which is what causal masks, windows
// and lengths are; anything else has no formula. O(atoms x rank) for an operation.
#include "passes/states/past_formula.hpp"

#include <algorithm>
#include <utility>

namespace npu::states {
namespace {

/// The largest value of an affine form, or the least one.
SizeExpression extreme(const Affine& a, const FormulaSpace& space, bool largest) {
  SizeExpression value = a.rest;
  for (std::size_t d = 0; d < a.factors.size(); ++d) {
    const std::int64_t factor = a.factors[d];
    if (factor == 0 || (factor > 0) != largest) continue;
    value = value + SizeExpression(factor) * (space.shape[d] - SizeExpression(1));
  }
  return value;
}

/// The condition's atoms as a conjunction, if it is one.
std::optional<std::vector<Affine>> conjunction(const Condition& condition) {
  if (!condition.is_opposite) return condition.atoms;
  if (condition.atoms.size() != 1) return std::nullopt;
  // Not a <= 0 is 1 - a <= 0.
  Affine negated = multiply(condition.atoms.front(), -1);
  negated.rest = negated.rest + SizeExpression(1);
  return std::vector<Affine>{std::move(negated)};
}

}  // namespace

bool Affine::is_shared() const noexcept {
  return std::all_of(factors.begin(), factors.end(), [](std::int64_t f) { return f == 0; });
}

std::optional<double> Formula::number() const {
  if (integer) {
    const auto constant = integer->rest.constant();
    if (!integer->is_shared() || !constant) return std::nullopt;
    return static_cast<double>(*constant);
  }
  if (when.is_always()) return yes;
  if (when.is_never()) return no;
  return std::nullopt;
}

Formula constant_formula(double number) { return {.yes = number, .no = number}; }

Formula integer_formula(std::size_t rank, SizeExpression rest) {
  return {.integer = Affine{std::vector<std::int64_t>(rank, 0), std::move(rest)}};
}

Formula choice_formula(Condition when, double yes, double no) {
  if (when.is_always() || yes == no) return constant_formula(yes);
  if (when.is_never()) return constant_formula(no);
  if (when.is_opposite) return {.when = {std::move(when.atoms)}, .yes = no, .no = yes};
  return {.when = std::move(when), .yes = yes, .no = no};
}

Affine broadcast(const Affine& value, std::size_t rank) {
  Affine result{std::vector<std::int64_t>(rank, 0), value.rest};
  std::copy_backward(value.factors.begin(), value.factors.end(), result.factors.end());
  return result;
}

Formula broadcast(Formula value, std::size_t rank) {
  if (value.integer) value.integer = broadcast(*value.integer, rank);
  for (Affine& atom : value.when.atoms) atom = broadcast(atom, rank);
  return value;
}

Affine add(const Affine& a, const Affine& b, std::int64_t factor) {
  Affine sum = a;
  for (std::size_t d = 0; d < sum.factors.size(); ++d) sum.factors[d] += factor * b.factors[d];
  sum.rest = sum.rest + SizeExpression(factor) * b.rest;
  return sum;
}

Affine multiply(const Affine& a, std::int64_t factor) {
  Affine product = a;
  for (std::int64_t& each : product.factors) each *= factor;
  product.rest = SizeExpression(factor) * product.rest;
  return product;
}

Condition at_most_zero(Affine a, const FormulaSpace& space) {
  if (extreme(a, space, true).bounds(space.ranges).max <= 0) return {};
  if (extreme(a, space, false).bounds(space.ranges).min > 0) return {.is_opposite = true};
  return {.atoms = {std::move(a)}};
}

Condition opposite(Condition condition) {
  condition.is_opposite = !condition.is_opposite;
  return condition;
}

std::vector<Affine> needed_atoms(const std::vector<Affine>& atoms, const FormulaSpace& space) {
  const auto follows = [&](const Affine& a, const Affine& from) {
    return at_most_zero(add(a, from, -1), space).is_always();
  };
  std::vector<Affine> kept;
  for (std::size_t i = 0; i < atoms.size(); ++i) {
    bool is_implied = false;
    for (std::size_t k = 0; k < atoms.size() && !is_implied; ++k) {
      is_implied = k != i && follows(atoms[i], atoms[k]) && (k < i || !follows(atoms[k], atoms[i]));
    }
    if (!is_implied) kept.push_back(atoms[i]);
  }
  return kept;
}

std::optional<Condition> both(const Condition& a, const Condition& b) {
  if (a.is_never() || b.is_never()) return Condition{.is_opposite = true};
  if (a.is_always() || a == b) return b;
  if (b.is_always()) return a;
  auto atoms = conjunction(a);
  const auto others = conjunction(b);
  if (!atoms || !others) return std::nullopt;
  for (const Affine& atom : *others) {
    if (std::find(atoms->begin(), atoms->end(), atom) == atoms->end()) atoms->push_back(atom);
  }
  return Condition{.atoms = *std::move(atoms)};
}

std::optional<Formula> join(const Formula& a, const Formula& b,
                            const std::function<double(double, double)>& function) {
  if (a.integer || b.integer) return std::nullopt;
  const double yes_yes = function(a.yes, b.yes), yes_no = function(a.yes, b.no);
  const double no_yes = function(a.no, b.yes), no_no = function(a.no, b.no);
  if (a.number()) return choice_formula(b.when, yes_yes, yes_no);
  if (b.number()) return choice_formula(a.when, yes_yes, no_yes);
  if (a.when == b.when) return choice_formula(a.when, yes_yes, no_no);
  if (yes_yes == yes_no && no_yes == no_no) return choice_formula(a.when, yes_yes, no_no);
  if (yes_yes == no_yes && yes_no == no_no) return choice_formula(b.when, yes_yes, no_no);
  // One case that differs from the three others.
  const auto single = [](const Condition& first, const Condition& second, double inside,
                         double outside) -> std::optional<Formula> {
    auto when = both(first, second);
    if (!when) return std::nullopt;
    return choice_formula(*std::move(when), inside, outside);
  };
  if (yes_no == no_yes && no_yes == no_no) return single(a.when, b.when, yes_yes, no_no);
  if (yes_yes == no_yes && no_yes == no_no) {
    return single(a.when, opposite(b.when), yes_no, no_no);
  }
  if (yes_yes == yes_no && yes_no == no_no) {
    return single(opposite(a.when), b.when, no_yes, no_no);
  }
  if (yes_yes == yes_no && yes_no == no_yes) {
    return single(opposite(a.when), opposite(b.when), no_no, yes_yes);
  }
  return std::nullopt;
}

std::optional<Formula> constant_formula(const std::vector<double>& values, const Shape& shape,
                                        bool is_integer) {
  if (values.empty()) return std::nullopt;
  const bool is_one =
      std::all_of(values.begin(), values.end(), [&](double v) { return v == values.front(); });
  if (is_one && is_integer) {
    return integer_formula(shape.size(), static_cast<std::int64_t>(values.front()));
  }
  if (is_one) return constant_formula(values.front());
  std::vector<std::size_t> dims;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] != 1) dims.push_back(d);
  }
  if (dims.size() == 1 && is_integer) {
    const double step = values[1] - values[0];
    for (std::size_t i = 1; i < values.size(); ++i) {
      if (values[i] - values[i - 1] != step) return std::nullopt;
    }
    Formula result = integer_formula(shape.size(), static_cast<std::int64_t>(values[0]));
    result.integer->factors[dims[0]] = static_cast<std::int64_t>(step);
    return result;
  }
  if (dims.size() != 2) return std::nullopt;
  // The first row and the first column begin with what stands between the two diagonals.
  const auto columns = npu::index_of(shape[dims[1]]);
  const std::size_t rows = values.size() / columns;
  const double inside = values[0];
  const auto other =
      std::find_if(values.begin(), values.end(), [&](double v) { return v != inside; });
  const double outside = *other;
  std::size_t across = 0, down = 0;
  while (across < columns && values[across] == inside) ++across;
  while (down < rows && values[down * columns] == inside) ++down;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::size_t row = i / columns, column = i % columns;
    const bool is_above = across < columns && column >= row + across;
    const bool is_below = down < rows && row >= column + down;
    if (values[i] != (is_above || is_below ? outside : inside)) return std::nullopt;
  }
  Condition between;
  const auto bound = [&](std::int64_t row, std::size_t apart) {
    Affine distance{std::vector<std::int64_t>(shape.size(), 0),
                    SizeExpression(1 - static_cast<std::int64_t>(apart))};
    distance.factors[dims[0]] = row;
    distance.factors[dims[1]] = -row;
    between.atoms.push_back(std::move(distance));
  };
  if (across < columns) bound(-1, across);
  if (down < rows) bound(1, down);
  return choice_formula(std::move(between), inside, outside);
}

}  // namespace npu::states
