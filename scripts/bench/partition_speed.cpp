// SPDX-License-Identifier: Apache-2.0
// Times the convex and mincut strategies in process, without reading or writing documents.
//
//   partition_speed [RUNS]
//
// Graphs are branchy (one node in three has two operands, from a window of the last 64 results) and
// every node is on a random device: for mincut because the NPU of the target lacks half of the
// operators and one node in ten is forced. Prints, for each size, the best and the median of RUNS
// (20), the time per node, and the growth over the previous size.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "npu/ir/json_reader.hpp"
#include "npu/partition/partition_graph.hpp"
#include "npu/partition/strategies.hpp"
#include "npu/passes/tag.hpp"

namespace {

const char* const kTarget = R"({"name": "bench", "devices": [
  {"name": "npu", "ops": [{"types": ["aten.relu.default", "aten.add.Tensor", "aten.mul.Tensor"]}],
   "peak_flops": {"float32": 2e12}, "memory_bandwidth": 60e9, "launch_overhead_us": 5},
  {"name": "cpu", "ops": "*", "peak_flops": {"float32": 5e10}, "memory_bandwidth": 4e9,
   "launch_overhead_us": 5}],
  "links": [{"from": "npu", "to": "cpu", "bandwidth": 8e9, "latency_us": 2}]})";

npu::Graph make_graph(int nodes, unsigned seed) {
  std::mt19937 random(seed);
  const auto below = [&](int bound) {
    return static_cast<int>(random() % static_cast<unsigned>(bound));
  };
  npu::Json document = {{"model_name", "bench"},
                        {"graph_inputs", npu::Json::array()},
                        {"graph_outputs", npu::Json::array()},
                        {"weights", npu::Json::array()},
                        {"weight_name_mapping", npu::Json::object()},
                        {"nodes", npu::Json::array()}};
  const npu::Json shape = {1, 32, 28, 28};
  const auto mention = [&](const std::string& name) {
    return npu::Json{{"name", name}, {"shape", shape}, {"dtype", "float32"}};
  };
  document["graph_inputs"].push_back(mention("x"));
  const char* const unary[] = {"aten.relu.default", "aten.sin.default"};
  const char* const binary[] = {"aten.add.Tensor", "aten.sub.Tensor", "aten.mul.Tensor",
                                "aten.div.Tensor"};
  const auto pick = [&](int n) {
    return n == 0 ? std::string("x") : "n" + std::to_string(n - 1 - below(std::min(n, 64)));
  };
  for (int n = 0; n < nodes; ++n) {
    const bool two = below(3) == 0;
    npu::Json node = {{"name", "n" + std::to_string(n)},
                      {"op_type", two ? binary[below(4)] : unary[below(2)]},
                      {"inputs", npu::Json::array()},
                      {"outputs", npu::Json::array({mention("n" + std::to_string(n))})},
                      {"attrs", npu::Json::object()}};
    node["inputs"].push_back(mention(two ? pick(n) : (n == 0 ? "x" : "n" + std::to_string(n - 1))));
    if (two) node["inputs"].push_back(mention(pick(n)));
    document["nodes"].push_back(std::move(node));
  }
  document["graph_outputs"].push_back(mention("n" + std::to_string(nodes - 1)));
  return npu::read_valid_graph(document.dump(), "bench.json");
}

template <typename Run>
void report(const char* name, int nodes, int runs, double& before, const Run& run) {
  std::vector<double> ms;
  std::size_t partitions = 0;
  for (int i = 0; i < runs; ++i) ms.push_back(run(partitions));
  std::sort(ms.begin(), ms.end());
  const double best = ms.front();
  std::printf("%-8s %6d nodes %6zu partitions  best %8.2f ms  median %8.2f ms  %6.0f ns/node", name,
              nodes, partitions, best, ms[ms.size() / 2], 1e6 * best / nodes);
  if (before > 0) std::printf("  x%.2f", best / before);
  std::printf("\n");
  before = best;
}

double milliseconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
      .count();
}

}  // namespace

int main(int argc, char** argv) {
  const int runs = argc > 1 ? std::max(1, std::atoi(argv[1])) : 20;
  const npu::Target target = npu::parse_target(npu::Json::parse(kTarget), "bench.json");
  double convex_before = 0;
  double mincut_before = 0;
  for (const int nodes : {4'000, 10'000, 40'000}) {
    npu::Graph graph = make_graph(nodes, 1);
    std::mt19937 random(2);
    for (npu::Node& node : graph.nodes()) node.device = random() % 2 == 0 ? "npu" : "cpu";
    report("convex", nodes, runs, convex_before, [&](std::size_t& partitions) {
      const auto start = std::chrono::steady_clock::now();
      const npu::PartitionPlan plan = npu::partition_convex(graph);
      partitions = plan.partitions.size();
      return milliseconds_since(start);
    });
    npu::Diagnostics diagnostics;
    npu::tag_ops(graph, target, {}, diagnostics);
    for (npu::Node& node : graph.nodes()) {
      if (random() % 10 == 0) {
        node.device = "cpu";
        node.device_reason = "forced";
      }
    }
    std::vector<std::pair<std::optional<std::string>, std::optional<std::string>>> tags;
    for (const npu::Node& node : graph.nodes()) tags.emplace_back(node.device, node.device_reason);
    report("mincut", nodes, runs, mincut_before, [&](std::size_t& partitions) {
      for (std::size_t n = 0; n < tags.size(); ++n) {
        graph.nodes()[n].device = tags[n].first;
        graph.nodes()[n].device_reason = tags[n].second;
      }
      const auto start = std::chrono::steady_clock::now();
      const npu::StrategyOutcome outcome = npu::partition_min_cut(graph, target, {}, diagnostics);
      partitions = outcome.plan.partitions.size();
      return milliseconds_since(start);
    });
  }
  return 0;
}
