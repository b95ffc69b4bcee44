// SPDX-License-Identifier: Apache-2.0
// A node of every op that a device claims, in float32, bfloat16 and float16, drawn by the generator
// and run where npu-tag puts it. Next to them stand nodes just outside the npu table, which npu-tag
// has to refuse.
//
// NPU_DIFFERENTIAL_CASES sets the number of nodes that an op and dtype get, NPU_DIFFERENTIAL_SEED
// the seed.
#include <algorithm>
#include <cstdlib>
#include <set>
#include <string>
#include <vector>

#include "catch.hpp"
#include "graph_builder.hpp"
#include "npu/target/target.hpp"
#include "seed.hpp"
#include "target/support_check.hpp"
#include "test_paths.hpp"

namespace npu {
namespace {

using test::GraphBuilder;

std::uint64_t setting(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

}  // namespace

TEST_CASE("drawn nodes of every op are what they are defined to be", "[differential]") {
  ::setenv("NPU_BACKEND_PATH", npu::test::backend_dir(), 1);
  // What edges of graphs gather is no part of these networks.
  CHECK(test::undefined_ops() == std::vector<std::string>{"npu.segment_reduce"});
  CHECK(test::drawn_ops().size() > 250);
  test::Totals totals;
  const std::uint64_t cases = setting("NPU_DIFFERENTIAL_CASES", 1);
  conformance::Random random(setting("NPU_DIFFERENTIAL_SEED", 1));
  for (const std::string& op : test::drawn_ops()) {
    for (const DType dtype : {DType::kFloat32, DType::kBFloat16, DType::kFloat16}) {
      for (std::uint64_t i = 0; i < cases; ++i) {
        const test::Network network =
            test::draw_network(random, {.dtype = dtype, .most_nodes = 1, .first = op});
        INFO(network.text());
        CHECK(test::fault_of(network, {}, totals) == "");
      }
    }
  }
}

TEST_CASE("npu-tag refuses nodes just outside the npu table", "[differential]") {
  const Target target = load_target("host");
  const Device& npu = *target.find_device("npu");
  const auto takes = [&](GraphBuilder& graph) {
    return check_support(graph.build(), NodeId{0}, npu).supported;
  };
  std::set<std::string> any_dtype;
  for (const auto& [type, rules] : npu.rules_by_type) {
    for (const std::size_t index : rules) {
      const auto& dtypes = npu.rules[index].dtypes.any;
      if (dtypes.empty() ||
          std::find(dtypes.begin(), dtypes.end(), DType::kFloat64) != dtypes.end()) {
        any_dtype.insert(type);
      }
    }
  }
  std::int64_t refused = 0;
  conformance::Random random(7);
  for (const auto& [op, rules] : npu.rules_by_type) {
    if (any_dtype.contains(op) || op.find("arange") != std::string::npos) continue;
    const test::Network wide =
        test::draw_network(random, {.dtype = DType::kFloat64, .most_nodes = 1, .first = op});
    if (wide.nodes[0].op != op || wide.text().find(":float64") == std::string::npos) continue;
    INFO(wide.text());
    const Graph graph = read_valid_graph(wide.document(false).dump(), "wide.json");
    CHECK_FALSE(check_support(graph, NodeId{0}, npu).supported);
    ++refused;
  }
  CHECK(refused > 60);

  const auto refuses = [&](const std::string& op, const std::vector<Shape>& operands,
                           const Shape& result, const Json& attrs) {
    GraphBuilder graph;
    std::vector<std::string> names;
    for (std::size_t i = 0; i < operands.size(); ++i) {
      names.push_back("x" + std::to_string(i));
      graph.input(names.back(), operands[i]);
    }
    graph.node("y", op, names, result, attrs).output("y");
    INFO(op << " " << attrs.dump());
    CHECK_FALSE(takes(graph));
  };
  refuses("aten.conv2d.default", {{3, 8, 8}, {4, 3, 3, 3}}, {4, 6, 6}, Json::object());
  refuses("aten.conv3d.default", {{3, 5, 8, 8}, {4, 3, 3, 3, 3}}, {4, 3, 6, 6}, Json::object());
  refuses("aten.conv_transpose2d.input", {{3, 8, 8}, {3, 4, 3, 3}}, {4, 10, 10}, Json::object());
  refuses("aten.batch_norm.default", {{2, 3, 4}, {3}, {3}, {3}, {3}}, {2, 3, 4},
          {{"training", true}, {"momentum", 0.1}, {"eps", 1e-5}, {"cudnn_enabled", true}});
  refuses("aten.batch_norm.default", {{3}, {3}, {3}, {3}, {3}}, {3},
          {{"training", false}, {"momentum", 0.1}, {"eps", 1e-5}, {"cudnn_enabled", true}});
  refuses("aten.max_pool1d.default", {{1, 2, 3, 8}}, {1, 2, 3, 4}, {{"kernel_size", {2}}});
  refuses("aten.avg_pool3d.default", {{2, 3, 8}}, {2, 3, 4}, {{"kernel_size", {2, 2, 2}}});
  refuses("aten.group_norm.default", {{4}}, {4}, {{"num_groups", 2}});
  refuses("aten.hardtanh.default", {{4}}, {4}, {{"min_val", 2.0}, {"max_val", 1.0}});
  refuses("aten.elu.default", {{4}}, {4}, {{"scale", 2.0}});
  refuses("aten.celu.default", {{4}}, {4}, {{"alpha", -1.0}});
  refuses("aten.softplus.default", {{4}}, {4}, {{"beta", 2.0}});
  refuses("aten.pad.default", {{4, 4}}, {4, 6}, {{"pad", {1, 1}}, {"mode", "reflect"}});
  refuses("aten.dropout.default", {{4}}, {4}, {{"p", 0.5}, {"train", true}});
  refuses("aten.scaled_dot_product_attention.default", {{1, 4, 2}, {1, 4, 2}, {1, 4, 2}}, {1, 4, 2},
          {{"dropout_p", 0.5}});
  refuses("aten.relu.default", {{0, 4}}, {0, 4}, Json::object());
  refuses("aten._softmax.default", {{4}}, {4}, {{"dim", 0}, {"half_to_float", true}});
}

}  // namespace npu
