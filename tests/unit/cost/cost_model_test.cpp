// SPDX-License-Identifier: Apache-2.0
// Times of nodes from a target's rates.
#include "npu/cost/cost_model.hpp"

#include <cmath>

#include "catch.hpp"
#include "cost/roofline.hpp"
#include "graph_builder.hpp"
#include "ops/op_catalogue.hpp"

using namespace npu;
using npu::test::GraphBuilder;

namespace {

Target with(const Json& keys) {
  Json json = Json::parse(R"({"name": "t", "devices": [
    {"name": "cpu", "ops": "*", "aliases": ["aten.view.default"],
     "peak_flops": {"float32": 1e9}, "memory_bandwidth": 1e9}]})");
  json["devices"][0].update(keys);
  return parse_target(json, "t.json");
}

// A convolution of 16 channels and 10 x 10 pixels, in `groups`.
Graph convolution(int groups) {
  return GraphBuilder()
      .input("x", {1, 16, 10, 10})
      .weight("w", {16, 16 / groups, 1, 1})
      .node("c", "aten.conv2d.default", {"x", "p_w"}, Shape{1, 16, 10, 10},
            groups == 1 ? Json::object() : Json{{"groups", groups}})
      .node("r", "aten.relu.default", {"c"}, Shape{1, 16, 10, 10})
      .node("v", "aten.view.default", {"r"}, Shape{1600}, {{"size", {1600}}})
      .output("v")
      .build();
}

double us(const Graph& graph, int node, const Target& target) {
  return roofline_cost().node_us(graph, NodeId{node}, target.devices[0]);
}

}  // namespace

TEST_CASE("cost: arithmetic or traffic, whichever takes longer") {
  const Graph graph = convolution(1);
  const Target target = with(Json::object());
  CHECK(us(graph, 0, target) == Approx(51.2));  // 2 * 16 * 1600 FLOP
  CHECK(us(graph, 1, target) == Approx(12.8));  // 2 * 6400 bytes
  CHECK(us(graph, 2, target) == 0);
}

TEST_CASE("cost: resident weights do not count as traffic") {
  const Graph graph = convolution(1);
  const Json fast = {{"peak_flops", {{"float32", 1e15}}}};
  Json resident = fast;
  resident["resident_weights"] = true;
  CHECK(us(graph, 0, with(fast)) == Approx(13.824));  // 2 * 6400 bytes and 1024 of the weight
  CHECK(us(graph, 0, with(resident)) == Approx(12.8));
}

TEST_CASE("cost: overhead of nodes, and rates of their own for some") {
  const Target target = with(
      {{"node_overhead_us", 2},
       {"op_rates",
        Json::array({{{"types", {"aten.conv2d.default"}}, {"grouped", true}, {"peak_flops", 1e8}},
                     {{"types", {"aten.conv2d.default", "aten.relu.default"}},
                      {"memory_bandwidth", 1e8}}})}});
  // 2 * 1 * 1600 FLOP at 1e8 FLOP/s, against 12,864 bytes at 1e9.
  CHECK(us(convolution(16), 0, target) == Approx(2 + 32));
  // Not grouped: 51,200 FLOP at 1e9 against 13,824 bytes at 1e8.
  CHECK(us(convolution(1), 0, target) == Approx(2 + 138.24));
  CHECK(us(convolution(1), 1, target) == Approx(2 + 128));
  CHECK(us(convolution(1), 2, target) == 0);  // an alias has no overhead
}

TEST_CASE("cost: pointwise convolutions may have a rate of their own") {
  const Target target = with({{"op_rates", Json::array({{{"types", {"aten.conv2d.default"}},
                                                         {"pointwise", true},
                                                         {"memory_bandwidth", 1e7}},
                                                        {{"types", {"aten.conv2d.default"}},
                                                         {"pointwise", false},
                                                         {"memory_bandwidth", 2e7}}})}});
  const auto convolution_of = [](std::int64_t kernel) {
    return GraphBuilder()
        .input("x", {1, 16, 10, 10})
        .weight("w", {16, 16, kernel, kernel})
        .node("y", "aten.conv2d.default", {"x", "p_w"}, {1, 16, 10, 10},
              {{"padding", {kernel / 2, kernel / 2}}})
        .output("y")
        .build();
  };
  // Two tensors of 6,400 bytes, and 4 * 256 of the weight.
  CHECK(us(convolution_of(1), 0, target) == Approx(1382.4));
  // 9 times the weight, and twice the rate.
  CHECK(us(convolution_of(3), 0, target) == Approx(1100.8));
}

