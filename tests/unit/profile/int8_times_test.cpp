// SPDX-License-Identifier: Apache-2.0
#include "profile/int8_times.hpp"

#include <string>
#include <vector>

#include "catch.hpp"
#include "cost/node_table.hpp"
#include "graph_builder.hpp"
#include "set_variable.hpp"

namespace npu::test {
namespace {

TensorRanges ranges_of(const Graph& graph) {
  TensorRanges ranges;
  ranges.model_digest = model_digest(graph);
  ranges.samples = 1;
  for (const char* name : {"x", "y"}) {
    TensorRange range;
    range.name = name;
    range.shape = graph.tensor(graph.find_tensor(name)).shape;
    range.histogram.add(std::vector<float>{-1.0F, 1.0F});
    ranges.tensors.push_back(range);
  }
  ranges.weights.push_back({"p_w", {0, std::vector<float>(4, -1.0F), std::vector<float>(4, 1.0F)}});
  ranges.index();
  return ranges;
}

}  // namespace

TEST_CASE("int8 times are those of the integers that this machine takes", "[profile]") {
  const Graph graph = graph_of(R"(
    input x [2,4]; weight w [4,4]
    y = linear(x, p_w); output y)");
  ProfileModelOptions options;
  options.ranges = ranges_of(graph);
  const IsaLimit limit("generic");
  Diagnostics diagnostics;
  const Graph here = quantized_copy(graph, options, diagnostics);
  options.target = "tpu";
  const Graph elsewhere = quantized_copy(graph, options, diagnostics);
  CHECK_FALSE(diagnostics.has_errors());
  CHECK(here.node(here.find_node("p_w_q")).attrs().at("quant_max") == 63);
  CHECK(elsewhere.node(elsewhere.find_node("p_w_q")).attrs().at("quant_max") == 127);
}

}  // namespace npu::test
