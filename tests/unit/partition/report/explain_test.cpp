// SPDX-License-Identifier: Apache-2.0
// Reasons by operator, and what support for a missing operator would save.
#include "partition/report/explain.hpp"

#include "catch.hpp"
#include "graph_builder.hpp"
#include "npu/ir/json_reader.hpp"
#include "npu/partition/partition_graph.hpp"
#include "npu/passes/tag.hpp"
#include "npu/support/file_io.hpp"
#include "partition/report/report.hpp"

using namespace npu;
using namespace npu::test;

namespace {

Graph model(const std::string& name, const std::vector<ForceRule>& force = {}) {
  const std::string path = std::string(NPU_TEST_DATA_DIR) + "/models/" + name + ".json";
  Graph graph = read_valid_graph(read_file(path), path);
  TagOptions options;
  options.force = force;
  Diagnostics diagnostics;
  tag_ops(graph, load_target("pytorch-apple"), options, diagnostics);
  REQUIRE_FALSE(diagnostics.has_errors());
  return graph;
}

}  // namespace

TEST_CASE("explain: a status for every way to a device") {
  Graph graph = graph_of(R"(
    input x
    a = relu(x)
    b = relu(a)
    c = relu(b)
    d = atan(c)
    e = relu(d)
    f = relu(e); output f)");
  const char* const reasons[] = {
      "", "forced", "cheaper on cpu", "unsupported op", "min nodes", "backend 'npu': no memory"};
  using Status = PlacementStatus;
  const Status statuses[] = {Status::kPreferred,   Status::kForced, Status::kMoved,
                             Status::kUnsupported, Status::kMoved,  Status::kFailed};
  for (std::size_t n = 0; n < 6; ++n) {
    graph.nodes()[n].device = n == 0 ? "npu" : "cpu";
    if (n > 0) graph.nodes()[n].device_reason = reasons[n];
  }
  const auto rows = explain_placement(graph, load_target("host"));
  REQUIRE(rows.size() == 6);
  for (std::size_t n = 0; n < 6; ++n) {
    CAPTURE(n);
    const auto row = std::find_if(rows.begin(), rows.end(), [&](const OperatorRow& candidate) {
      return candidate.reason == reasons[n];
    });
    REQUIRE(row != rows.end());
    CHECK((row->status == statuses[n]));
    CHECK(row->count == 1);
  }
}

TEST_CASE("what if: MobileNetV2 lacks one operator") {
  Graph graph = model("mobilenet_v2");
  Diagnostics diagnostics;
  const PartitionResult result =
      partition_graph(graph, {.strategy = Strategy::kMinCut, .what_if = true}, diagnostics);
  CHECK(result.metrics.partitions == 36);
  const Json& rows = graph.npu_member("partition")->at("what_if");
  REQUIRE(rows.size() == 1);
  CHECK(rows[0].at("op_type") == "aten.hardtanh_.default");
  CHECK(rows[0].at("kind") == "support");
  CHECK(rows[0].at("count") == 35);
  CHECK(rows[0].at("partitions") == 1);
  CHECK(rows[0].at("saved_bytes") == result.metrics.copied_bytes);
  CHECK(format_what_if(result).find("hardtanh_: 36 -> 1") != std::string::npos);
  // The document's plan is the one of now.
  CHECK(graph.npu_member("partition")->at("partitions").size() == 36);
}

TEST_CASE("what if: rows are ranked by time, and the last has everything above") {
  Graph graph = model("bert_base", {{"cpu", "aten.reshape*"}});
  const Graph before = graph;
  Diagnostics diagnostics;
  partition_graph(graph, {.strategy = Strategy::kMinCut, .what_if = true}, diagnostics);
  const Json& rows = graph.npu_member("partition")->at("what_if");
  REQUIRE(rows.size() >= 4);
  double last = 0;
  bool released = false;
  for (const Json& row : rows) {
    CHECK(row.at("predicted_us") >= last);
    last = row.at("predicted_us").get<double>();
    released = released || row.at("kind") == "release";
  }
  CHECK(released);  // the forced reshapes
  CHECK(rows.back().at("with_rows_above").at("partitions") == 1);
}
