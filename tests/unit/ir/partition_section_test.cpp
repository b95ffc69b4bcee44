// SPDX-License-Identifier: Apache-2.0
// npu.partition between JSON and typed fields.
#include "ir/partition_section.hpp"

#include "catch.hpp"
#include "graph_builder.hpp"

using namespace npu;
using namespace npu::test;

namespace {

// Keys are not in the order in which npu-partition writes them, and some are nobody's.
constexpr const char* kPlan =
    R"({"metrics":{"nodes_npu":2,"predicted_us":1.5,"gap":"none"},"partitions":[
  {"outputs":["b"],"id":0,"nodes":["a"],"colour":[1],"inputs":["x"],"bytes":32,"flops":8},
  {"nodes":"b","flops":"many","bytes":1.5},"no object",{}],"note":[null]})";

Graph with_plan(std::string_view text) {
  Graph graph = graph_of(R"(
    model chain; input x
    a = relu(x)
    b = relu(a); output b)");
  graph.set_npu_member("partition", parse_json(text, "plan"));
  graph.set_npu_member("note", "last");
  return graph;
}

}  // namespace

TEST_CASE("partition section: what is taken out and stored again is the same text") {
  for (const char* text : {kPlan, R"({"partitions":7})", R"({"metrics":[]})", "{}"}) {
    Graph graph = with_plan(text);
    const std::string before = graph.document().dump();
    auto section = PartitionSection::take(graph);
    REQUIRE(section);
    PartitionSection::store(graph, *std::move(section));
    CHECK(graph.document().dump() == before);
  }
  Graph without = GraphBuilder("empty").input("x").output("x").build();
  CHECK_FALSE(PartitionSection::take(without));
}

TEST_CASE("partition section: fields hold what has the stated type and go where they came from") {
  Graph graph = with_plan(kPlan);
  auto section = PartitionSection::take(graph);
  REQUIRE(section);
  REQUIRE(section->partitions.size() == 4);
  PartitionEntry& first = section->partitions[0];
  CHECK(first.nodes == std::vector<std::string>{"a"});
  CHECK(first.inputs == std::vector<std::string>{"x"});
  CHECK(first.outputs == std::vector<std::string>{"b"});
  CHECK(first.flops == 8);
  CHECK(first.bytes == 32);
  CHECK_FALSE(section->partitions[1].nodes);
  CHECK_FALSE(section->partitions[1].flops);
  CHECK_FALSE(section->partitions[1].bytes);
  first.nodes->push_back("c");
  section->partitions[3].flops = 9;
  PartitionSection::store(graph, *std::move(section));
  const Json& partitions = *find_member(*graph.npu_member("partition"), "partitions");
  CHECK(
      partitions[0].dump() ==
      R"({"outputs":["b"],"id":0,"nodes":["a","c"],"colour":[1],"inputs":["x"],"bytes":32,"flops":8})");
  CHECK(partitions[3].dump() == R"({"flops":9})");
}

TEST_CASE("partition section: metrics that are there are added to") {
  Graph graph = with_plan(kPlan);
  auto section = PartitionSection::take(graph);
  REQUIRE(section);
  section->add_to_metric("nodes_npu", 3);
  section->add_to_metric("nodes_cpu", 3);
  section->add_to_metric("predicted_us", 1);  // no count
  section->add_ns_to_metric("predicted_us", 1001);
  section->add_ns_to_metric("gap", 5);
  section->add_ns_to_metric("all_cpu_us", 5);
  PartitionSection::store(graph, *std::move(section));
  CHECK(find_member(*graph.npu_member("partition"), "metrics")->dump() ==
        R"({"nodes_npu":5,"predicted_us":2.501,"gap":"none"})");
}
