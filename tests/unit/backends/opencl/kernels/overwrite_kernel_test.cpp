// SPDX-License-Identifier: Apache-2.0
// Kernels that write into their operand: they have an item for each element that changes, and do
// not read the others. Without a device; what they compute is compared where there is one.
#include <string>

#include "catch.hpp"
#include "lowering/lower_graph.hpp"
#include "npu/ir/json_reader.hpp"
#include "npu/support/error.hpp"
#include "npu/support/json.hpp"

namespace npu::opencl {
namespace {

/// A state of 40 rows of 6 that one node overwrites a part of.
LoweredGraph lowered(const std::string& op, const Json& operands, const Json& attrs,
                     const std::string& dtype = "float32", bool has_pair = true) {
  const auto tensor = [&](const char* name) {
    return Json{{"name", name}, {"shape", {40, 6}}, {"dtype", dtype}};
  };
  Json inputs = Json::array({tensor("state")});
  for (const Json& operand : operands) inputs.push_back(operand);
  const Json next = tensor("next");
  Json document = {{"model_name", "part"},
                   {"graph_inputs", inputs},
                   {"graph_outputs", Json::array({next})},
                   {"weights", Json::array()},
                   {"nodes", Json::array({{{"name", "next"},
                                           {"op_type", op},
                                           {"inputs", inputs},
                                           {"outputs", Json::array({next})},
                                           {"attrs", attrs}}})}};
  if (has_pair) document["aliases"] = Json::array({{{"output", "next"}, {"input", "state"}}});
  return lower_graph(read_valid_graph(document.dump(), "part.json"), {},
                     [](std::size_t, std::size_t) {});
}

Json operand(const char* name, const Shape& shape, const std::string& dtype = "float32") {
  return {{"name", name}, {"shape", shape}, {"dtype", dtype}};
}

/// The only launch, of which no argument is the state as it was.
const Launch& only_launch(const LoweredGraph& graph) {
  REQUIRE(graph.plan.launches.size() == 1);
  for (const Place& place : graph.plan.launches[0].arguments) {
    CHECK((place.kind != PlaceKind::kInput || place.value != 0));
  }
  return graph.plan.launches[0];
}

bool has(const LoweredGraph& graph, const std::string& text) {
  return graph.source.find(text) != std::string::npos;
}

}  // namespace

TEST_CASE("overwrite: a part of a state has an item for each of its elements") {
  const LoweredGraph slice =
      lowered("aten.slice_scatter.default", Json::array({operand("src", {7, 6})}),
              {{"dim", 0}, {"start", 3}, {"end", 24}, {"step", 3}});
  CHECK(only_launch(slice).sizes == std::vector<std::uint64_t>{42});
  CHECK(only_launch(slice).global == std::array<std::uint64_t, 3>{64, 1, 1});
  CHECK(has(slice, "* 3) + 3)"));  // rows 3, 6, ...
  const LoweredGraph select =
      lowered("aten.select_scatter.default", Json::array({operand("src", {40})}),
              {{"dim", 1}, {"index", -2}});
  CHECK(only_launch(select).sizes == std::vector<std::uint64_t>{40});
  CHECK(has(select, " + 4)"));  // column 4 of 6
  // Without the pair all elements are written.
  const LoweredGraph whole =
      lowered("aten.select_scatter.default", Json::array({operand("src", {40})}),
              {{"dim", 1}, {"index", -2}}, "float32", false);
  CHECK(whole.plan.launches.at(0).sizes == std::vector<std::uint64_t>{240});
}

TEST_CASE("overwrite: items of rows that stay end before they read or write") {
  for (const std::string fill : {"zero", "edge", "lowest"}) {
    CAPTURE(fill);
    const LoweredGraph tail = lowered("npu.tail", Json::array({operand("valid", {}, "int64")}),
                                      {{"dim", 0}, {"fill", fill}}, "float16");
    only_launch(tail);
    const std::size_t ends = tail.source.rfind(") return;");
    const std::size_t reads = tail.source.find("vload_half(");
    CHECK(tail.source.find("vstore_half_rte(") > ends);
    CHECK((reads == std::string::npos) == (fill != "edge"));
    if (fill == "edge") CHECK(reads > ends);
    // A number of rows that is none is found out.
    CHECK(tail.plan.faults.size() == 1);
  }
}

TEST_CASE("overwrite: a scatter goes over its places alone") {
  const Json attrs = {{"dim", 0}};
  const Json operands = Json::array({operand("index", {4}, "int64"), operand("source", {4, 6})});
  const LoweredGraph in_place = lowered("aten.index_copy.default", operands, attrs);
  only_launch(in_place);
  CHECK_FALSE(has(in_place, "c < 40"));
  const LoweredGraph whole = lowered("aten.index_copy.default", operands, attrs, "float32", false);
  CHECK(has(whole, "c < 40"));
}

TEST_CASE("overwrite: a part that does not fit is refused as ever") {
  CHECK_THROWS_WITH(lowered("aten.slice_scatter.default", Json::array({operand("src", {8, 6})}),
                            {{"dim", 0}, {"start", 3}, {"end", 24}, {"step", 3}}),
                    Catch::Contains("the part does not fit"));
}

}  // namespace npu::opencl
