// SPDX-License-Identifier: Apache-2.0
// The trace of a run record that is written by hand.
#include "runtime/trace.hpp"

#include "catch.hpp"
#include "device/device_instance.hpp"
#include "graph_builder.hpp"
#include "npu/partition/strategies.hpp"

using namespace npu;
using Kind = StepRecord::Kind;
using npu::test::graph_of;
using npu::test::GraphBuilder;

namespace {

std::vector<Json> events_with(const Json& trace, const std::string& phase) {
  std::vector<Json> events;
  for (const Json& event : trace.at("traceEvents")) {
    if (event.at("ph") == phase) events.push_back(event);
  }
  return events;
}

}  // namespace

TEST_CASE("trace: nodes lie where the device's clock says") {
  const Graph graph = graph_of(R"(
    model m; input x
    a = relu(x) @npu
    b = neg(a) @npu; output b)");
  RunRecord record;
  record.steps.push_back({.kind = Kind::kPartition,
                          .index = 0,
                          .device = "npu",
                          .start_us = 1,
                          .end_us = 20,
                          .node_ns = {4000, 3000},
                          .node_spans = {{3, 7}, {9, 12}},
                          .clock_error_us = 0.5});
  const Json trace = Json::parse(write_trace(graph, partition_convex(graph), record));
  const auto slices = events_with(trace, "X");
  REQUIRE(slices.size() == 3);
  CHECK(slices[1]["ts"] == 3.0);
  CHECK(slices[1]["dur"] == 4.0);
  CHECK(slices[2]["ts"] == 9.0);
  CHECK(slices[2]["args"]["clock_error_us"] == 0.5);
}

TEST_CASE("trace: times of a device's clock come to the host's") {
  const ClockSample before{.device_ns = 1000, .host_ns = 500'000, .uncertainty_ns = 10};
  const ClockSample after{.device_ns = 3000, .host_ns = 504'000, .uncertainty_ns = 10};
  CHECK(host_time_ns(before, after, 1000) == 500'000);
  CHECK(host_time_ns(before, after, 2000) == 502'000);  // twice as slow
  CHECK(host_time_ns(before, after, 500) == 499'000);
  CHECK(host_time_ns(before, before, 1500) == 500'500);
}

TEST_CASE("trace: of a run without steps is a valid trace") {
  const Graph graph = GraphBuilder("nothing").build();
  const Json trace = Json::parse(write_trace(graph, partition_convex(graph), {}));
  CHECK(trace["displayTimeUnit"] == "ms");
  REQUIRE(trace["traceEvents"].size() == 1);
  CHECK(trace["traceEvents"][0]["name"] == "process_name");
  CHECK(trace["traceEvents"][0]["args"]["name"] == "nothing");
}

TEST_CASE("trace: one track per device, slices for steps and nodes, an arrow per transfer") {
  const Graph graph = GraphBuilder("m \"quoted\"")
                          .lines(R"(
    input x
    a = relu(x) @npu
    b = neg(a) @npu
    c = relu(b) @cpu; output c)")
                          .build();
  const PartitionPlan plan = partition_convex(graph);
  RunRecord record;
  record.steps.push_back({.kind = Kind::kInput,
                          .device = "npu",
                          .start_us = 0,
                          .end_us = 1,
                          .tensors = 1,
                          .bytes = 16});
  record.steps.push_back({.kind = Kind::kPartition,
                          .index = 0,
                          .device = "npu",
                          .start_us = 1,
                          .end_us = 10,
                          .node_ns = {4000, 3000}});
  record.steps.push_back({.kind = Kind::kTransfer,
                          .index = 0,
                          .device = "cpu",
                          .start_us = 10,
                          .end_us = 12,
                          .tensors = 1,
                          .bytes = 16});
  record.steps.push_back(
      {.kind = Kind::kPartition, .index = 1, .device = "cpu", .start_us = 12, .end_us = 20});
  record.steps.push_back({.kind = Kind::kOutput,
                          .device = "host",
                          .start_us = 20,
                          .end_us = 21,
                          .tensors = 1,
                          .bytes = 16});
  const Json trace = Json::parse(write_trace(graph, plan, record));

  std::map<std::string, int> tracks;
  for (const Json& event : events_with(trace, "M")) {
    if (event["name"] == "thread_name")
      CHECK(tracks.emplace(event["args"]["name"], event["tid"].get<int>()).second);
  }
  CHECK(tracks.size() == 3);  // npu, cpu, host
  CHECK(events_with(trace, "M").front()["args"]["name"] == "m \"quoted\"");

  std::vector<std::string> slices;
  for (const Json& event : events_with(trace, "X")) {
    slices.push_back(event["name"].get<std::string>() + " " +
                     std::to_string(event["tid"].get<int>()) + " " +
                     std::to_string(static_cast<int>(event["ts"].get<double>())) + "+" +
                     std::to_string(static_cast<int>(event["dur"].get<double>())));
  }
  const std::string npu = std::to_string(tracks["npu"]);
  const std::string cpu = std::to_string(tracks["cpu"]);
  const std::string host = std::to_string(tracks["host"]);
  // Nodes lie one after another below their partition: 4 us and 3 us from 1.
  CHECK(slices == std::vector<std::string>{
                      "inputs " + npu + " 0+1", "partition 0 " + npu + " 1+9", "a " + npu + " 1+4",
                      "b " + npu + " 5+3", "transfer to cpu " + cpu + " 10+2",
                      "partition 1 " + cpu + " 12+8", "outputs " + host + " 20+1"});

  const auto starts = events_with(trace, "s");
  const auto ends = events_with(trace, "f");
  REQUIRE(starts.size() == 1);
  REQUIRE(ends.size() == 1);
  CHECK(starts[0]["id"] == ends[0]["id"]);
  CHECK(starts[0]["tid"] == tracks["npu"]);
  CHECK(ends[0]["tid"] == tracks["cpu"]);
  // A flow binds to the slice around its time: inside partition 0, at the begin of the transfer.
  CHECK(starts[0]["ts"].get<double>() > 1);
  CHECK(starts[0]["ts"].get<double>() < 10);
  CHECK(ends[0]["ts"].get<double>() == 10);
}
