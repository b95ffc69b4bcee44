// SPDX-License-Identifier: Apache-2.0
// The blocks of the models in testdata with their sums as segment reductions: what each reads.
#include "gnn/block/segment_nodes.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "catch.hpp"
#include "gnn/model/staged_model.hpp"
#include "npu/ir/json_writer.hpp"

using namespace npu;
using namespace npu::gnn;

namespace {

constexpr BlockShape kShape{10, 25, 40};

struct Rewritten {
  Json block;
  std::vector<Json> segments;
};

Rewritten rewritten(const std::string& name, std::int32_t first = 1, std::int32_t last = 0) {
  const StagedModel model =
      read_staged_model(std::string(NPU_TEST_DATA_DIR) + "/gnn/" + name + ".json");
  if (last == 0) last = model.layers.front().stage_count();
  Rewritten result;
  Graph block = model.block(1, first, last, kShape);
  CHECK(segment_nodes(block, kShape));
  result.block = Json::parse(write_graph(block));
  for (const Json& node : result.block["nodes"]) {
    if (node["op_type"] == "npu.segment_reduce") result.segments.push_back(node);
  }
  return result;
}

std::vector<std::string> operands(const Json& node) {
  std::vector<std::string> names;
  for (const Json& operand : node["inputs"]) names.push_back(operand["name"]);
  return names;
}

const Json* find_form(const Rewritten& rewritten, const std::string& form) {
  const auto found = std::ranges::find_if(
      rewritten.segments, [&](const Json& node) { return node["attrs"]["reduce"] == form; });
  return found == rewritten.segments.end() ? nullptr : &*found;
}

std::map<std::string, Json> inputs_of(const Rewritten& rewritten) {
  std::map<std::string, Json> inputs;
  for (const Json& each : rewritten.block["graph_inputs"]) inputs[each["name"]] = each;
  return inputs;
}

}  // namespace

TEST_CASE("a mean over neighbours is one node", "[gnn][segments]") {
  const Rewritten sage = rewritten("graphsage");
  const Json* mean = find_form(sage, "mean");
  REQUIRE(mean != nullptr);
  CHECK(operands(*mean) ==
        std::vector<std::string>{"x", "edge_index@offsets", "edge_index@sources"});
  CHECK((*mean)["outputs"][0]["shape"] == Json({10, 6}));
  const auto inputs = inputs_of(sage);
  CHECK_FALSE(inputs.contains("edge_index"));
  CHECK(inputs.at("edge_index@offsets")["shape"] == Json::array({11}));
  CHECK(inputs.at("edge_index@sources")["shape"] == Json::array({40}));
  CHECK(inputs.at("edge_index@sources")["dtype"] == "int32");
}

TEST_CASE("norms of edges are weights of a sum", "[gnn][segments]") {
  const Rewritten gcn = rewritten("gcn");
  const Json* sum = find_form(gcn, "sum");
  REQUIRE(sum != nullptr);
  REQUIRE((*sum)["inputs"].size() == 4);
  CHECK((*sum)["inputs"][3]["shape"] == Json({40, 1}));
  CHECK(find_form(gcn, "softmax") == nullptr);
}

TEST_CASE("attention is a softmax of its scores", "[gnn][segments]") {
  const Rewritten gat = rewritten("gat");
  const Json* softmax = find_form(gat, "softmax");
  REQUIRE(softmax != nullptr);
  REQUIRE((*softmax)["inputs"].size() == 4);
  CHECK((*softmax)["inputs"][3]["shape"] == Json({40, 2}));
  CHECK((*softmax)["outputs"][0]["shape"] == Json({10, 2, 4}));
}

TEST_CASE("the scores of a shifted softmax are those before the shift", "[gnn][segments]") {
  const Rewritten gat = rewritten("gat");
  const Json* softmax = find_form(gat, "softmax");
  REQUIRE(softmax != nullptr);
  const Json scores = (*softmax)["inputs"][3]["name"];
  const auto& nodes = gat.block["nodes"];
  const auto maker =
      std::ranges::find_if(nodes, [&](const Json& node) { return node["name"] == scores; });
  REQUIRE(maker != nodes.end());
  CHECK((*maker)["op_type"] == "aten.leaky_relu.default");
}

TEST_CASE("the largest of rows is one node", "[gnn][segments]") {
  const Rewritten largest = rewritten("largest");
  const Json* most = find_form(largest, "amax");
  REQUIRE(most != nullptr);
  CHECK(operands(*most) ==
        std::vector<std::string>{"x", "edge_index@offsets", "edge_index@sources"});
  CHECK((*most)["outputs"][0]["shape"] == Json({10, 6}));
}

TEST_CASE("a sum with rows for the halo ends with zeros", "[gnn][segments]") {
  // Stages 1 to 4: the sums of the softmax are an operand of the next block, but not the outputs.
  const Rewritten gat = rewritten("gat", 1, 4);
  const Json* sum = find_form(gat, "sum");
  REQUIRE(sum != nullptr);
  CHECK((*sum)["outputs"][0]["shape"] == Json({10, 2}));
  const auto& nodes = gat.block["nodes"];
  const auto pad = std::ranges::find_if(
      nodes, [](const Json& node) { return node["op_type"] == "aten.constant_pad_nd.default"; });
  REQUIRE(pad != nodes.end());
  CHECK((*pad)["outputs"][0]["shape"] == Json({25, 2}));
  CHECK((*pad)["attrs"]["pad"] == Json({0, 0, 0, 15}));
}

TEST_CASE("factors that come from another block stay factors", "[gnn][segments]") {
  // From stage 5 on alpha is an input.
  const Rewritten gat = rewritten("gat", 5);
  REQUIRE(gat.segments.size() == 1);
  CHECK(gat.segments[0]["attrs"]["reduce"] == "sum");
  const auto inputs = inputs_of(gat);
  CHECK(inputs.contains("alpha"));
  // Nor is there a gather: messages are summed as they are.
  CHECK(operands(gat.segments[0]).size() == 2);
  CHECK_FALSE(inputs.contains("edge_index@sources"));
}
