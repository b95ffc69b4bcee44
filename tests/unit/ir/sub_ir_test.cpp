// SPDX-License-Identifier: Apache-2.0
// npu/sub_ir.h reads what the library writes for backends as the library itself does.
// sub_ir_test.c has the tests of what it does by itself.
#include "compile/sub_ir.hpp"

#include <filesystem>
#include <string>
#include <vector>

#include "catch.hpp"
#include "ir/compare_sub_ir.hpp"
#include "npu/ir/json_reader.hpp"
#include "npu/support/file_io.hpp"
#include "npu/target/target.hpp"
#include "test_paths.hpp"

namespace {

// As npu-compile cuts them: the whole graph, and parts of 7 nodes, with groups and without.
void check_sub_irs(const npu::Graph& graph) {
  std::vector<std::vector<npu::NodeId>> parts = {all_nodes(graph)};
  for (const npu::NodeId id : all_nodes(graph)) {
    if (id.value % 7 == 0) parts.emplace_back();
    parts.back().push_back(id);
  }
  for (const auto& part : parts) {
    for (const auto& patterns :
         {std::optional<std::vector<std::string>>(), npu::backend_patterns("onednn")}) {
      const npu::SubIr sub_ir =
          npu::make_sub_ir(graph, part, npu::find_boundary(graph, part), patterns);
      CHECK(npu::test::sub_ir_difference(sub_ir.text,
                                         npu::read_valid_graph(sub_ir.text, "sub-IR")) == "");
    }
  }
}

}  // namespace

TEST_CASE("the sub-IRs of every model are read as the library reads them") {
  std::size_t models = 0;
  for (const char* folder : {"/models", "/models/small", "/graphs"}) {
    const std::filesystem::path path = NPU_TEST_DATA_DIR + std::string(folder);
    if (!std::filesystem::exists(path)) continue;
    for (const auto& entry : std::filesystem::directory_iterator(path)) {
      if (entry.path().extension() != ".json") continue;
      INFO(entry.path());
      npu::Diagnostics faults;
      const npu::Graph graph =
          npu::read_graph(npu::read_file(entry.path().string()), entry.path().string(), faults);
      REQUIRE(!faults.has_errors());
      check_sub_irs(graph);
      ++models;
    }
  }
  CHECK(models > 20);
}

TEST_CASE("a difference to the library is found") {
  const npu::Graph graph = npu::read_valid_graph(
      npu::read_file(NPU_TEST_DATA_DIR + std::string("/models/small/residual.json")), "residual");
  const std::vector<npu::NodeId> nodes = all_nodes(graph);
  std::string text = npu::write_subgraph(graph, nodes, npu::find_boundary(graph, nodes));
  REQUIRE(npu::test::sub_ir_difference(text, npu::read_valid_graph(text, "sub-IR")) == "");
  const npu::Graph before = npu::read_valid_graph(text, "sub-IR");
  const std::size_t place = text.find("aten.relu_.default");
  REQUIRE(place != std::string::npos);
  text.replace(place, 10, "aten.relu6");
  CHECK(npu::test::sub_ir_difference(text, before).find("another op") != std::string::npos);
}
