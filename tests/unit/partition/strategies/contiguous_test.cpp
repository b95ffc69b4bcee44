// SPDX-License-Identifier: Apache-2.0
// Runs of one device in list order, with the transfers of pytorch-ir's partitioner.
#include "catch.hpp"
#include "graph_builder.hpp"
#include "npu/partition/strategies.hpp"
#include "partition/plan_checks.hpp"

using namespace npu;
using namespace npu::test;
using Lines = std::vector<std::string>;

namespace {

GraphBuilder seven_nodes() {
  return nodes_of({"conv aten.conv2d.default x @npu", "relu aten.relu.default conv @npu",
                   "matmul aten.matmul.default relu @npu", "add aten.add.Tensor matmul @npu",
                   "relu2 aten.relu.default add @npu", "concat aten.cat.default relu2 @cpu",
                   "softmax aten.softmax.int concat @npu"})
      .output("softmax");
}

}  // namespace

TEST_CASE("contiguous: the empty graph has no partitions and no steps") {
  const Graph graph = GraphBuilder().input("x").output("x").build();
  const PartitionPlan plan = partition_contiguous(graph);
  CHECK(plan.strategy == "contiguous");
  CHECK(plan.partitions.empty());
  CHECK(plan.transfers.empty());
  CHECK(plan.steps.empty());
  check_survives_document(graph, plan);
}

TEST_CASE("contiguous: one node is one partition without transfers") {
  const Graph graph = nodes_of({"a custom x @npu"}).output("a").build();
  const PartitionPlan plan = partition_contiguous(graph);
  CHECK(steps_of(graph, plan) == Lines{"npu: a"});
  check_plan(graph, plan);
  check_survives_document(graph, plan);
}

TEST_CASE("contiguous: a node without a device is an error that names it") {
  const Graph graph = nodes_of({"a custom x @npu", "b custom a"}).build();
  try {
    partition_contiguous(graph);
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kInvalidGraph);
    CHECK(std::string(error.what()) ==
          "test.json: /nodes/1: error: node 'b' has no device; run npu-tag first");
  }
}

TEST_CASE("contiguous: the seven-node example gives its five steps") {
  const Graph graph = seven_nodes().build();
  const PartitionPlan plan = partition_contiguous(graph);
  CHECK(steps_of(graph, plan) == Lines{"npu: conv relu matmul add relu2", "to_cpu: relu2",
                                       "cpu: concat", "to_npu: concat", "npu: softmax"});
  REQUIRE(plan.transfers.size() == 2);
  CHECK(plan.transfers[0].from == 0);
  CHECK(plan.transfers[0].to == 1);
  CHECK(plan.transfers[0].bytes == 16);  // 4 floats
  CHECK(plan.transfers[1].from == 1);
  CHECK(plan.transfers[1].to == 2);
  check_plan(graph, plan);
  check_survives_document(graph, plan);
}

TEST_CASE("contiguous: the document of the seven-node example") {
  Graph graph = seven_nodes().build();
  write_partition_plan(graph, partition_contiguous(graph), Json{{"transfers", 2}});
  const Json partition = *graph.npu_member("partition");
  CHECK(*graph.npu_member("version") == 1);
  CHECK(partition["strategy"] == "contiguous");
  CHECK(partition["steps"] == Json::parse(R"([
    {"kind": "partition", "id": 0},
    {"kind": "transfer", "direction": "to_cpu", "from": 0, "to": 1, "tensors": ["relu2"], "bytes": 16},
    {"kind": "partition", "id": 1},
    {"kind": "transfer", "direction": "to_npu", "from": 1, "to": 2, "tensors": ["concat"], "bytes": 16},
    {"kind": "partition", "id": 2}])"));
  REQUIRE(partition["partitions"].size() == 3);
  CHECK(partition["partitions"][1]["id"] == 1);
  CHECK(partition["partitions"][1]["device"] == "cpu");
  CHECK(partition["partitions"][1]["nodes"] == Json{"concat"});
  CHECK(partition["partitions"][1]["inputs"] == Json{"relu2"});
  CHECK(partition["partitions"][1]["outputs"] == Json{"concat"});
  CHECK(partition["metrics"] == Json{{"transfers", 2}});
  CHECK(graph.nodes()[5].partition == 1);
  CHECK(graph.nodes()[6].partition == 2);
}

