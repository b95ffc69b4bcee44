// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "frontend/frontend.hpp"
#include "frontend/onnx_model.hpp"

namespace npu::test {

/// What the frontend that the build made reads from a model.
struct Imported {
  Graph graph;
  std::string errors;

  std::vector<std::string> ops() const {
    std::vector<std::string> types;
    for (const Node& node : graph.nodes()) types.push_back(node.op_type);
    return types;
  }
};

inline Imported import_bytes(const std::string& bytes, const ImportOptions& options = {},
                             const std::string& path = "") {
  Diagnostics diagnostics;
  Imported imported;
  auto graph = import_model(path, bytes, options, diagnostics);
  REQUIRE(graph);
  imported.graph = *std::move(graph);
  for (const Diagnostic& diagnostic : diagnostics.entries()) {
    imported.errors += diagnostic.text + "\n";
  }
  return imported;
}

}  // namespace npu::test
