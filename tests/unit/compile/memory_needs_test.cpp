// SPDX-License-Identifier: Apache-2.0
// Sums of memory stay below what 64 bits hold, whatever a document or a report states.
#include "npu/compile/memory_needs.hpp"

#include "catch.hpp"
#include "device/device_model.hpp"
#include "graph_builder.hpp"

using namespace npu;
using namespace npu::test;

TEST_CASE("memory needs: sizes of hostile tensors do not add up to little", "[compile][memory]") {
  // Four tensors of 2^62 bytes: their sum is 0 in 64 bits.
  GraphBuilder builder;
  builder.input("x", {std::int64_t{1} << 58}, "complex128");
  for (const char* name : {"a", "b", "c"}) builder.node(name, "aten.neg.default", {"x"});
  for (const char* name : {"a", "b", "c"}) builder.output(name);
  const Graph graph = builder.build();
  Partition partition;
  for (std::size_t i = 0; i < graph.tensors().size(); ++i) {
    partition.boundary.outputs.push_back(TensorId{static_cast<std::int32_t>(i)});
  }
  REQUIRE(partition.boundary.outputs.size() == 4);
  partition.boundary.weights = partition.boundary.outputs;
  const MemoryReport report = reported_memory(graph, partition, Json::object());
  REQUIRE(report.memories.size() == 1);
  constexpr std::uint64_t kMost = std::uint64_t{1} << 48;
  CHECK(report.memories[0].weights == kMost);
  CHECK(report.memories[0].boundary == kMost);
}

TEST_CASE("memory needs: runs at the same time have buffers of their own", "[compile][memory]") {
  DeviceMemoryNeed need;
  need.bytes = {.weights = 1000, .scratch = 10, .boundary = 7, .other = 1};
  need_for_runs(need, 1);
  CHECK(need.needed() == 1018);
  need_for_runs(need, 3);
  CHECK(need.needed() == 1000 + 30 + 21 + 1);
  need.bytes.scratch = std::uint64_t{1} << 60;
  need_for_runs(need, 64);
  CHECK(need.bytes.scratch == std::uint64_t{1} << 60);
  CHECK(needed_bytes({need, need}) == 2 * need.needed());
}
