// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "passes/padding/node_rule.hpp"

namespace npu::padding {

inline constexpr TailClass kRepeats{.repeat = true};
inline constexpr TailClass kZeros{.zero = true};
inline constexpr TailClass kLowests{.lowest = true};
inline constexpr TailClass kFinites{.finite = true};

inline NodeRule refuse_rule(std::string why) {
  NodeRule rule;
  rule.refusal = std::move(why);
  return rule;
}

/// The least of what the valid parts of all operands hold.
ValueClass least_value(const PaddedNode& node);

/// Where a result dimension is one dimension of one operand, whose rows it has in order.
ResultDim moved_dim(std::int32_t result, std::int32_t dim, Place from);
/// The same without the property that rows repeat the last one.
ResultDim shifted_dim(std::int32_t result, std::int32_t dim, Place from);

/// A rule in which every varying dimension of an operand has one in the result, found by `place`,
/// or none (-1): "for each row, whatever the op does with the rest".
template <typename PlaceOf>
void add_rowwise(NodeRule& rule, const PaddedNode& node, std::size_t operand, std::int32_t result,
                 const PlaceOf& place, Keep zero, Keep finite) {
  for (std::int32_t d = 0; d < node.rank(operand); ++d) {
    if (!node.operand_varies(operand, d)) continue;
    const std::int32_t to = place(d);
    if (to < 0) continue;
    ResultDim along{.result = result,
                    .dim = to,
                    .from = {{static_cast<std::int32_t>(operand), d}},
                    .values = {{static_cast<std::int32_t>(operand), d}},
                    .value_operands = 1,
                    .repeat = Keep::kAll,
                    .zero = zero,
                    .finite = finite};
    rule.results.push_back(std::move(along));
  }
}

/// That a dimension of an operand has one of some classes.
inline TailNeed need_at(Place place, std::vector<TailClass> accepted, Fill fill) {
  return {.places = {place}, .accepted = std::move(accepted), .fill = fill};
}

/// "dimension 1 of its result varies, that of operand 0 does not".
std::string fixed_size_text(std::size_t operand, std::int32_t dim);

/// "'S'" of a size that varies, for messages.
std::string quoted_size(const SizeExpression& size);

/// What a variance or standard deviation takes off the number of rows that it divides by.
double variance_correction(const BoundNode& node);

/// The dimensions of a reduction, and what each dimension of the operand is in the result: -1 if
/// it is gone.
struct ReducedDims {
  std::vector<char> is_reduced;
  std::vector<std::int32_t> place;
};
ReducedDims reduced_dims(const PaddedNode& node, std::size_t operand,
                         const std::vector<std::int32_t>& dims);

}  // namespace npu::padding
