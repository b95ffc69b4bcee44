// SPDX-License-Identifier: Apache-2.0
// A vendor's backend for tests that need one to misbehave: device/wrap_backend.cpp, by that name.
#pragma once

#include <cstdlib>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "graph_builder.hpp"
#include "npu/target/target.hpp"
#include "test_paths.hpp"

namespace npu::test {

/// Makes both kinds of backends known; see Backend::load.
inline void use_vendor_backend() {
  const std::string path = std::string(npu::test::vendor_dir()) + ":" + npu::test::backend_dir();
  ::setenv("NPU_BACKEND_PATH", path.c_str(), 1);
}

/// With its npu and npu2 of another backend, if one is named.
inline const Target& vendor_target(const std::string& backend = "vendor") {
  static std::map<std::string, Target> targets;
  if (const auto found = targets.find(backend); found != targets.end()) return found->second;
  Json json = *load_target(NPU_TEST_VENDOR_TARGET).json;
  json["devices"][0]["backend"] = json["devices"][1]["backend"] = backend;
  return targets.emplace(backend, parse_target(json, "vendor_target.json")).first->second;
}

/// Whether CMake built what the vendor's target has for its cpu. Without it a test compares less.
inline bool has_cpu() { return NPU_TEST_HAS_BACKENDS != 0; }

/// Sets an environment variable as long as it lives.
class Setting {
 public:
  Setting(const char* name, const char* value) : name_(name) { ::setenv(name, value, 1); }
  ~Setting() { ::unsetenv(name_); }
  Setting(const Setting&) = delete;
  Setting& operator=(const Setting&) = delete;

 private:
  const char* name_;
};

/// A random graph of relu, neg and add over two inputs and a weight, each node on a random device
/// of npu and npu2 (add: npu); some results are outputs.
inline Graph random_vendor_graph(std::uint32_t seed, int nodes,
                                 const std::string& backend = "vendor") {
  std::mt19937 random(seed);
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  GraphBuilder builder;
  builder.input("x", {5}).input("y", {5}).weight("w", {5});
  std::vector<std::string> values{"x", "y", "p_w"};
  for (int i = 0; i < nodes; ++i) {
    const std::string name = "n" + std::to_string(i);
    const std::string a = values[below(values.size())];
    const std::string b = values[below(values.size())];
    switch (below(3)) {
      case 0:
        builder.node(name, "aten.relu.default", {a});
        break;
      case 1:
        builder.node(name, "aten.neg.default", {a});
        break;
      default:
        builder.node(name, "aten.add.Tensor", {a, b});
    }
    values.push_back(name);
    if (below(4) == 0 || i + 1 == nodes) builder.output(name);
  }
  Graph graph = builder.build();
  for (Node& node : graph.nodes()) {
    node.device = node.op_type == "aten.add.Tensor" || below(2) == 0 ? "npu" : "npu2";
  }
  graph.set_npu_member("target", *vendor_target(backend).json);
  return graph;
}

}  // namespace npu::test
