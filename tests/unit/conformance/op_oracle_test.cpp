// SPDX-License-Identifier: Apache-2.0
#include "conformance/oracle/op_oracle.hpp"

#include <algorithm>
#include <cmath>

#include "catch.hpp"

using npu::DType;
using npu::Json;
using npu::Shape;
using namespace npu::conformance;

namespace {

// 0, 1, 2, ...
Values counted(const Shape& shape) {
  Values values = make_values(shape, DType::kFloat32);
  for (std::size_t i = 0; i < values.data.size(); ++i) {
    values.data[i].value = static_cast<double>(i);
  }
  return values;
}

Values result_of(const std::string& op, const std::vector<Values>& operands, const Json& attrs) {
  return DrawnNode{.op = op, .operands = {}, .result = {}, .attrs = attrs}.evaluate(operands);
}

std::vector<double> values_in(const Values& values) {
  std::vector<double> list;
  for (const Bounded x : values.data) list.push_back(x.value);
  return list;
}

}  // namespace

TEST_CASE("every drawn node has a result of its shape, and the same seed draws it again") {
  Random random(5);
  Random again(5);
  for (const OpDefinition& op : op_definitions()) {
    INFO(op.name);
    for (int i = 0; i < 50; ++i) {
      const DrawnNode node = draw_node(op, random, DType::kFloat32);
      const DrawnNode same = draw_node(op, again, DType::kFloat32);
      CHECK(node.operands == same.operands);
      CHECK(node.attrs == same.attrs);
      std::vector<Values> operands;
      for (const Shape& shape : node.operands) operands.push_back(counted(shape));
      CHECK(node.evaluate(operands).shape == node.result);
    }
  }
}

TEST_CASE("an operand of a lower rank broadcasts") {
  // [[0, 1, 2], [3, 4, 5]] + [0, 1, 2]
  const Values sum = result_of("aten.add.Tensor", {counted({2, 3}), counted({3})}, Json::object());
  CHECK(values_in(sum) == std::vector<double>{0, 2, 4, 3, 5, 7});
}

TEST_CASE("softmax sums to 1 along its dimension") {
  const Values y = result_of("aten.softmax.int", {counted({2, 3})}, {{"dim", -1}});
  CHECK(std::abs(y.data[0].value + y.data[1].value + y.data[2].value - 1) < 1e-12);
  // exp(-2) / (exp(-2) + exp(-1) + 1)
  CHECK(std::abs(y.data[3].value - 0.09003057317038046) < 1e-12);
}

TEST_CASE("a convolution leaves its padding out") {
  // [0, 1, 2] with taps [0, 1, 2] and a pad of 1: 0*1 + 1*2, 0*0 + 1*1 + 2*2, 1*0 + 2*1
  const Values y = result_of("aten.conv1d.default", {counted({1, 1, 3}), counted({1, 1, 3})},
                             {{"padding", {1}}});
  CHECK(values_in(y) == std::vector<double>{2, 5, 2});
  const Values same = result_of("aten.conv1d.padding", {counted({1, 1, 3}), counted({1, 1, 3})},
                                {{"padding", "same"}});
  CHECK(values_in(same) == std::vector<double>{2, 5, 2});
  // Transposed: 1 at place 1 and 2 at place 2, each with the taps, stride 2.
  const Values t = result_of("aten.conv_transpose1d.default",
                             {counted({1, 1, 3}), counted({1, 1, 3})}, {{"stride", {2}}});
  CHECK(values_in(t) == std::vector<double>{0, 0, 0, 1, 2, 2, 4});
}

TEST_CASE("bounds are terms times unit roundoff times magnitudes") {
  const double unit = Rounding::now().unit;
  Sum sum;
  for (const double x : {1e4, 1.0, -1e4}) sum.add({x, 0});
  CHECK(sum.result().value == 1);
  // Whatever the order: 4 times the unit roundoff of the sum of magnitudes.
  CHECK(sum.result().error >= 3 * unit * 20001);
  CHECK(sum.result().error <= 5 * unit * 20001);
  // The derivative of the logarithm at 2 is 1/2.
  const Bounded log = apply([](double x) { return std::log(x); }, {2.0, 1e-3});
  CHECK(std::abs(log.error - 5e-4) < 1e-6);
  // What may be on either side of a step may be one off.
  CHECK(exactly([](double x) { return std::floor(x); }, {2.0, 1e-6}).error == 1);
  CHECK(exactly([](double x) { return std::floor(x); }, {2.5, 1e-6}).error == 0);
  // A range may hold all of a function's domain and none of it at its ends.
  const auto arcsine = [](double x) { return std::asin(x); };
  CHECK_FALSE(exactly(arcsine, {1.004, 1e6}).is_known());
  CHECK_FALSE(exactly(arcsine, {1.004, 0.01}).is_known());
  CHECK(exactly(arcsine, {1.004, 0.001}).is_known());
}

TEST_CASE("what is not finite stays so, and what may overflow is unknown") {
  const Bounded infinity{HUGE_VAL, 0};
  CHECK(std::isinf((infinity + Bounded{1, 1e-6}).value));
  CHECK((infinity + Bounded{1, 1e-6}).is_known());
  CHECK(std::isnan((infinity - infinity).value));
  CHECK_FALSE((infinity * Bounded{1e-9, 1e-6}).is_known());
  CHECK_FALSE((Bounded{3e38, 0} + Bounded{3e38, 0}).is_known());
  CHECK(select({0, 1}, {2, 0}, {5, 0}).error == 3);
}
