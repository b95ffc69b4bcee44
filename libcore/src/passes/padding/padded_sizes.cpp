// SPDX-License-Identifier: Apache-2.0
// Sizes of a padded graph: which there are, and how expressions of them compare.
//
// Expressions are compared by value at all of SizeSymbols::samples, with the capacity as the
// largest size, since different forms may be equal. O(samples x length) for a comparison.
#include "passes/padding/padded_sizes.hpp"

#include <algorithm>
#include <utility>

namespace npu::padding {

PaddedSizes::PaddedSizes(std::vector<PaddedSymbol> symbols) : symbols_(std::move(symbols)) {
  std::vector<SizeSymbol> list;
  for (const PaddedSymbol& symbol : symbols_) {
    capacities_.emplace(symbol.name, symbol.capacity);
    list.push_back({.name = symbol.name,
                    .min = symbol.min,
                    .max = symbol.capacity,
                    .multiple_of = symbol.multiple_of,
                    .of = {}});
  }
  samples_ = SizeSymbols::of(std::move(list)).samples();
  samples_.push_back(capacities_);
}

const PaddedSymbol* PaddedSizes::find(std::string_view name) const noexcept {
  const auto found = std::find_if(symbols_.begin(), symbols_.end(),
                                  [&](const PaddedSymbol& s) { return s.name == name; });
  return found == symbols_.end() ? nullptr : &*found;
}

bool PaddedSizes::same(const SizeExpression& a, const SizeExpression& b) const {
  if (a == b) return true;
  return std::all_of(samples_.begin(), samples_.end(), [&](const SizeBindings& sample) {
    return a.evaluate(sample) == b.evaluate(sample);
  });
}

bool PaddedSizes::at_most(const SizeExpression& a, const SizeExpression& b) const {
  return std::all_of(samples_.begin(), samples_.end(), [&](const SizeBindings& sample) {
    return a.evaluate(sample) <= b.evaluate(sample);
  });
}

std::string PaddedSizes::fault(const SizeExpression& size) const {
  const std::int64_t largest = size.evaluate(capacities_);
  for (const SizeBindings& sample : samples_) {
    const std::int64_t value = size.evaluate(sample);
    if (value >= 1 && value <= largest) continue;
    return "is " + std::to_string(value) + " for " + bindings_text(sample) + ", expected 1 to " +
           std::to_string(largest) + ", its value at the capacities";
  }
  return {};
}

TensorSizes::TensorSizes(const Graph& graph) {
  shapes_.resize(graph.tensors().size());
  for (std::size_t i = 0; i < graph.tensors().size(); ++i) {
    const auto id = id_at<TensorId>(i);
    for (const std::int64_t size : graph.tensor(id).shape) shapes_[id].emplace_back(size);
  }
}

bool TensorSizes::varies(TensorId id) const {
  return std::any_of(shapes_[id].begin(), shapes_[id].end(),
                     [](const SizeExpression& size) { return !size.is_constant(); });
}

}  // namespace npu::padding
