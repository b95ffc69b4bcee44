// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "frontend/weight_map.hpp"
#include "ir/bind_sizes.hpp"
#include "npu/ir/graph.hpp"
#include "npu/support/ids.hpp"
#include "ops/schema.hpp"
#include "passes/states/cache_pairs.hpp"

namespace npu::states {

/// Whether a tensor of one shape becomes one of another by dimensions of 1 that are repeated.
bool stretches(const SizeShape& from, const SizeShape& to);

/// A decoder with caches that grow, as the passes here look at it: its graph at one size, and what
/// the template says of sizes.
class PastModel {
 public:
  /// Binds the template at a size of its ranges. Refers to `model` and `caches`.
  PastModel(const Template& model, const CachePairs& caches, Diagnostics& diagnostics);

  const Template& model() const noexcept { return model_; }
  const CachePairs& caches() const noexcept { return caches_; }
  const Graph& graph() const noexcept { return graph_; }
  /// Of symbols: a past of 0 rows or more.
  const SizeRanges& ranges() const noexcept { return ranges_; }

  const SizeShape& shape(TensorId id) const { return shapes_[id]; }
  bool has_past(const SizeExpression& size) const {
    return size.symbols().contains(caches_.past_symbol);
  }
  bool mentions_past(TensorId id) const;
  /// Whether an attribute of a node has to do with the past.
  bool mentions_past(const Node& node) const;

  /// The attributes of a node as the template has them.
  const Json& attrs(const Node& node) const;
  /// The size that a text in attributes stands for; nothing for what stands for none.
  std::optional<SizeExpression> size_of(const Json& value) const;
  /// An integer argument; nothing if it is none.
  std::optional<SizeExpression> size(const BoundNode& node, std::string_view argument) const;
  /// The elements of a small constant; nothing if it is none, or its data is not at hand.
  std::optional<std::vector<double>> constant(TensorId id) const;
  /// The pair whose concatenation a node is; null if it is none.
  const CachePair* pair_of(const Node& node) const;

 private:
  const Template& model_;
  const CachePairs& caches_;
  Graph graph_;
  SizeRanges ranges_;
  IdVector<TensorId, SizeShape> shapes_;
  std::unordered_map<std::string, const Json*> attrs_;
  mutable std::optional<WeightMap> weights_;
};

}  // namespace npu::states
