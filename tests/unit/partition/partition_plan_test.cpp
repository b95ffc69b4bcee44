// SPDX-License-Identifier: Apache-2.0
// Plans in documents: writing, reading, and the faults that are found in a plan that was
// changed.
#include "npu/partition/partition_plan.hpp"

#include "catch.hpp"
#include "graph_builder.hpp"
#include "npu/ir/json_writer.hpp"
#include "npu/partition/partition_graph.hpp"
#include "npu/partition/strategies.hpp"
#include "partition/report/report.hpp"
#include "plan_checks.hpp"

using namespace npu;
using namespace npu::test;
using Lines = std::vector<std::string>;

namespace {

// npu: a -> cpu: b -> npu: c, and a is an operand of c, too. Partitions 0, 1, 2; steps 0 to 4.
Json three_partitions() {
  Graph graph = graph_of(R"(
    input x
    a = "custom"(x) @npu
    b = "custom"(a) @cpu
    c = "custom"(b, a) @npu; output c)");
  write_partition_plan(graph, partition_convex(graph), Json::object());
  return Json::parse(write_graph(graph));
}

Lines plan_faults(const Json& document) {
  const Graph graph = read_valid_graph(document.dump(), "plan.json");
  Diagnostics diagnostics;
  read_partition_plan(graph, diagnostics);
  for (const Diagnostic& diagnostic : diagnostics.entries())
    CHECK(diagnostic.location.file == "plan.json");
  return errors_of(diagnostics);
}

// Faults after one change of the value at a JSON Pointer below /npu/partition.
Lines plan_faults_with(const std::string& pointer, const Json& value) {
  Json document = three_partitions();
  document[Json::json_pointer("/npu/partition" + pointer)] = value;
  return plan_faults(document);
}

}  // namespace

TEST_CASE("plan: the plan that the other tests change has five steps and no fault") {
  const Json document = three_partitions();
  CHECK(plan_faults(document).empty());
  CHECK(document["npu"]["partition"]["steps"].size() == 5);
  CHECK(document["npu"]["partition"]["steps"][1]["tensors"] == Json{"a"});
}

TEST_CASE("plan: a document without one is an error that names the tool to run") {
  CHECK(plan_faults(GraphBuilder().document()) ==
        Lines{"/npu/partition: the document has no partitions; run npu-partition first"});
}

TEST_CASE("plan: writing twice replaces the first plan") {
  Graph graph = read_valid_graph(three_partitions().dump(), "f");
  for (Node& node : graph.nodes()) node.device = "cpu";
  write_partition_plan(graph, partition_convex(graph), Json::object());
  const Graph again = read_valid_graph(write_graph(graph), "f");
  Diagnostics diagnostics;
  const PartitionPlan plan = read_partition_plan(again, diagnostics);
  CHECK(errors_of(diagnostics).empty());
  CHECK(steps_of(again, plan) == Lines{"cpu: a b c"});
}

TEST_CASE("plan: one partition for everything") {
  Graph graph = read_valid_graph(three_partitions().dump(), "f");
  for (Node& node : graph.nodes()) node.device = "cpu";
  const PartitionPlan plan = single_partition_plan(graph, "cpu");
  CHECK(plan.strategy == "single");
  CHECK(steps_of(graph, plan) == Lines{"cpu: a b c"});
  CHECK(plan.partitions[0].boundary.inputs == std::vector<TensorId>{graph.find_tensor("x")});
  CHECK(plan.partitions[0].boundary.outputs == std::vector<TensorId>{graph.find_tensor("c")});
  check_survives_document(graph, plan);
  CHECK(single_partition_plan(GraphBuilder().build(), "cpu").steps.empty());
}