TEST_CASE("contiguous: a tensor that is on the device already is transferred again") {
  // a stays on the npu, where it was made, but the algorithm lists everything that a run reads.
  const Graph graph =
      nodes_of({"a custom x @npu", "b custom a @cpu", "c custom b a @npu", "d custom a @cpu"})
          .output("c")
          .output("d")
          .build();
  const PartitionPlan plan = partition_contiguous(graph);
  CHECK(steps_of(graph, plan) ==
        Lines{"npu: a", "to_cpu: a", "cpu: b", "to_npu: a b", "npu: c", "to_cpu: a", "cpu: d"});
  check_plan(graph, plan);
  check_survives_document(graph, plan);
}

TEST_CASE("contiguous: a transfer is sorted by name and comes from the run before") {
  const Graph graph = nodes_of({"z custom x @npu", "m custom x @cpu", "b custom x @npu",
                                "last custom z m b z @cpu"})
                          .build();
  const PartitionPlan plan = partition_contiguous(graph);
  CHECK(steps_of(graph, plan) == Lines{"npu: z", "cpu: m", "npu: b", "to_cpu: b m z", "cpu: last"});
  REQUIRE(plan.transfers.size() == 1);
  CHECK(plan.transfers[0].from == 2);
  CHECK(plan.transfers[0].to == 3);
}

TEST_CASE("contiguous: graph inputs and weights are not transferred") {
  const Graph graph = graph_of(R"(
    input x; weight w [4]
    a = "custom"(x, p_w) @npu
    b = "custom"(x, p_w) @cpu)");
  const PartitionPlan plan = partition_contiguous(graph);
  CHECK(steps_of(graph, plan) == Lines{"npu: a", "cpu: b"});
  CHECK(plan.partitions[1].boundary.inputs == std::vector<TensorId>{graph.find_tensor("x")});
  CHECK(plan.partitions[1].boundary.weights == std::vector<TensorId>{graph.find_tensor("p_w")});
}

TEST_CASE("contiguous: branches that interleave in the list are cut at every change") {
  GraphBuilder builder;
  builder.input("x");
  for (int n = 0; n < 10; ++n) {
    builder.node("n" + std::to_string(n), "custom", {"x"}).on(n % 2 == 0 ? "npu" : "cpu");
  }
  CHECK(partition_contiguous(builder.build()).partitions.size() == 10);
}

TEST_CASE("contiguous: thousands of random graphs keep every property") {
  std::mt19937 random(20240601);
  for (int round = 0; round < 1500; ++round) {
    CAPTURE(round);
    const RandomGraphOptions options{.nodes = round % 20, .devices = 1 + round % 3};
    const Graph graph = random_builder(random, options).build();
    const PartitionPlan plan = partition_contiguous(graph);
    const std::vector<int> owner = check_plan(graph, plan);
    // Maximal runs: the partition changes exactly where the device does.
    for (std::size_t n = 1; n < owner.size(); ++n) {
      CHECK((owner[n] != owner[n - 1]) == (graph.nodes()[n].device != graph.nodes()[n - 1].device));
      CHECK(owner[n] - owner[n - 1] <= 1);
    }
    // One transfer in front of each run but the first, with everything it reads of earlier runs.
    std::map<int, std::set<std::string>> expected;
    for (std::size_t n = 0; n < owner.size(); ++n) {
      for (const TensorId input : graph.nodes()[n].inputs) {
        const TensorInfo& tensor = graph.tensor(input);
        if (!tensor.producer.valid()) continue;
        if (owner[static_cast<std::size_t>(tensor.producer.value)] != owner[n])
          expected[owner[n]].insert(tensor.name);
      }
    }
    CHECK(plan.transfers.size() == expected.size());
    for (const Transfer& transfer : plan.transfers) {
      Lines names;
      for (const TensorId id : transfer.tensors) names.push_back(graph.tensor(id).name);
      CHECK(names == Lines(expected[transfer.to].begin(), expected[transfer.to].end()));
      CHECK(transfer.from == transfer.to - 1);
    }
    if (round % 5 == 0) check_survives_document(graph, plan);
  }
}
