// SPDX-License-Identifier: Apache-2.0
// What becomes of products: how their sums are added up, and what is computed where one is
// complete.
#include <string>
#include <vector>

#include "catch.hpp"
#include "lowering/lower_graph.hpp"
#include "npu/ir/json_reader.hpp"
#include "npu/passes/fuse.hpp"
#include "npu/passes/tag.hpp"
#include "npu/support/json.hpp"
#include "npu/target/target.hpp"

namespace npu::opencl {
namespace {

Json tensor(const std::string& name, const Shape& shape) {
  return {{"name", name}, {"shape", shape}, {"dtype", "float32"}};
}

Json node(const std::string& op, const std::vector<Json>& inputs, const Json& output,
          const Json& attrs = Json::object()) {
  return {{"name", output["name"]},
          {"op_type", op},
          {"inputs", inputs},
          {"outputs", Json::array({output})},
          {"attrs", attrs}};
}

/// Tagged and fused for the device; the last node makes the output.
Graph fused_graph(const std::vector<Json>& inputs, const std::vector<Json>& nodes) {
  Json output = nodes.back()["outputs"][0];
  output["producer_node"] = output["name"];
  const Json document = {{"model_name", "products"},
                         {"graph_inputs", inputs},
                         {"graph_outputs", Json::array({output})},
                         {"weights", Json::array()},
                         {"nodes", nodes}};
  Graph graph = read_valid_graph(document.dump(), "products");
  Diagnostics diagnostics;
  tag_ops(graph, load_target("opencl"), {}, diagnostics);
  fuse_ops(graph, {}, diagnostics);
  REQUIRE_FALSE(diagnostics.has_errors());
  return graph;
}

LoweredGraph lowered_for(const Graph& graph, bool is_cpu) {
  Machine machine;
  machine.is_cpu = is_cpu;
  machine.compute_units = 4;
  machine.max_group = 1024;
  machine.local_bytes = 49152;
  return lower_graph(graph, machine, [](std::size_t, std::size_t) {});
}

}  // namespace

TEST_CASE("sums of many summands are sums of blocks") {
  const auto has_blocks = [](bool is_cpu, std::int64_t summands) {
    const Json x = tensor("x", {512, summands});
    const Json w = tensor("w", {512, summands});
    const std::string source =
        lowered_for(
            fused_graph({x, w}, {node("aten.linear.default", {x, w}, tensor("y", {512, 512}))}),
            is_cpu)
            .source;
    return source.find("blocks[i][j] += acc[i][j]") != std::string::npos &&
           source.find("acc[i][j] += blocks[i][j]") != std::string::npos;
  };
  CHECK_FALSE(has_blocks(true, 512));
  CHECK(has_blocks(true, 513));
  CHECK_FALSE(has_blocks(false, 4608));
  CHECK(has_blocks(false, 18432));
}

TEST_CASE("a sum is followed through views to the addition behind them") {
  // Windows of an image are put together, as in a Swin transformer, and cut to the size they have.
  const auto kernels = [](std::int64_t end) {
    const Json x = tensor("x", {4, 9, 8});
    const Json w = tensor("w", {16, 8});
    const Json z = tensor("z", {1, 6, end, 16});
    const Json y = tensor("y", {4, 9, 16});
    const Json windows = tensor("windows", {1, 2, 2, 3, 3, 16});
    const Json turned = tensor("turned", {1, 2, 3, 2, 3, 16});
    const Json image = tensor("image", {1, 6, 6, 16});
    const Json part = tensor("part", {1, 6, end, 16});
    const Graph graph = fused_graph(
        {x, w, z},
        {node("aten.linear.default", {x, w}, y),
         node("aten.view.default", {y}, windows, {{"size", Json::array({1, 2, 2, 3, 3, 16})}}),
         node("aten.permute.default", {windows}, turned,
              {{"dims", Json::array({0, 1, 3, 2, 4, 5})}}),
         node("aten.reshape.default", {turned}, image, {{"shape", Json::array({1, 6, 6, 16})}}),
         node("aten.slice.Tensor", {image}, part, {{"dim", 2}, {"start", 0}, {"end", end}}),
         node("aten.add.Tensor", {z, part}, tensor("sum", {1, 6, end, 16}))});
    return lowered_for(graph, true).plan.launches.size();
  };
  CHECK(kernels(6) == 1);
  CHECK(kernels(4) == 2);  // what is left out has nowhere to go
}

}  // namespace npu::opencl