TEST_CASE("plan: a missing or misplaced list is a fault") {
  CHECK(plan_faults_with("/partitions", 1) ==
        Lines{"/npu/partition/partitions: expected an array"});
  CHECK(plan_faults_with("/steps", Json::object()) ==
        Lines{"/npu/partition/steps: expected an array"});
  CHECK(plan_faults_with("", Json::object()) ==
        Lines{"/npu/partition/partitions: expected an array",
              "/npu/partition/steps: expected an array"});
}

TEST_CASE("plan: what nodes say of their partition is what the plan lists") {
  Json document = three_partitions();
  document["nodes"][1]["partition"] = 2;
  CHECK(plan_faults(document) ==
        Lines{"/nodes/1/partition: node 'b' has the partition 2, but npu.partition lists it in "
              "partition 1"});
  document["nodes"][1].erase("partition");
  CHECK(plan_faults(document) ==
        Lines{"/nodes/1/partition: node 'b' has the partition null, but npu.partition lists it in "
              "partition 1"});
}

TEST_CASE("plan: faults of partitions") {
  CHECK(plan_faults_with("/partitions/1/id", 2) ==
        Lines{"/npu/partition/partitions/1/id: expected the id 1: ids count from 0 in list order"});
  CHECK(plan_faults_with("/partitions/1/id", "1") ==
        Lines{"/npu/partition/partitions/1/id: expected the id 1: ids count from 0 in list order"});
  CHECK(plan_faults_with("/partitions/1/device", nullptr) ==
        Lines{"/npu/partition/partitions/1/device: expected a device name",
              "/npu/partition/partitions: node 'b' is in no partition"});
  CHECK(plan_faults_with("/partitions/1/device", "npu") ==
        Lines{"/npu/partition/partitions/1/nodes/0: node 'b' has the device 'cpu', its partition "
              "'npu'"});
  CHECK(plan_faults_with("/partitions/1/nodes", "b") ==
        Lines{"/npu/partition/partitions/1/nodes: expected an array of node names",
              "/npu/partition/partitions: node 'b' is in no partition"});
  CHECK(plan_faults_with("/partitions/1/nodes", {"b", "zzz", 5}) ==
        Lines{"/npu/partition/partitions/1/nodes/1: the graph has no node \"zzz\"",
              "/npu/partition/partitions/1/nodes/2: the graph has no node 5"});
  CHECK(plan_faults_with("/partitions/1", 5).front() ==
        "/npu/partition/partitions/1/id: expected the id 1: ids count from 0 in list order");
}

TEST_CASE("plan: a node in no partition, in two, or twice in one is a fault") {
  CHECK(plan_faults_with("/partitions/1/nodes", Json::array()).front() ==
        "/npu/partition/partitions: node 'b' is in no partition");
  CHECK(plan_faults_with("/partitions/2/nodes", {"a", "c"}) ==
        Lines{"/npu/partition/partitions/2/nodes/0: node 'a' is in partition 0 already"});
  CHECK(plan_faults_with("/partitions/2/nodes", {"c", "c"}) ==
        Lines{"/npu/partition/partitions/2/nodes/1: node 'c' is in partition 2 already"});
}

TEST_CASE("plan: a node moved to another partition is a fault") {
  Json document = three_partitions();
  Json& partitions = document["npu"]["partition"]["partitions"];
  // On another device.
  partitions[0]["nodes"] = Json::array();
  partitions[1]["nodes"] = {"a", "b"};
  document["nodes"][0]["partition"] = 1;
  CHECK(plan_faults(document) == Lines{"/npu/partition/partitions/1/nodes/0: node 'a' has the "
                                       "device 'npu', its partition 'cpu'"});
  // On the same device, but b needs it before.
  partitions[1]["nodes"] = {"b"};
  partitions[2]["nodes"] = {"a", "c"};
  document["nodes"][0]["partition"] = 2;
  CHECK(plan_faults(document) ==
        Lines{"/npu/partition/steps/1: tensor 'a' is transferred before it is produced"});
}

