// SPDX-License-Identifier: Apache-2.0
#include "ops/check_template.hpp"

#include <string>
#include <vector>

#include "catch.hpp"
#include "ops/result_shapes.hpp"

using namespace npu;

namespace {

std::string fault_of(std::string_view op, const std::vector<Shape>& operands, const Shape& result) {
  std::vector<const Shape*> pointers;
  for (const Shape& operand : operands) pointers.push_back(&operand);
  return result_shape_fault(op, pointers, result).value_or("");
}

/// A template of one node over x [S, 4].
std::string faults_of(const std::string& node) {
  Diagnostics diagnostics;
  const Template model = Template::read(
      parse_json(R"({"graph_inputs": [{"name": "x", "shape": ["S", 4], "dtype": "float32"}],
                     "graph_outputs": [], "nodes": [)" +
                     node + R"(], "npu": {"version": 1, "symbols": {"S": {"min": 2, "max": 9}}}})",
                 "t.json"),
      "t.json", diagnostics);
  check_template(model, diagnostics);
  std::string text;
  for (const Diagnostic& fault : diagnostics.entries()) {
    text += fault.location.pointer + ": " + fault.text + "\n";
  }
  return text;
}

std::string node(const std::string& op, const std::string& shape, const std::string& attrs) {
  return R"({"name": "y", "op_type": ")" + op + R"(", "inputs": [{"name": "x"}], "outputs": )" +
         R"([{"name": "y", "shape": )" + shape + R"(, "dtype": "float32"}], "attrs": )" + attrs +
         "}";
}

}  // namespace

TEST_CASE("result shapes: what operands give", "[ops]") {
  CHECK(has_shape_rule("aten.add.Tensor"));
  CHECK(!has_shape_rule("aten.conv2d.default"));
  CHECK(!has_shape_rule("custom.add"));
  CHECK(fault_of("aten.add.Tensor", {{2, 1}, {3}}, {2, 3}).empty());
  CHECK(fault_of("aten.add.Tensor", {{2, 1}, {3}}, {2, 1}) ==
        "[2, 1], but operands of [2, 1], [3] give [2, 3]");
  CHECK(fault_of("aten.mul.Tensor", {{2}, {3}}, {2}) ==
        "[2], but operands of [2], [3] do not give that");
  CHECK(fault_of("aten.relu.default", {{2, 3}}, {3, 2}) ==
        "[3, 2], but operands of [2, 3] give [2, 3]");
  CHECK(fault_of("aten.matmul.default", {{5, 2, 3}, {3, 4}}, {5, 2, 4}).empty());
  CHECK(fault_of("aten.matmul.default", {{2, 3}, {4, 3}}, {2, 3}).ends_with("do not give that"));
  CHECK(fault_of("aten.linear.default", {{7, 3}, {4, 3}}, {7, 4}).empty());
  CHECK(fault_of("aten.addmm.default", {{4}, {7, 3}, {3, 4}}, {7, 4}).empty());
  CHECK(fault_of("aten.view.default", {{2, 6}}, {3, 4}).empty());
  CHECK(fault_of("aten.view.default", {{2, 6}}, {3, 5}).ends_with("do not give that"));
  CHECK(fault_of("custom.op", {{2, 6}}, {3, 5}).empty());
  CHECK(fault_of("aten.relu.default", {}, {3, 5}).empty());
}

TEST_CASE("template: results have the shapes that their operands give", "[ops]") {
  CHECK(faults_of(node("aten.relu.default", R"(["S", 4])", "{}")).empty());
  CHECK(faults_of(node("aten.relu.default", R"(["S + 1", 4])", "{}")) ==
        "/nodes/0/outputs/0/shape: node 'y': for S=2 its result is stated as [3, 4], but operands "
        "of [2, 4] give [2, 4]\n");
  CHECK(faults_of(node("aten.view.default", R"(["4*S"])", R"({"size": ["4*S"]})")).empty());
  CHECK(faults_of(node("aten.view.default", R"(["5*S"])", R"({"size": ["5*S"]})")) != "");
  CHECK(faults_of(node("custom.op", R"(["S + 1", 4])", R"({"mode": "S"})")).empty());
}

TEST_CASE("template: sizes stand where a schema has numbers", "[ops]") {
  CHECK(faults_of(node("aten.add.Tensor", R"(["S", 4])", R"({"other": "S", "alpha": "2*S"})"))
            .empty());
  CHECK(faults_of(node("aten.gelu.default", R"(["S", 4])", R"({"approximate": "tanh"})")).empty());
  CHECK(faults_of(node("aten.gelu.default", R"(["S", 4])", R"({"approximate": "S"})")) ==
        "/nodes/0/attrs/approximate: node 'y': attribute 'approximate' of aten.gelu.default takes "
        "no size, found 'S', which reads as one; give the size another name\n");
  CHECK(
      faults_of(node("aten.to.dtype", R"(["S", 4])", R"({"dtype": "S"})")).find("takes no size") !=
      std::string::npos);
}
