// SPDX-License-Identifier: Apache-2.0
// The ways in which one network runs: devices, fusion, partitions, layouts, precision, as a pipe or
// as a bundle, as a document or imported from ONNX. All in this process, through what is behind the
// programs.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "network.hpp"
#include "npu/partition/strategies.hpp"

namespace npu::test {

struct Way {
  std::string target = "host";
  std::vector<std::string> devices{"npu", "cpu"};
  std::map<std::string, std::string> moved = {};  ///< nodes that are forced to a device
  bool fused = true;
  bool bundle = false;
  std::string align = {};  ///< empty: not at all
  Strategy strategy = Strategy::kConvex;
  std::string precision = "f32";  ///< or "bf16", "f16", "int8"
  bool for_this_cpu = true;       ///< int8 has the bits that it multiplies exactly, not eight
  std::int32_t threads = 1;
  std::int32_t in_flight = 1;
  std::int64_t opset = 0;       ///< of ONNX; 0: a document
  std::uint64_t onnx_seed = 0;  ///< of what has several forms there

  /// The commands that do the same with a model in `file`.
  std::string commands(const std::string& file) const;
};
Way draw_way(Random& random, const Network& network, const NetworkStyle& style);
Way draw_gpu_way(Random& random);

/// How a document ran.
struct Run {
  Graph graph;                                 ///< as it is computed: with conversions to int8
  std::map<std::string, Tensor> data;          ///< its weights, by name
  std::map<std::string, std::string> devices;  ///< by node
  std::vector<Tensor> inputs;                  ///< in the order of the graph
  std::vector<Tensor> outputs;
  bool is_padded = false;  ///< the outputs are those of a graph with padded sizes
};
/// Throws Error where a step refuses it.
Run run_network(const Network& network, const Way& way);
/// A document that is there already.
Run run_graph(Graph graph, std::map<std::string, Tensor> data, const std::vector<Tensor>& inputs,
              const Way& way);

}  // namespace npu::test