TEST_CASE("plan: a node without a device does not fit any partition") {
  Json document = three_partitions();
  document["nodes"][1].erase("device");
  CHECK(plan_faults(document) == Lines{"/npu/partition/partitions/1/nodes/0: node 'b' has the "
                                       "device null, its partition 'cpu'"});
}

TEST_CASE("plan: faults of steps") {
  CHECK(
      plan_faults_with("/steps/0/kind", "run") ==
      Lines{"/npu/partition/steps/0/kind: expected \"partition\" or \"transfer\", found \"run\""});
  CHECK(
      plan_faults_with("/steps/0", Json::object()) ==
      Lines{"/npu/partition/steps/0/kind: expected \"partition\" or \"transfer\", found nothing"});
  CHECK(
      plan_faults_with("/steps/0", "partition 0") ==
      Lines{"/npu/partition/steps/0/kind: expected \"partition\" or \"transfer\", found nothing"});
  for (const Json& bad :
       {Json(3), Json(-1), Json(1.0), Json("0"), Json(nullptr), Json(UINT64_MAX)}) {
    CAPTURE(bad.dump());
    CHECK(plan_faults_with("/steps/0/id", bad) ==
          Lines{"/npu/partition/steps/0/id: expected the id of a partition, found " + bad.dump()});
    CHECK(
        plan_faults_with("/steps/1/from", bad) ==
        Lines{"/npu/partition/steps/1/from: expected the id of a partition, found " + bad.dump()});
    CHECK(plan_faults_with("/steps/1/to", bad) ==
          Lines{"/npu/partition/steps/1/to: expected the id of a partition, found " + bad.dump()});
  }
  CHECK(plan_faults_with("/steps/1/tensors", "a") ==
        Lines{"/npu/partition/steps/1/tensors: expected an array of tensor names"});
  CHECK(plan_faults_with("/steps/1/tensors", {"a", "zzz"}) ==
        Lines{"/npu/partition/steps/1/tensors: the graph has no tensor \"zzz\""});
  CHECK(plan_faults_with("/steps/1/tensors", {5}) ==
        Lines{"/npu/partition/steps/1/tensors: the graph has no tensor 5"});
}

TEST_CASE("plan: a transfer that is missing, too early, or of the wrong tensor") {
  Json document = three_partitions();
  Json& steps = document["npu"]["partition"]["steps"];
  steps.erase(1);
  CHECK(
      plan_faults(document) ==
      Lines{"/npu/partition/steps/1: partition 1 reads tensor 'a', which is not on device 'cpu'"});
  document = three_partitions();
  std::swap(document["npu"]["partition"]["steps"][0], document["npu"]["partition"]["steps"][1]);
  CHECK(plan_faults(document) ==
        Lines{"/npu/partition/steps/0: tensor 'a' is transferred before it is produced"});
  CHECK(
      plan_faults_with("/steps/1/tensors", {"x"}) ==
      Lines{"/npu/partition/steps/1: tensor 'x' is transferred before it is produced",
            "/npu/partition/steps/2: partition 1 reads tensor 'a', which is not on device 'cpu'"});
  CHECK(
      plan_faults_with("/steps/1/tensors", Json::array()) ==
      Lines{"/npu/partition/steps/1: partition 1 reads tensor 'a', which is not on device 'cpu'"});
  CHECK(
      plan_faults_with("/steps/1/to", 2) ==  // to the npu, where it is already
      Lines{"/npu/partition/steps/2: partition 1 reads tensor 'a', which is not on device 'cpu'"});
}

TEST_CASE("plan: a partition that runs twice, never, or before its operands") {
  Json document = three_partitions();
  Json& steps = document["npu"]["partition"]["steps"];
  steps.push_back(steps[4]);
  CHECK(plan_faults(document) == Lines{"/npu/partition/steps/5: partition 2 runs twice"});
  steps.erase(5);
  steps.erase(4);
  CHECK(plan_faults(document) == Lines{"/npu/partition/steps: partition 2 never runs"});
  document = three_partitions();
  std::swap(document["npu"]["partition"]["steps"][0], document["npu"]["partition"]["steps"][4]);
  CHECK(plan_faults(document).front() ==
        "/npu/partition/steps/0: partition 2 reads tensor 'b', which is not produced yet");
}

