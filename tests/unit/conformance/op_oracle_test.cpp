// SPDX-License-Identifier: Apache-2.0
#include "conformance/op_oracle.hpp"

#include <algorithm>
#include <cmath>

#include "catch.hpp"

using npu::Shape;
using npu::conformance::DrawnNode;
using npu::conformance::op_definitions;
using npu::conformance::OpDefinition;
using npu::conformance::Random;
using npu::conformance::Values;

namespace {

const OpDefinition& definition(const std::string& name) {
  const auto& all = op_definitions();
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const OpDefinition& op) { return op.name == name; });
  REQUIRE(found != all.end());
  return *found;
}

std::int64_t count_of(const Shape& shape) {
  std::int64_t count = 1;
  for (const std::int64_t extent : shape) count *= extent;
  return count;
}

// 0, 1, 2, ...
Values counted(const Shape& shape) {
  Values values{shape, {}};
  for (std::int64_t i = 0; i < count_of(shape); ++i) {
    values.data.push_back(static_cast<double>(i));
  }
  return values;
}

// Draws until the node has these operands.
DrawnNode draw_until(const std::string& name, const std::vector<Shape>& operands) {
  Random random(1);
  for (int i = 0; i < 200000; ++i) {
    DrawnNode node = definition(name).draw(random);
    if (node.operands == operands) return node;
  }
  FAIL("never drawn");
  return {};
}

}  // namespace

TEST_CASE("every drawn node has a result of its shape") {
  Random random(5);
  for (const OpDefinition& op : op_definitions()) {
    INFO(op.name);
    for (int i = 0; i < 50; ++i) {
      const DrawnNode node = op.draw(random);
      std::vector<Values> operands;
      for (const Shape& shape : node.operands) operands.push_back(counted(shape));
      const Values result = node.evaluate(operands);
      CHECK(result.shape == node.result);
      CHECK(static_cast<std::int64_t>(result.data.size()) == count_of(node.result));
    }
  }
}

TEST_CASE("the same seed draws the same node") {
  for (const OpDefinition& op : op_definitions()) {
    Random first(3);
    Random second(3);
    const DrawnNode a = op.draw(first);
    const DrawnNode b = op.draw(second);
    CHECK(a.operands == b.operands);
    CHECK(a.attrs == b.attrs);
  }
}

TEST_CASE("an operand of a lower rank broadcasts") {
  const DrawnNode node = draw_until("aten.add.Tensor", {{2, 3}, {3}});
  // [[0, 1, 2], [3, 4, 5]] + [0, 1, 2]
  CHECK(node.evaluate({counted({2, 3}), counted({3})}).data ==
        std::vector<double>{0, 2, 4, 3, 5, 7});
}

TEST_CASE("softmax sums to 1 along its dimension") {
  Random random(2);
  const DrawnNode node = definition("aten.softmax.int").draw(random);
  Values ones = counted(node.operands.front());
  std::fill(ones.data.begin(), ones.data.end(), 1.0);
  const auto dim = node.attrs["dim"].get<std::int64_t>();
  const auto rank = static_cast<std::int64_t>(node.result.size());
  const std::int64_t extent = node.result[static_cast<std::size_t>(dim < 0 ? dim + rank : dim)];
  for (const double value : node.evaluate({ones}).data) {
    CHECK(std::abs(value - 1.0 / static_cast<double>(extent)) < 1e-12);
  }
}

TEST_CASE("cat puts its operands side by side") {
  const DrawnNode node = draw_until("aten.cat.default", {{1}, {2}});
  CHECK(node.evaluate({counted({1}), counted({2})}).data == std::vector<double>{0, 0, 1});
}
