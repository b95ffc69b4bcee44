// SPDX-License-Identifier: Apache-2.0
#include "ops/byte_regions.hpp"

#include <string>
#include <vector>

#include "catch.hpp"
#include "graph_builder.hpp"

namespace npu::test {
namespace {

const std::string kLibrary = "quantized_decomposed.";

/// Integers, what they stand for, a function of it, and integers of that.
GraphBuilder region(const std::string& between = "float64") {
  GraphBuilder builder;
  builder.input("q", {4}, "uint8")
      .node("x", kLibrary + "dequantize_per_tensor.default", {"q"}, Shape{4},
            {{"out_dtype", "torch.float64"}}, between)
      .node("y", "aten.sigmoid.default", {"x"}, Shape{4}, Json::object(), between)
      .node("r", kLibrary + "quantize_per_tensor.default", {"y"}, Shape{4}, Json::object(), "int8");
  return builder;
}

std::vector<std::string> names_of(const Graph& graph, const std::string& node) {
  std::vector<std::string> names;
  for (const NodeId id : byte_region(graph, graph.find_node(node))) {
    names.push_back(graph.node(id).name);
  }
  return names;
}

}  // namespace

TEST_CASE("byte regions: the same from each of their nodes", "[ops]") {
  const Graph graph = region().output("r").build();
  for (const char* node : {"x", "y", "r"}) {
    CHECK(names_of(graph, node) == std::vector<std::string>{"x", "y", "r"});
  }
}

TEST_CASE("byte regions: a conversion to float32 ends one, too", "[ops]") {
  const Graph graph = region()
                          .node("f", "aten.to.dtype", {"y"}, Shape{4}, {{"dtype", "torch.float32"}})
                          .node("g", "aten.relu.default", {"f"})
                          .output("r")
                          .output("g")
                          .build();
  CHECK(names_of(graph, "x") == std::vector<std::string>{"x", "y", "r", "f"});
  CHECK(names_of(graph, "g").empty());
}

TEST_CASE("byte regions: none where float64 goes elsewhere", "[ops]") {
  CHECK(names_of(region("float32").output("r").build(), "y").empty());
  CHECK(names_of(region().output("r").output("y").build(), "x").empty());
  GraphBuilder with_input = region();
  with_input.input("d", {4}, "float64")
      .node("s", "aten.add.Tensor", {"y", "d"}, Shape{4}, Json::object(), "float64")
      .node("t", kLibrary + "quantize_per_tensor.default", {"s"}, Shape{4}, Json::object(), "int8")
      .output("r")
      .output("t");
  CHECK(names_of(with_input.build(), "x").empty());
  GraphBuilder with_mixed = region();
  with_mixed.input("d", {4})
      .node("s", "aten.add.Tensor", {"y", "d"}, Shape{4}, Json::object(), "float64")
      .node("t", kLibrary + "quantize_per_tensor.default", {"s"}, Shape{4}, Json::object(), "int8")
      .output("r")
      .output("t");
  CHECK(names_of(with_mixed.build(), "x").empty());
  GraphBuilder with_wide = region();
  with_wide.lines(R"(
    t = aten.to.dtype(y) [4] int64 {"dtype": "torch.int64"}; output r, t)");
  CHECK(names_of(with_wide.build(), "x").empty());
}

TEST_CASE("byte regions: integers of 32 bits only as constants", "[ops]") {
  const auto biased = [](bool is_constant) {
    GraphBuilder builder = region();
    if (is_constant) {
      builder.weight("b", {4}, "int32");
    } else {
      builder.input("b", {4}, "int32");
    }
    builder
        .node("c", kLibrary + "dequantize_per_tensor.default", {is_constant ? "p_b" : "b"},
              Shape{4}, {{"out_dtype", "torch.float64"}}, "float64")
        .node("s", "aten.add.Tensor", {"y", "c"}, Shape{4}, Json::object(), "float64")
        .node("t", kLibrary + "quantize_per_tensor.default", {"s"}, Shape{4}, Json::object(),
              "int8")
        .output("r")
        .output("t");
    return builder.build();
  };
  CHECK(names_of(biased(true), "x") == std::vector<std::string>{"x", "y", "r", "c", "s", "t"});
  CHECK(names_of(biased(false), "x").empty());
}

}  // namespace npu::test
