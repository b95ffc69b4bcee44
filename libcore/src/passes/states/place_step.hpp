// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "ir/size_expression.hpp"
#include "ops/schema.hpp"
#include "passes/states/key_rows.hpp"
#include "passes/states/past_model.hpp"

namespace npu::states {

/// How the elements of a node's result are made of those of its operands, place by place.
struct PlaceStep {
  enum class Kind : std::uint8_t {
    kElements,  ///< by the node as it is
    kReshape,   ///< seen in another shape
    kExpand,    ///< repeated
    kRows,      ///< operand 0 itself, or those of its rows along `dim` that are new
    kTable,     ///< rows of operand 0 along `dim`, which has none of the past, from `start` on
  };
  Kind kind = Kind::kElements;
  /// For each operand, and each of its dimensions, that of the result along which its places are
  /// the same; -1: none.
  std::vector<std::vector<std::int32_t>> from = {};
  std::size_t dim = 0;
  bool takes_new = false;  ///< of kRows
  SizeExpression start = {};
  std::optional<std::size_t> mask = {};    ///< an operand that hides keys, written as a mask
  std::optional<std::size_t> hidden = {};  ///< as in Placed
};

/// The step of a node whose operands are there, placed, or made of sizes; nothing if its elements
/// are made in any other way. O(rank x operands).
std::optional<PlaceStep> place_step(const PastModel& model, const BoundNode& node,
                                    const PastTensors& tensors);

}  // namespace npu::states
