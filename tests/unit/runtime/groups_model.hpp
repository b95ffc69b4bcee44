// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "npu/ir/json_reader.hpp"
#include "npu/partition/partition_graph.hpp"
#include "npu/passes/fuse.hpp"
#include "npu/passes/tag.hpp"
#include "npu/runtime/weight_store.hpp"
#include "npu/support/file_io.hpp"
#include "runtime/groups/compare_groups.hpp"
#include "runtime/run_inputs.hpp"
#include "test_paths.hpp"

namespace npu::test {

/// A small model, placed on its devices and on the cpu.
struct GroupsModel {
  explicit GroupsModel(const std::string& name)
      : file(std::string(NPU_TEST_DATA_DIR) + "/models/small/" + name),
        graph(read_valid_graph(read_file(file + ".json"), file + ".json")),
        target(load_target("host")) {
    Diagnostics diagnostics;
    tag_ops(graph, target, {.fold = false}, diagnostics);
    fuse_ops(graph, {}, diagnostics);
    plan = partition_graph(graph, {}, diagnostics).plan;
    weights = load_weights(graph, {.file = weights_file_of(graph), .random_seed = {}}, diagnostics);
    sides.inputs = gather_inputs(graph, {{{}, file + ".inputs.safetensors"}}, {}, diagnostics);
    REQUIRE_FALSE(diagnostics.has_errors());
    sides.graph = &graph;
    sides.plan = &plan;
    sides.runner.target = &target;
    sides.runner.executor.threads = 1;
    sides.runner.weights = weights_by_name(graph, weights);
    sides.reference = &graph;
    sides.reference_device = "cpu";
    sides.reference_runner = sides.runner;
  }

  GroupsModel(const GroupsModel&) = delete;  // sides point into it
  GroupsModel& operator=(const GroupsModel&) = delete;

  std::string file;
  Graph graph;
  Target target;
  PartitionPlan plan;
  std::vector<Tensor> weights;
  GroupSides sides;
};

}  // namespace npu::test
