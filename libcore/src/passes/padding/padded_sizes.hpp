// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/bind_sizes.hpp"
#include "ir/size_expression.hpp"
#include "ir/size_symbols.hpp"
#include "npu/ir/graph.hpp"
#include "npu/support/ids.hpp"

namespace npu::padding {

/// A size that is padded to its capacity.
struct PaddedSymbol {
  std::string name;
  std::int64_t capacity = 0;
  std::int64_t min = 1;          ///< the least size that the proof holds for, at least 1
  std::int64_t multiple_of = 1;  ///< of all sizes that it holds for
  std::string valid = {};        ///< the graph input that has the size; empty: nothing reads it
};

/// The sizes of a padded graph, and how two expressions of them compare: by their values at the
/// least sizes, at the capacities and at some between.
class PaddedSizes {
 public:
  PaddedSizes() = default;
  explicit PaddedSizes(std::vector<PaddedSymbol> symbols);

  const std::vector<PaddedSymbol>& symbols() const noexcept { return symbols_; }
  std::vector<PaddedSymbol>& symbols() noexcept { return symbols_; }
  const PaddedSymbol* find(std::string_view name) const noexcept;
  const SizeBindings& capacities() const noexcept { return capacities_; }
  const std::vector<SizeBindings>& samples() const noexcept { return samples_; }

  bool same(const SizeExpression& a, const SizeExpression& b) const;
  /// Whether a is never more than b.
  bool at_most(const SizeExpression& a, const SizeExpression& b) const;
  /// What is wrong with the size of a dimension; empty if nothing is: one that is less than 1, or
  /// more than it is at the capacities.
  std::string fault(const SizeExpression& size) const;

 private:
  std::vector<PaddedSymbol> symbols_;
  SizeBindings capacities_;
  std::vector<SizeBindings> samples_;
};

/// The sizes of all tensors of a graph that is bound at the capacities.
class TensorSizes {
 public:
  explicit TensorSizes(const Graph& graph);
  const SizeShape& of(TensorId id) const { return shapes_[id]; }
  bool varies(TensorId id, std::size_t dim) const { return !shapes_[id][dim].is_constant(); }
  bool varies(TensorId id) const;
  void set(TensorId id, std::size_t dim, SizeExpression size) {
    shapes_[id][dim] = std::move(size);
  }

 private:
  IdVector<TensorId, SizeShape> shapes_;
};

}  // namespace npu::padding
