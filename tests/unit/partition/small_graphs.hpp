// SPDX-License-Identifier: Apache-2.0
// Graphs for partitioning, written down in a line a node, or drawn at random.
#pragma once

#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "graph_builder.hpp"

namespace npu::test {

/// The input x and a node for each line "NAME OP OPERAND... @DEVICE #FUSION_GROUP"; the last two
/// may be left out.
inline GraphBuilder nodes_of(const std::vector<std::string>& lines) {
  GraphBuilder builder;
  builder.input("x");
  for (const std::string& line : lines) {
    std::istringstream words(line);
    std::string name;
    std::string op;
    words >> name >> op;
    std::vector<std::string> operands;
    std::string device;
    std::string group;
    for (std::string word; words >> word;) {
      if (word[0] == '@') {
        device = word.substr(1);
      } else if (word[0] == '#') {
        group = word.substr(1);
      } else {
        operands.push_back(word);
      }
    }
    builder.node(name, op, operands);
    if (!device.empty()) builder.on(device);
    if (!group.empty()) builder.key("fusion_group", std::stoi(group));
  }
  return builder;
}

struct RandomGraphOptions {
  int nodes = 8;
  int devices = 2;  // named d0, d1, ...
  int max_operands = 3;
  double edge_share = 0.8;  // of operands that are results; the others are the graph input
};

/// Nodes n0, n1, ... in a random topological order, every tenth with two results; sizes differ, so
/// that a wrong tensor gives a wrong byte count.
inline GraphBuilder random_builder(std::mt19937& random, const RandomGraphOptions& options) {
  const auto below = [&](int bound) {
    return static_cast<int>(random() % static_cast<unsigned>(bound));
  };
  GraphBuilder builder;
  builder.input("x");
  std::vector<std::string> results;
  for (int n = 0; n < options.nodes; ++n) {
    const std::string name = "n" + std::to_string(n);
    std::vector<std::string> operands;
    for (int i = below(options.max_operands + 1); i > 0; --i) {
      const bool reads_result =
          !results.empty() && below(100) < static_cast<int>(100 * options.edge_share);
      operands.push_back(
          reads_result ? results[static_cast<std::size_t>(below(static_cast<int>(results.size())))]
                       : "x");
    }
    if (below(10) == 0) {
      builder.node_with_results(name, "custom.two", operands, {{n + 1}, {2 * n + 100}});
      results.push_back(name + "_0");
      results.push_back(name + "_1");
    } else {
      builder.node(name, "custom.one", operands, Shape{n + 1});
      results.push_back(name);
    }
    builder.on("d" + std::to_string(below(options.devices)));
  }
  for (const std::string& result : results) {
    if (below(4) == 0) builder.output(result);
  }
  return builder;
}

}  // namespace npu::test