TEST_CASE("plan: every random change of a plan is judged as by a simulation") {
  std::mt19937 random(23);
  int good = 0;
  int bad = 0;
  for (int round = 0; round < 1000; ++round) {
    CAPTURE(round);
    const RandomGraphOptions options{.nodes = 3 + round % 10, .devices = 2 + round % 2};
    Graph graph = random_builder(random, options).build();
    PartitionPlan plan = round % 3 == 0 ? partition_contiguous(graph) : partition_convex(graph);
    const auto pick = [&](std::size_t bound) { return static_cast<std::size_t>(random() % bound); };
    switch (round % 5) {
      case 0:
        std::swap(plan.steps[pick(plan.steps.size())], plan.steps[pick(plan.steps.size())]);
        break;
      case 1:
        plan.steps.erase(plan.steps.begin() + static_cast<std::ptrdiff_t>(pick(plan.steps.size())));
        break;
      case 2: {  // a node goes to another partition
        auto& from = plan.partitions[pick(plan.partitions.size())].nodes;
        auto& to = plan.partitions[pick(plan.partitions.size())].nodes;
        if (!from.empty()) {
          const auto which = from.begin() + static_cast<std::ptrdiff_t>(pick(from.size()));
          const NodeId id = *which;
          from.erase(which);
          to.insert(std::upper_bound(to.begin(), to.end(), id), id);
        }
        break;
      }
      case 3:
        if (!plan.transfers.empty()) {
          auto& tensors = plan.transfers[pick(plan.transfers.size())].tensors;
          tensors[pick(tensors.size())] =
              TensorId{static_cast<std::int32_t>(pick(graph.tensors().size()))};
        }
        break;
      default:
        plan.steps.insert(plan.steps.begin() + static_cast<std::ptrdiff_t>(pick(plan.steps.size())),
                          plan.steps[pick(plan.steps.size())]);
    }
    write_partition_plan(graph, plan, Json::object());
    const Graph again = read_valid_graph(write_graph(graph), "f");
    Diagnostics diagnostics;
    read_partition_plan(again, diagnostics);
    const bool executable = is_executable(graph, plan);
    CHECK(diagnostics.has_errors() != executable);
    ++(executable ? good : bad);
  }
  CHECK(good > 100);
  CHECK(bad > 300);
}

TEST_CASE(
    "plan: junk at every place of a plan gives diagnostics or a plan that runs, and no crash") {
  const std::vector<Json> values{nullptr,
                                 true,
                                 -1,
                                 0,
                                 1,
                                 99,
                                 UINT64_MAX,
                                 0.5,
                                 "",
                                 "a",
                                 "npu",
                                 Json::array(),
                                 Json::object(),
                                 Json::array({0, "a", nullptr})};
  const Json original = three_partitions();
  const Json flat = original["npu"]["partition"].flatten();
  std::set<std::string> pointers;
  for (const auto& [pointer, value] : flat.items()) {
    for (std::size_t end = pointer.size(); end != std::string::npos && end > 0;
         end = pointer.rfind('/', end - 1)) {
      pointers.insert("/npu/partition" + pointer.substr(0, end));
    }
  }
  REQUIRE(pointers.size() > 40);
  for (const std::string& pointer : pointers) {
    for (const Json& value : values) {
      Json document = original;
      document[Json::json_pointer(pointer)] = value;
      CAPTURE(pointer, value.dump());
      const Graph graph = read_valid_graph(document.dump(), "f");
      Diagnostics diagnostics;
      const PartitionPlan plan = read_partition_plan(graph, diagnostics);
      if (!diagnostics.has_errors()) CHECK(is_executable(graph, plan));
    }
  }
}

