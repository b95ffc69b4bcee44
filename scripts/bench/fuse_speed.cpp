// SPDX-License-Identifier: Apache-2.0
// Times npu-fuse's pass in process, without reading or writing documents.
//
//   cmake --build build --target fuse_speed
//   build/bin/fuse_speed [RUNS]
//
// Graphs are branchy (one node in three has two operands, from a window of the last 64 results) and
// consist of convolutions, batch norms, activations, adds, matrix products, softmax, cats and
// views; nodes are on one of two random devices, in runs of four on average, and in a second graph
// all on one. Prints for each size, with the default and with all patterns, the groups, the best
// and the median of RUNS (20), the time per node, and the growth over the previous size.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <random>
#include <string>
#include <vector>

#include "npu/ir/json_reader.hpp"
#include "npu/passes/fuse.hpp"

namespace {

npu::Graph make_graph(int nodes, unsigned seed, bool one_device) {
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
  const auto mention = [&](const std::string& name, const npu::Json& shape) {
    return npu::Json{{"name", name}, {"shape", shape}, {"dtype", "float32"}};
  };
  const npu::Json image = {1, 64, 56, 56};
  const npu::Json filter = {64, 64, 1, 1};
  const npu::Json channels = {64};
  document["graph_inputs"].push_back(mention("x", image));
  document["weights"].push_back(mention("w", filter));
  document["weights"].push_back(mention("c", channels));
  const char* const unary[] = {"aten.relu.default",       "aten.relu_.default",
                               "aten.conv2d.default",     "aten.conv2d.default",
                               "aten.batch_norm.default", "aten.batch_norm.default",
                               "aten.view.default",       "aten.softmax.int",
                               "aten.gelu.default",       "aten.linear.default"};
  const char* const binary[] = {"aten.add.Tensor", "aten.mul.Tensor", "aten.cat.default",
                                "aten.bmm.default"};
  const auto pick = [&](int n) {
    return n == 0 ? std::string("x") : "n" + std::to_string(n - 1 - below(std::min(n, 64)));
  };
  std::string device = "npu";
  for (int n = 0; n < nodes; ++n) {
    const std::string name = "n" + std::to_string(n);
    const bool two = below(3) == 0;
    const std::string op = two ? binary[below(4)] : unary[below(10)];
    if (!one_device && below(4) == 0) device = below(2) == 0 ? "npu" : "cpu";
    npu::Json node = {{"name", name},
                      {"op_type", op},
                      {"inputs", npu::Json::array()},
                      {"outputs", npu::Json::array({mention(name, image)})},
                      {"attrs", npu::Json::object()},
                      {"device", device}};
    node["inputs"].push_back(
        mention(two ? pick(n) : (n == 0 ? "x" : "n" + std::to_string(n - 1)), image));
    if (two) node["inputs"].push_back(mention(pick(n), image));
    if (op == "aten.conv2d.default" || op == "aten.linear.default") {
      node["inputs"].push_back(mention("w", filter));
    }
    if (op == "aten.batch_norm.default") {
      for (int i = 0; i < 4; ++i) node["inputs"].push_back(mention("c", channels));
      node["attrs"]["training"] = false;
    }
    document["nodes"].push_back(std::move(node));
  }
  document["graph_outputs"].push_back(mention("n" + std::to_string(nodes - 1), image));
  return npu::read_valid_graph(document.dump(), "bench.json");
}

}  // namespace

int main(int argc, char** argv) {
  const int runs = argc > 1 ? std::max(1, std::atoi(argv[1])) : 20;
  for (const bool one_device : {false, true}) {
    for (const char* patterns : {"default", "all"}) {
      double before = 0;
      for (const int nodes : {4'000, 10'000, 40'000}) {
        const npu::Graph graph = make_graph(nodes, 1, one_device);
        const npu::FuseOptions options{.patterns = {patterns}};
        std::vector<double> ms;
        double cpu_ms =
            1e9;  // of this thread only: on a busy machine the wall clock includes other processes
        std::size_t groups = 0;
        for (int i = 0; i < runs; ++i) {
          const auto start = std::chrono::steady_clock::now();
          const std::clock_t cpu_start = std::clock();
          groups = npu::plan_fusion(graph, options).groups.size();
          ms.push_back(
              std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
                  .count());
          cpu_ms = std::min(cpu_ms,
                            1e3 * static_cast<double>(std::clock() - cpu_start) / CLOCKS_PER_SEC);
        }
        std::sort(ms.begin(), ms.end());
        std::printf(
            "%s %-8s %6d nodes %6zu groups  best %7.2f ms (cpu %7.2f)  median %7.2f ms  %5.0f "
            "ns/node",
            one_device ? "one device " : "two devices", patterns, nodes, groups, ms.front(), cpu_ms,
            ms[ms.size() / 2], 1e6 * ms.front() / nodes);
        if (before > 0) std::printf("  x%.2f", ms.front() / before);
        std::printf("\n");
        before = ms.front();
      }
    }
  }
}
