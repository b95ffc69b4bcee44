// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "npu/ir/graph.hpp"
#include "quant/tensor_ranges.hpp"

namespace npu::quantize {

/// What an op does with numbers.
enum class UnitKind : std::uint8_t {
  kOther,      ///< only in float
  kWeighted,   ///< a product with a weight: int8 pays
  kSum,        ///< adds or multiplies two activations, each with its own scale
  kAttention,  ///< a scaled dot product attention: products on integers, softmax in float
  kProduct,    ///< a matrix product of two activations
  kFunction,   ///< an activation function by itself: a table of all integers
  kSameScale   ///< moves, compares or averages numbers: its integers have its operands' scale
};

/// Whether the result of an int8 unit is integers even if floats alone are read: kernels that give
/// floats are those of products.
constexpr bool gives_integers(UnitKind kind) noexcept {
  return kind == UnitKind::kSameScale || kind == UnitKind::kFunction;
}
/// Whether both factors of its products are activations, of more than 7 bits.
constexpr bool multiplies_activations(UnitKind kind) noexcept {
  return kind == UnitKind::kAttention || kind == UnitKind::kProduct;
}

/// Which precisions a unit may have.
enum class Allowed : std::uint8_t { kFloat, kInt8, kBoth };

/// Ops that are one kernel on integers: a product or sum with the norm and the activation behind
/// it, or any other op by itself.
struct Unit {
  std::vector<NodeId> members;  ///< the first one reads the integers
  UnitKind kind = UnitKind::kOther;
  Allowed allowed = Allowed::kFloat;
  bool has_float_result = false;  ///< of float32
  std::string reason;             ///< why it is allowed no other precision, or why it may have both
};

/// A float32 tensor that one unit makes and others read.
struct Value {
  TensorId tensor;
  std::int32_t producer = -1;         ///< unit; -1: a graph input
  std::vector<std::int32_t> readers;  ///< units, ascending
  bool is_output = false;             ///< of the graph
  bool leaves_as_integers = false;    ///< an output whose integers leave the device if it has some
  std::string why_not;                ///< why it has no form of integers; empty: it can have one
};

struct PrecisionProblem {
  std::vector<Unit> units;             ///< by the order of their first members
  std::vector<Value> values;           ///< in the order of the document
  std::vector<std::int32_t> unit_of;   ///< by NodeId
  std::vector<std::int32_t> value_of;  ///< by TensorId; -1: no value
};

/// Reads the units and values of a graph. O(nodes + edges).
PrecisionProblem build_precision_problem(const Graph& graph, const TensorRanges& ranges);

/// The operands of a unit's first member that are integers if it is int8.
std::vector<std::size_t> integer_operands(const Graph& graph, const Unit& unit);

}  // namespace npu::quantize
