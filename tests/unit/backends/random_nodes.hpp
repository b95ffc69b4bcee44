// SPDX-License-Identifier: Apache-2.0
// Random nodes of the ops in the host target's npu table: shapes, attributes and which operands are
// weights are drawn within what the table states.
#pragma once

#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "graph_builder.hpp"
#include "npu/tensor/tensor.hpp"

namespace npu::test {

/// The same draws for the same seed.
struct Random {
  explicit Random(std::uint64_t seed) : engine(seed) {}
  std::int64_t pick(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(engine() % static_cast<std::uint64_t>(high - low + 1));
  }
  bool coin() { return pick(0, 1) == 1; }
  template <typename T>
  T one_of(const std::vector<T>& values) {
    return values[static_cast<std::size_t>(pick(0, static_cast<std::int64_t>(values.size()) - 1))];
  }
  Shape shape(std::int64_t low, std::int64_t high, std::int64_t most = 6) {
    Shape result;
    for (std::int64_t i = pick(low, high); i > 0; --i) result.push_back(pick(1, most));
    return result;
  }
  std::mt19937_64 engine;
};

/// What values an operand gets.
enum class Values {
  kAny,
  kPositive,
  kAwayFromZero,
  kIndices,    ///< 0 to 7
  kAnyIndices  ///< -8 to 7
};

/// A node under construction.
struct RandomNode {
  RandomNode(Random& source, std::string type) : random(source), dtype(std::move(type)) {}

  /// False for a dtype that the table does not have, which then stands alone.
  bool mixes_dtypes() const { return dtype != "float64"; }

  /// An operand: a graph input, or as often a weight where the op usually has one.
  std::string operand(const Shape& shape, bool may_be_weight = false, Values kind = Values::kAny,
                      std::string type = "") {
    if (type.empty()) type = dtype;
    const std::string name = "t" + std::to_string(values.size());
    if (may_be_weight && random.coin()) {
      graph.weight(name, shape, type);
      values["p_" + name] = kind;
      operands.push_back("p_" + name);
    } else {
      graph.input(name, shape, type);
      values[name] = kind;
      operands.push_back(name);
    }
    return operands.back();
  }
  void finish(const std::string& op, const Shape& result, const Json& attrs = Json::object(),
              std::string type = "") {
    graph.node("y", op, operands, result, attrs, type.empty() ? dtype : type).output("y");
  }

  Random& random;
  std::string dtype;
  GraphBuilder graph;
  std::vector<std::string> operands;
  std::map<std::string, Values> values;
};

/// Draws operands, attributes and results of a node of `op`, one of the npu table.
void draw_node(RandomNode& node, const std::string& op);
/// The same for resampling and recurrent layers; false for another op.
bool draw_layer(RandomNode& node, const std::string& op);

/// The same for ops of integers and truth, and those that index or put tensors together: a function
/// that draws a node of `op`, or null.
using NodeGenerator = void (*)(RandomNode& node, const std::string& op);
NodeGenerator typed_generator_of(const std::string& op);
void draw_typed_binary(RandomNode& node, const std::string& op);
/// A shape that broadcasts to another one.
Shape broadcast_from(Random& random, const Shape& shape);

/// Values that bfloat16 holds, so that both dtypes get the same.
Tensor random_values(const TensorInfo& info, Values kind, Random& random);

}  // namespace npu::test