TEST_CASE("plan: Graphviz text has a cluster a partition and an edge a tensor that crosses") {
  const Graph graph = read_valid_graph(three_partitions().dump(), "f");
  Diagnostics diagnostics;
  const std::string dot =
      plan_to_dot(graph, read_partition_plan(graph, diagnostics), DotLevel::kNode);
  CHECK(dot.starts_with("digraph \"test\" {"));
  CHECK(dot.ends_with("}\n"));
  for (const char* part :
       {"subgraph cluster_0 {\n    label=\"0: npu\"", "subgraph cluster_1 {\n    label=\"1: cpu\"",
        "subgraph cluster_2 {\n    label=\"2: npu\"", "n0 [label=\"a\\ncustom\"]",
        "n0 -> n1 [color=red, label=\"16 B\"];", "n1 -> n2 [color=red, label=\"16 B\"];",
        "n0 -> n2 [label=\"16 B\"];", "in0 -> n0;", "n2 -> out0;"}) {
    CAPTURE(part);
    CHECK(dot.find(part) != std::string::npos);
  }
  CHECK(std::count(dot.begin(), dot.end(), '{') == std::count(dot.begin(), dot.end(), '}'));
}

TEST_CASE("plan: Graphviz text escapes quotes, backslashes and line ends in names") {
  Graph graph = GraphBuilder("m\"o\\d")
                    .input("x")
                    .node("a\"\n\\", "custom", {"x"})
                    .on("npu")
                    .output("a\"\n\\")
                    .build();
  const std::string dot = plan_to_dot(graph, partition_convex(graph), DotLevel::kNode);
  CHECK(dot.starts_with("digraph \"m\\\"o\\\\d\" {"));
  CHECK(dot.find("n0 [label=\"a\\\"\\n\\\\\\ncustom\"]") != std::string::npos);
}

TEST_CASE("partition_graph: a document without tags and a device of no target") {
  Diagnostics diagnostics;
  Graph untagged = GraphBuilder().input("x").node("a", "custom", {"x"}).build();
  CHECK_THROWS_AS(partition_graph(untagged, {}, diagnostics), Error);

  Graph graph = GraphBuilder().input("x").node("a", "aten.relu.default", {"x"}).on("tpu").build();
  graph.set_npu_member("target", *load_target("host").json);
  try {
    partition_graph(graph, {}, diagnostics);
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kInvalidGraph);
    CHECK(std::string(error.what()) ==
          "test.json: /nodes/0/device: error: node 'a' has the device 'tpu', "
          "which target 'host' does not have; run npu-tag again");
  }
}

TEST_CASE("partition_graph: writes plan, partitions of nodes and metrics") {
  Graph graph = graph_of(R"(
    input x
    a = relu(x) @npu
    b = relu(a) @cpu; output b)");
  graph.set_npu_member("target", *load_target("host").json);
  Diagnostics diagnostics;
  const PartitionResult result = partition_graph(graph, {}, diagnostics);
  CHECK(result.target.name == "host");
  CHECK(result.metrics.partitions == 2);
  CHECK(result.metrics.transfers == 1);
  CHECK(graph.npu_member("partition")->at("metrics").at("transfers") == 1);
  CHECK(graph.npu_member("partition")->at("strategy") == "convex");
  CHECK(graph.nodes()[1].partition == 1);
}

TEST_CASE("strategies: every enumerator has its row, and every name is found") {
  std::vector<std::string_view> names;
  for (const StrategyInfo& strategy : partition_strategies()) {
    CHECK(static_cast<std::size_t>(strategy.strategy) == names.size());
    CHECK(find_strategy(strategy.name) == strategy.strategy);
    names.push_back(strategy.name);
  }
  CHECK(find_strategy("fastest") == std::nullopt);
  CHECK(find_strategy("") == std::nullopt);
  CHECK(names == std::vector<std::string_view>{"contiguous", "convex", "mincut", "blocks",
                                               "resources", "metis"});
}
