// SPDX-License-Identifier: Apache-2.0
// How a kernel computes an op: a row of the table.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "emit/index.hpp"
#include "npu/ir/graph.hpp"

namespace npu {
class BoundNode;
}

namespace npu::opencl {

class Emitter;
class Model;

/// Gives one element of a result: emits what it needs and returns an expression.
using ElementRule = std::string (*)(Emitter& emitter, const BoundNode& node, int result,
                                    const Index& index);

enum class OpClass : std::uint8_t {
  kView,     ///< moves nothing: computed wherever it is read
  kElement,  ///< an element of the result is computed by itself
  kRows,     ///< a work group reduces rows of an operand: reductions, softmax, norms
  kProduct,  ///< sums of products: convolutions and matrix products, in tiles
  kBlock,    ///< a kernel of its own form
};

/// How the shape of the first result follows.
enum class ShapeRule : std::uint8_t { kOwn, kFirst, kBroadcast };
/// How the dtype of the first result follows.
enum class DTypeRule : std::uint8_t { kOwn, kFirst, kPromoted, kFloat, kBool };

struct OpRow {
  std::string_view op_type;
  OpClass kind = OpClass::kElement;
  ElementRule element = nullptr;
  ShapeRule shape = ShapeRule::kOwn;
  DTypeRule dtype = DTypeRule::kFirst;
  /// Whether a node of an op that is no view is one all the same, as it moves nothing; may be null.
  bool (*moves_nothing)(const Model& model, NodeId id) = nullptr;
};

/// Gives an op's row; null for an op that is not run.
using OpTable = const OpRow* (*)(std::string_view op_type);

}  // namespace npu::opencl
