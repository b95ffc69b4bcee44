// SPDX-License-Identifier: Apache-2.0
// Solves linear equations between sizes one by one. O(symbols) substitutions for each that is new.
#include "size_solver.hpp"

#include <algorithm>
#include <cstdint>

namespace npu::onnx {
namespace {

// Sizes are no differences where they can be sums: total = past + new, not new = total - past.
bool has_negative_factor(const SizeExpression& size) {
  for (const std::string& name : size.symbols()) {
    if (size.linear_factor(name) < 0) return true;
  }
  return size.substitute([&] {
               SizeSubstitution zeros;
               for (const std::string& name : size.symbols()) zeros.emplace(name, 0);
               return zeros;
             }())
             .constant()
             .value_or(0) < 0;
}

}  // namespace

SizeExpression SizeSolver::current(const SizeExpression& size) const {
  return size.is_constant() || solution_.empty() ? size : size.substitute(solution_);
}

void SizeSolver::equate(const SizeExpression& a, const SizeExpression& b) {
  const SizeExpression difference = current(a) - current(b);
  if (difference.is_constant()) return;
  std::optional<std::pair<std::string, SizeExpression>> best;
  bool best_is_sum = false;
  for (const std::string& name : symbols_) {
    const std::int64_t factor = difference.linear_factor(name);
    if (factor == 0) continue;
    const SizeExpression rest = difference - SizeExpression(factor) * SizeExpression::symbol(name);
    // factor * name + rest = 0
    const SizeExpression scaled = factor > 0 ? SizeExpression(0) - rest : rest;
    const std::int64_t divisor = factor > 0 ? factor : -factor;
    if (!(scaled.modulo(divisor) == SizeExpression(0))) continue;
    const SizeExpression value = scaled.floor_divide(divisor);
    const bool is_sum = !has_negative_factor(value);
    if (best && best_is_sum && !is_sum) continue;
    best.emplace(name, value);
    best_is_sum = is_sum;
  }
  // A negative number is no size.
  if (!best || (best->second.is_constant() && *best->second.constant() < 0)) return;
  for (auto& [name, value] : solution_) value = value.substitute({*best});
  solution_.insert(*best);
}

void SizeSolver::settle() {
  for (const auto& [size, count] : reached_) {
    const SizeExpression is = current(size);
    // A size of its own, of which nothing else is known; or a number, for what nothing else gives.
    const bool is_symbol = std::find(symbols_.begin(), symbols_.end(), is.text()) != symbols_.end();
    const bool is_free = is_symbol && !current(count).symbols().contains(is.text());
    if (is_free || is.is_constant()) equate(is, count);
  }
}

std::optional<std::int64_t> SizeSolver::most(const std::string& symbol) const {
  std::optional<std::int64_t> most;
  for (const auto& [count, limit] : limits_) {
    // symbol + number <= limit
    const auto number = (current(count) - SizeExpression::symbol(symbol)).constant();
    if (!number || *number > limit) continue;
    most = std::min(most.value_or(INT64_MAX), limit - *number);
  }
  return most;
}

}  // namespace npu::onnx