TEST_CASE("cost: rates by stride, extents of the kernel, and positions") {
  // Rates tell the rows apart: the time of a node is 1 s over the number of its row.
  const auto row = [](Json conditions) {
    conditions["types"] = {"aten.conv2d.default", "aten.linear.default"};
    return conditions;
  };
  const auto chosen = [&](const Graph& graph) {
    Json rows = Json::array({row({{"strided", true}}), row({{"kernel", {9, 9}}}),
                             row({{"kernel", {1, 25}}, {"positions", {0, 99}}}),
                             row({{"kernel", {1, nullptr}}}), row({{"positions", {8, 8}}})});
    double rate = 1e-6 * node_flops(graph, graph.nodes()[0]);
    for (Json& json : rows) json["peak_flops"] = (rate *= 10);
    const double time = us(graph, 0, with({{"op_rates", rows}, {"memory_bandwidth", 1e15}}));
    return std::lround(std::log10(1e12 / time));
  };
  const auto convolution_of = [](std::int64_t kernel, std::int64_t size, Json attrs) {
    attrs["padding"] = {kernel / 2, kernel / 2};
    return GraphBuilder()
        .input("x", {1, 16, size, size})
        .weight("w", {16, 16, kernel, kernel})
        .node("y", "aten.conv2d.default", {"x", "p_w"}, Shape{1, 16, size, size}, attrs)
        .output("y")
        .build();
  };
  const auto product_of = [](std::int64_t rows) {
    return GraphBuilder()
        .input("x", {2, rows, 16})
        .weight("w", {16, 16})
        .node("y", "aten.linear.default", {"x", "p_w"}, Shape{2, rows, 16})
        .output("y")
        .build();
  };
  CHECK(chosen(convolution_of(3, 10, {{"stride", {1, 2}}})) == 1);
  CHECK(chosen(convolution_of(5, 10, {{"dilation", 2}})) == 1);
  CHECK(chosen(convolution_of(3, 10, {{"stride", {1, 1}}})) == 2);
  CHECK(chosen(convolution_of(5, 9, Json::object())) == 3);   // 81 positions
  CHECK(chosen(convolution_of(5, 10, Json::object())) == 4);  // 100
  CHECK(chosen(convolution_of(7, 9, Json::object())) == 4);   // 49 in the kernel
  CHECK(chosen(product_of(4)) == 5);                          // 2 x 4 rows
  CHECK(chosen(product_of(5)) > 5);                           // the device's rate
}

TEST_CASE("cost: several devices at once cost the same as one by one") {
  const Graph graph = convolution(4);
  Target target = load_target("pytorch-apple");
  target.devices.push_back(with({{"node_overhead_us", 1}}).devices[0]);
  for (int node = 0; node < 3; ++node) {
    std::vector<double> times(target.devices.size());
    roofline_cost().node_us_on_each(graph, NodeId{node}, target.devices, times);
    for (std::size_t d = 0; d < times.size(); ++d) {
      CHECK(times[d] ==
            node_us(graph, graph.nodes()[static_cast<std::size_t>(node)], target.devices[d]));
    }
  }
}

TEST_CASE("cost: faults of the new keys are reported with their place") {
  Json json = Json::parse(R"({"name": "t", "devices": [
    {"name": "cpu", "ops": "*", "peak_flops": {"float32": 1e9}, "memory_bandwidth": 1e9,
     "resident_weights": 1, "node_overhead_us": -1,
     "op_rates": [{"types": ["relu"], "grouped": "yes", "peak_flops": 0, "rate": 1}, 7]}]})");
  Diagnostics diagnostics;
  parse_target(json, "t.json", "", diagnostics);
  std::string pointers;
  for (const Diagnostic& entry : diagnostics.entries()) pointers += entry.location.pointer + " ";
  for (const char* pointer : {"/devices/0/resident_weights ", "/devices/0/node_overhead_us ",
                              "/devices/0/op_rates/0/grouped ", "/devices/0/op_rates/0/peak_flops ",
                              "/devices/0/op_rates/0/rate ", "/devices/0/op_rates/1 "}) {
    CAPTURE(pointer, pointers);
    CHECK(pointers.find(pointer) != std::string::npos);
  }
}
