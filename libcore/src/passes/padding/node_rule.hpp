// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ops/schema.hpp"
#include "passes/padding/padded_sizes.hpp"
#include "passes/padding/tail_class.hpp"

namespace npu::padding {

/// A dimension of an operand.
struct Place {
  std::int32_t operand = 0;
  std::int32_t dim = 0;
  bool operator==(const Place&) const = default;
};

/// When a result has a property along a dimension.
enum class Keep : std::uint8_t {
  kNo,
  kYes,  ///< whatever the operands have
  kAll,  ///< if all operands that count have it
  kAny,  ///< if one has it and no other spoils it: 0 times anything finite
};

/// What an op says of one dimension of one result.
struct ResultDim {
  std::int32_t result = 0;
  std::int32_t dim = 0;
  std::vector<Place> from = {};     ///< the dimensions of operands that lie along it
  std::vector<Place> values = {};   ///< those of `from` whose values it is made of; not a condition
  std::int32_t value_operands = 0;  ///< operands that count for Keep::kAll of zero and lowest
  Keep repeat = Keep::kNo;
  Keep zero = Keep::kNo;
  Keep lowest = Keep::kNo;
  Keep finite = Keep::kNo;        ///< kAll: if all operands are finite everywhere
  bool zero_from_lowest = false;  ///< exp: rows of minus infinity become 0
  bool repeat_from_zero = false;  ///< cumulative sums: rows of 0 repeat the last sum
  /// Rows of 0 and of minus infinity hold only if those of all other dimensions are finite or
  /// repeat a valid row: a softmax of nothing but minus infinity is no number.
  bool only_if_finite = false;
  bool is_resized = false;  ///< it has another size than where it comes from
  /// A dimension whose rows the op overwrites, so that they need not be finite.
  std::optional<Place> overwritten = {};
};

/// What an op needs, so that its valid rows are right.
struct TailNeed {
  std::vector<Place> places = {};        ///< one of them is enough
  std::vector<TailClass> accepted = {};  ///< one of them is enough
  Fill fill = Fill::kZero;               ///< what a mask writes where it is not met
};

/// Ops that no class of rows suits, but that another form of them does.
enum class Rewriting : std::uint8_t {
  kNone,
  kMean,           ///< a sum, divided by the number of valid rows
  kVariance,       ///< a mean of rows, and what they are above or below it
  kLastRow,        ///< an index that counts from the end
  kRowsFromEnd,    ///< rows that are counted from it
  kLastState,      ///< of a recurrence, which is the last valid row of its results
  kIndices,        ///< indices that may count from the end: as ones from the front
  kAttentionMask,  ///< an attention over padded keys without a mask
  kMovedRows,      ///< a view that joins or parts padded sizes: rows at places that are computed
  kConcatenated,   ///< operands behind rows of a padded size: each row of the one that has it
  kReflected,      ///< rows behind the end that repeat those in front of it, backwards
  kResampled,      ///< a resampling between sizes that vary: rows around each place, weighed
};

/// Dimensions [begin, end) of an operand and of a result that have the same elements in order.
struct ViewGroup {
  std::size_t from_begin = 0, from_end = 0;
  std::size_t to_begin = 0, to_end = 0;
};

/// What the rule of its class says of one node.
struct NodeRule {
  std::vector<ResultDim> results = {};
  std::vector<TailNeed> needs = {};
  std::vector<Place> consumed = {};        ///< dimensions that are gone behind the node
  ValueClass value = ValueClass::kFinite;  ///< of the valid part of the results
  Rewriting rewriting = Rewriting::kNone;
  /// A fixed number of rows of the first operand, the first of them counted from the end.
  struct RowsFromEnd {
    std::int32_t dim = 0;
    std::int64_t before = 0;  ///< rows from the first of them to the end
    std::int64_t count = 0;
  };
  RowsFromEnd from_end = {};
  std::vector<ViewGroup> moved = {};  ///< for kMovedRows: those of a view whose rows move
  /// Operands that are indices into a dimension of a padded size.
  std::vector<std::pair<std::int32_t, SizeExpression>> unguarded = {};
  std::string refusal = {};  ///< why the node has no rule; empty if it has
};

/// A node whose operands or results vary, as rules look at it.
class PaddedNode {
 public:
  PaddedNode(const Graph& graph, const Node& node, const BoundNode& bound, const PaddedSizes& sizes,
             const TensorSizes& shapes, const IdVector<TensorId, TensorTails>& tails)
      : graph_(graph), node_(node), bound_(bound), sizes_(sizes), shapes_(shapes), tails_(tails) {}

  const Graph& graph() const noexcept { return graph_; }
  const Node& node() const noexcept { return node_; }
  const BoundNode& bound() const noexcept { return bound_; }
  const PaddedSizes& sizes() const noexcept { return sizes_; }
  const TensorSizes& shapes() const noexcept { return shapes_; }

  std::size_t operands() const noexcept { return node_.inputs.size(); }
  std::int32_t rank(std::size_t operand) const;
  const SizeShape& operand(std::size_t i) const { return shapes_.of(node_.inputs[i]); }
  const SizeShape& result(std::size_t i = 0) const { return shapes_.of(node_.outputs[i]); }
  const TensorInfo& operand_info(std::size_t i) const { return graph_.tensor(node_.inputs[i]); }
  bool operand_varies(std::size_t i, std::int32_t dim) const;
  bool operand_varies(std::size_t i) const { return shapes_.varies(node_.inputs[i]); }
  /// Whether an operand has one row along a dimension, which all rows of a result share, or lacks
  /// the dimension.
  bool broadcasts(std::size_t i, std::int32_t dim) const;
  bool result_varies(std::size_t i, std::int32_t dim) const;
  bool is_constant(std::size_t operand) const { return tails_[node_.inputs[operand]].is_constant; }
  ValueClass value(std::size_t operand) const { return tails_[node_.inputs[operand]].value; }

  /// The operand that a tensor argument is bound to.
  std::optional<std::size_t> argument(std::string_view name) const;
  /// Operands of a list of tensors, -1 for None.
  std::vector<std::int32_t> arguments(std::string_view name) const;
  /// A dimension in an argument, counted from the front, of `rank`; nothing if it is out of range.
  std::optional<std::int32_t> dimension(std::string_view name, std::int32_t rank) const;
  /// The same for a list; all dimensions if it is None or empty. Empty if one is out of range.
  std::vector<std::int32_t> dimensions(std::string_view name, std::int32_t rank) const;
  /// An integer in an argument; `otherwise` if there is none.
  std::int64_t integer_or(std::string_view name, std::int64_t otherwise) const;
  double number_or(std::string_view name, double otherwise) const;
  /// The dimensions of a result that vary.
  std::vector<std::int32_t> varying_dims(std::size_t result) const;
  /// Whether two sizes are one.
  bool same(const SizeExpression& a, const SizeExpression& b) const { return sizes_.same(a, b); }

 private:
  const Graph& graph_;
  const Node& node_;
  const BoundNode& bound_;
  const PaddedSizes& sizes_;
  const TensorSizes& shapes_;
  const IdVector<TensorId, TensorTails>& tails_;
};

}  // namespace npu::padding
