// SPDX-License-Identifier: Apache-2.0
// Checks of a plan that share no code with the library: they follow the definition of each
// property, at any cost.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "graph_builder.hpp"
#include "npu/ir/json_writer.hpp"
#include "npu/partition/partition_plan.hpp"
#include "partition/small_graphs.hpp"

namespace npu::test {

/// Which partition each node is in; fails if a node is in none or in two, or on another device.
inline std::vector<int> owners_of(const Graph& graph, const PartitionPlan& plan) {
  std::vector<int> owner(graph.nodes().size(), -1);
  for (std::size_t p = 0; p < plan.partitions.size(); ++p) {
    CHECK_FALSE(plan.partitions[p].nodes.empty());
    CHECK(std::is_sorted(plan.partitions[p].nodes.begin(), plan.partitions[p].nodes.end()));
    for (const NodeId id : plan.partitions[p].nodes) {
      CHECK(owner.at(static_cast<std::size_t>(id.value)) == -1);
      owner[static_cast<std::size_t>(id.value)] = static_cast<int>(p);
      CHECK(graph.node(id).device == plan.partitions[p].device);
    }
  }
  CHECK(std::count(owner.begin(), owner.end(), -1) == 0);
  return owner;
}

/// True if partitions depend on each other in a circle.
inline bool quotient_has_cycle(const Graph& graph, const std::vector<int>& owner,
                               std::size_t count) {
  std::vector<std::set<int>> after(count);
  for (const TensorInfo& tensor : graph.tensors()) {
    if (!tensor.producer.valid()) continue;
    const int from = owner[static_cast<std::size_t>(tensor.producer.value)];
    for (const NodeId consumer : tensor.consumers) {
      const int to = owner[static_cast<std::size_t>(consumer.value)];
      if (from != to) after[static_cast<std::size_t>(from)].insert(to);
    }
  }
  // Takes away partitions that nothing waits for, until none is left or none can go.
  std::set<int> left;
  for (std::size_t p = 0; p < count; ++p) left.insert(static_cast<int>(p));
  for (bool moved = true; moved;) {
    moved = false;
    for (const int p : left) {
      const auto& next = after[static_cast<std::size_t>(p)];
      if (std::none_of(next.begin(), next.end(), [&](int q) { return left.count(q) != 0; })) {
        left.erase(p);
        moved = true;
        break;
      }
    }
  }
  return !left.empty();
}

/// True if the plan can be carried out as it stands: every partition once, every tensor that a
/// partition reads from outside on its device by then, nothing transferred that does not exist
/// outside its partition.
inline bool is_executable(const Graph& graph, const PartitionPlan& plan) {
  std::vector<int> owner(graph.nodes().size(), -1);
  for (std::size_t p = 0; p < plan.partitions.size(); ++p) {
    for (const NodeId id : plan.partitions[p].nodes) {
      if (owner[static_cast<std::size_t>(id.value)] != -1) return false;
      owner[static_cast<std::size_t>(id.value)] = static_cast<int>(p);
      if (graph.node(id).device != plan.partitions[p].device) return false;
    }
  }
  if (std::count(owner.begin(), owner.end(), -1) != 0) return false;
  std::set<std::pair<int, std::string>> present;
  std::vector<int> runs(plan.partitions.size(), 0);
  for (const PlanStep& step : plan.steps) {
    if (step.kind == PlanStep::Kind::kTransfer) {
      const Transfer& transfer = plan.transfers[static_cast<std::size_t>(step.index)];
      for (const TensorId id : transfer.tensors) {
        const bool exists = std::any_of(present.begin(), present.end(),
                                        [&](const auto& entry) { return entry.first == id.value; });
        if (!exists) return false;
      }
      for (const TensorId id : transfer.tensors) present.emplace(id.value, transfer.to_device);
      continue;
    }
    ++runs[static_cast<std::size_t>(step.index)];
    const Partition& partition = plan.partitions[static_cast<std::size_t>(step.index)];
    for (const NodeId id : partition.nodes) {
      for (const TensorId input : graph.node(id).inputs) {
        const TensorInfo& tensor = graph.tensor(input);
        if (!tensor.producer.valid() ||
            owner[static_cast<std::size_t>(tensor.producer.value)] == step.index)
          continue;
        if (present.count({input.value, partition.device}) == 0) return false;
      }
    }
    for (const NodeId id : partition.nodes) {
      for (const TensorId output : graph.node(id).outputs) {
        const TensorInfo& tensor = graph.tensor(output);
        const auto& outputs = graph.graph_outputs();
        const bool leaves =
            std::find(outputs.begin(), outputs.end(), output) != outputs.end() ||
            std::any_of(tensor.consumers.begin(), tensor.consumers.end(), [&](NodeId consumer) {
              return owner[static_cast<std::size_t>(consumer.value)] != step.index;
            });
        if (leaves) present.emplace(output.value, partition.device);
      }
    }
  }
  return std::all_of(runs.begin(), runs.end(), [](int count) { return count == 1; });
}

/// What holds for every strategy: each node once, an acyclic quotient graph, steps in a valid order
/// with every tensor where it is read, byte counts that add up, partitions numbered in the order of
/// the steps.
inline std::vector<int> check_plan(const Graph& graph, const PartitionPlan& plan) {
  const std::vector<int> owner = owners_of(graph, plan);
  CHECK_FALSE(quotient_has_cycle(graph, owner, plan.partitions.size()));
  CHECK(is_executable(graph, plan));
  std::int32_t next_partition = 0;
  std::int32_t next_transfer = 0;
  std::set<int> done;
  for (const PlanStep& step : plan.steps) {
    if (step.kind == PlanStep::Kind::kPartition) {
      CHECK(step.index == next_partition++);
      done.insert(step.index);
      continue;
    }
    CHECK(step.index == next_transfer++);
    const Transfer& transfer = plan.transfers.at(static_cast<std::size_t>(step.index));
    CHECK(transfer.to_device == plan.partitions.at(static_cast<std::size_t>(transfer.to)).device);
    CHECK(done.count(transfer.from) == 1);
    CHECK(done.count(transfer.to) == 0);
    CHECK_FALSE(transfer.tensors.empty());
    std::int64_t bytes = 0;
    for (const TensorId id : transfer.tensors) {
      const TensorInfo& tensor = graph.tensor(id);
      bytes += 4 * tensor.shape.at(0);  // float32, one dimension
      CHECK(owner[static_cast<std::size_t>(tensor.producer.value)] <= transfer.from);
    }
    CHECK(transfer.bytes == bytes);
  }
  CHECK(next_partition == static_cast<int>(plan.partitions.size()));
  CHECK(next_transfer == static_cast<int>(plan.transfers.size()));
  return owner;
}

inline void check_same_plan(const PartitionPlan& actual, const PartitionPlan& expected) {
  CHECK(actual.strategy == expected.strategy);
  REQUIRE(actual.partitions.size() == expected.partitions.size());
  for (std::size_t p = 0; p < actual.partitions.size(); ++p) {
    CHECK(actual.partitions[p].device == expected.partitions[p].device);
    CHECK(actual.partitions[p].nodes == expected.partitions[p].nodes);
    CHECK(actual.partitions[p].boundary.inputs == expected.partitions[p].boundary.inputs);
    CHECK(actual.partitions[p].boundary.outputs == expected.partitions[p].boundary.outputs);
    CHECK(actual.partitions[p].boundary.weights == expected.partitions[p].boundary.weights);
  }
  REQUIRE(actual.transfers.size() == expected.transfers.size());
  for (std::size_t t = 0; t < actual.transfers.size(); ++t) {
    CHECK(actual.transfers[t].from == expected.transfers[t].from);
    CHECK(actual.transfers[t].to == expected.transfers[t].to);
    CHECK(actual.transfers[t].to_device == expected.transfers[t].to_device);
    CHECK(actual.transfers[t].tensors == expected.transfers[t].tensors);
    CHECK(actual.transfers[t].bytes == expected.transfers[t].bytes);
  }
  REQUIRE(actual.steps.size() == expected.steps.size());
  for (std::size_t s = 0; s < actual.steps.size(); ++s) {
    CHECK(actual.steps[s].kind == expected.steps[s].kind);
    CHECK(actual.steps[s].index == expected.steps[s].index);
  }
}

/// Plan to document and back: no diagnostic, the same plan, and each node's `partition` set.
inline void check_survives_document(const Graph& original, const PartitionPlan& plan) {
  Graph graph = original;
  write_partition_plan(graph, plan, Json::object());
  const Graph again = read_valid_graph(write_graph(graph), "again.json");
  Diagnostics diagnostics;
  check_same_plan(read_partition_plan(again, diagnostics), plan);
  CHECK(errors_of(diagnostics).empty());
  const std::vector<int> owner = owners_of(again, plan);
  for (std::size_t n = 0; n < owner.size(); ++n) CHECK(again.nodes()[n].partition == owner[n]);
}

/// "npu: a b", "to_cpu: t", ... one line a step.
inline std::vector<std::string> steps_of(const Graph& graph, const PartitionPlan& plan) {
  std::vector<std::string> lines;
  for (const PlanStep& step : plan.steps) {
    const auto index = static_cast<std::size_t>(step.index);
    if (step.kind == PlanStep::Kind::kPartition) {
      lines.push_back(plan.partitions[index].device + ":");
      for (const NodeId id : plan.partitions[index].nodes)
        lines.back() += " " + graph.node(id).name;
    } else {
      lines.push_back("to_" + plan.transfers[index].to_device + ":");
      for (const TensorId id : plan.transfers[index].tensors)
        lines.back() += " " + graph.tensor(id).name;
    }
  }
  return lines;
}

}  // namespace npu::test
