// SPDX-License-Identifier: Apache-2.0
#include "backends/two_devices.hpp"

#include "catch.hpp"
#include "npu/compile/compiler.hpp"
#include "npu/partition/partition_plan.hpp"
#include "npu/passes/fuse.hpp"
#include "npu/passes/tag.hpp"
#include "npu/runtime/executor.hpp"
#include "npu/target/target.hpp"

namespace npu::test {

DeviceRun run_on(const GraphBuilder& builder, const std::string& device,
                 const std::vector<Tensor>& weights, const std::vector<Tensor>& inputs) {
  Graph graph = builder.build();
  const Target target = load_target("host");
  Diagnostics diagnostics;
  tag_ops(graph, target, {}, diagnostics);
  fuse_ops(graph, {}, diagnostics);
  REQUIRE(errors_of(diagnostics).empty());
  for (Node& node : graph.nodes()) node.device = device;
  const PartitionPlan plan = single_partition_plan(graph, device);
  ExecutorOptions options;
  options.threads = 2;
  Executor executor = compile_and_load(graph, plan, target, weights, options);
  DeviceRun run{executor.run(inputs, nullptr).at(0), {}};
  if (device != "npu") return run;
  const CompiledModel model = compile_graph(graph, plan, target, weights, {}, nullptr);
  for (const Json& step : model.partitions.at(0).report->at("steps")) {
    if (step.at("kind") != "reorder") run.kernels.push_back(step.at("kernel").get<std::string>());
  }
  return run;
}

}  // namespace npu::test
