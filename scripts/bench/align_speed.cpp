// SPDX-License-Identifier: Apache-2.0
// Times of npu-align's pass in process, without JSON text: graphs of 5,000 to 40,000 ops (branchy,
// a third of the ops pinned to one layout), the best of several runs, with the size of the cut's
// network and the peak memory. Build and run:
//   cmake --build build --target align_speed && build/bin/align_speed
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <random>

#include "npu/ir/json_reader.hpp"
#include "npu/passes/align.hpp"

namespace {

npu::Json tensor(const std::string& name, std::int64_t channels) {
  return {{"name", name}, {"shape", {1, channels, 8, 8}}, {"dtype", "float32"}};
}

npu::Graph make_graph(int ops) {
  std::mt19937 random(1);
  npu::Json document = {{"model_name", "bench"}, {"graph_inputs", {tensor("x", 64)}}};
  npu::Json nodes = npu::Json::array();
  std::vector<std::int64_t> channels;
  for (int n = 0; n < ops; ++n) {
    const std::string name = "n" + std::to_string(n);
    channels.push_back(static_cast<std::int64_t>(8 * (random() % 16 + 1)));
    npu::Json inputs = npu::Json::array();
    for (unsigned i = static_cast<unsigned>(random()) % 3 + 1; i > 0; --i) {
      const int from = n - 1 - static_cast<int>(random() % 12);
      inputs.push_back(
          from < 0 ? tensor("x", 64)
                   : tensor("n" + std::to_string(from), channels[static_cast<std::size_t>(from)]));
    }
    npu::Json node = {{"name", name},
                      {"op_type", "my.op"},
                      {"inputs", std::move(inputs)},
                      {"outputs", {tensor(name, channels.back())}},
                      {"attrs", npu::Json::object()}};
    if (random() % 3 == 0) node["dev_info"] = random() % 2 == 0 ? "ALIGN" : "NALIGN";
    nodes.push_back(std::move(node));
  }
  document["graph_outputs"] = {tensor("n" + std::to_string(ops - 1), channels.back())};
  document["nodes"] = std::move(nodes);
  npu::Diagnostics diagnostics;
  return npu::assemble_graph(std::move(document), "bench", diagnostics);
}

double peak_megabytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

}  // namespace

int main() {
  std::printf("%8s %12s %12s %12s %12s %12s\n", "ops", "greedy ms", "optimal ms", "vertices",
              "arcs", "peak MB");
  for (const int ops : {5000, 10000, 20000, 40000}) {
    const npu::Graph graph = make_graph(ops);
    double best[2] = {1e9, 1e9};
    npu::AlignResult result;
    for (int run = 0; run < 5; ++run) {
      for (const int which : {0, 1}) {
        npu::Graph copy = graph;
        npu::Diagnostics diagnostics;
        const auto start = std::chrono::steady_clock::now();
        result =
            npu::align_layout(copy, {.algorithm = which == 0 ? "greedy" : "optimal"}, diagnostics);
        const std::chrono::duration<double, std::milli> time =
            std::chrono::steady_clock::now() - start;
        best[which] = std::min(best[which], time.count());
      }
    }
    std::printf("%8d %12.1f %12.1f %12lld %12lld %12.0f   %lld conversions, greedy %lld\n", ops,
                best[0], best[1], static_cast<long long>(result.certificate->vertices),
                static_cast<long long>(result.certificate->arcs), peak_megabytes(),
                static_cast<long long>(result.costs.conversions),
                static_cast<long long>(result.greedy.conversions));
  }
}
