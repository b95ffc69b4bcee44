// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <random>
#include <string>
#include <vector>

#include "conformance/graph_spec.hpp"

namespace npu::conformance {

/// Values in row-major order, in double precision whatever the dtype.
struct Values {
  Shape shape;
  std::vector<double> data;
};

/// A node drawn at random, and what it has to give.
struct DrawnNode {
  std::string op;
  std::vector<Shape> operands;
  Shape result;
  Json attrs = Json::object();
  std::function<Values(const std::vector<Values>&)> evaluate = nullptr;
};

using Random = std::mt19937_64;

/// An op with its definition, apart from every backend.
struct OpDefinition {
  std::string name;
  bool takes_integers = false;
  bool takes_unsigned = false;
  std::function<DrawnNode(Random&)> draw;
};

/// Elementwise ops, products, sums, convolution and copies: what nearly every model has.
const std::vector<OpDefinition>& op_definitions();

}  // namespace npu::conformance
