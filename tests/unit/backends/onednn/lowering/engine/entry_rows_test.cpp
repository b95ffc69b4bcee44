// SPDX-License-Identifier: Apache-2.0
// What entries say of each other's rows.
#include "lowering/engine/entry_rows.hpp"

#include <string>
#include <vector>

#include "catch.hpp"
#include "npu/ir/json_reader.hpp"

namespace npu::onednn {

namespace {

/// y = relu(x), with a shape of this text.
Graph graph_of(const std::string& shape) {
  const auto mention = [&](const char* name) {
    return R"({"name": ")" + std::string(name) + R"(", "dtype": "float32", "shape": )" + shape +
           "}";
  };
  return read_valid_graph(R"({"graph_inputs": [)" + mention("x") + R"(], "graph_outputs": [)" +
                              mention("y") + R"(], "nodes": [{"name": "y",
                               "op_type": "aten.relu.default", "inputs": [)" +
                              mention("x") + R"(], "outputs": [)" + mention("y") + "]}]}",
                          "m.json");
}

}  // namespace

TEST_CASE("rows of a node are those of all graphs that have it", "[onednn][choose]") {
  std::vector<Graph> graphs;
  graphs.push_back(graph_of("[1, 4]"));
  const Node node = graphs.front().nodes().front();
  CHECK(EntryRows(graphs).of(node, 1).most == 1);  // nobody else
  graphs.push_back(graph_of("[2, 16, 4]"));
  const EntryRows rows(graphs);
  CHECK(rows.of(node, 1).least == 1);
  CHECK(rows.of(node, 1).most == 32);
  // Rows that are not those of its result.
  CHECK(rows.of(node, 64).least == 64);
  CHECK(rows.of(node, 64).most == 64);
  CHECK(EntryRows().of(node, 3).least == 3);
}

}  // namespace npu::onednn
