// SPDX-License-Identifier: Apache-2.0
// Makes a bundle of the programs of a block. Reductions that are not the backend's are inputs of
// its document, so that npu-run can run the rest of the block alone, with any inputs.
#include "gnn/run/block_bundle.hpp"

#include <algorithm>
#include <utility>

#include "device/device_instance.hpp"
#include "npu/compile/compiler.hpp"
#include "npu/ir/subgraph.hpp"
#include "npu/partition/partition_plan.hpp"
#include "npu/support/ids.hpp"
#include "partition/plan_builder.hpp"

namespace npu::gnn {
namespace {

std::vector<const KeptProgram*> kept_programs(const GnnBlock& block) {
  std::vector<const KeptProgram*> programs;
  for (const BlockStep& step : block.steps()) {
    const auto* program = std::get_if<ProgramStep>(&step);
    if (program != nullptr && program->kept) programs.push_back(&*program->kept);
  }
  return programs;
}

// The device of the target that runs a backend: the one of this name, if it does.
std::string device_in(const Target& target, const std::string& name, const std::string& backend) {
  const Device* same = target.find_device(name);
  if (same != nullptr && same->backend == backend) return name;
  const auto other = std::find_if(target.devices.begin(), target.devices.end(),
                                  [&](const Device& device) { return device.backend == backend; });
  return other == target.devices.end() ? name : other->name;
}

// Partitions of the nodes of each program, of which `nodes` lists all: its place in there is the
// number of a node in the document.
PartitionPlan plan_of(Graph& document, const std::vector<NodeId>& nodes,
                      const std::vector<const KeptProgram*>& programs, const std::string& device) {
  PartitionPlan plan;
  plan.strategy = "unit";
  for (const KeptProgram* program : programs) {
    Partition& partition = plan.partitions.emplace_back();
    partition.device = device;
    for (const NodeId node : program->nodes) {
      const auto place = std::lower_bound(nodes.begin(), nodes.end(), node) - nodes.begin();
      partition.nodes.push_back(NodeId{static_cast<std::int32_t>(place)});
      document.node(partition.nodes.back()).device = device;
    }
  }
  connect_partitions(document, plan);
  write_partition_plan(document, plan, Json::object());
  return plan;
}

}  // namespace

std::optional<BundleContent> block_content(const GnnBlock& block, const GnnDevice& device,
                                           const Target& target) {
  const std::vector<const KeptProgram*> programs = kept_programs(block);
  if (programs.empty()) return std::nullopt;
  std::vector<NodeId> nodes;
  for (const KeptProgram* program : programs) {
    nodes.insert(nodes.end(), program->nodes.begin(), program->nodes.end());
  }
  std::sort(nodes.begin(), nodes.end());
  Graph document = extract(block.graph(), nodes, find_boundary(block.graph(), nodes));
  document.set_npu_member("target", *target.json);
  DeviceInstance& instance = block.instance();
  const Backend& backend = instance.backend();
  CompiledModel model;
  model.plan = plan_of(document, nodes, programs, device_in(target, device.name, backend.name()));
  std::vector<Tensor> weights(document.tensors().size());
  for (std::size_t i = 0; i < programs.size(); ++i) {
    const KeptProgram& program = *programs[i];
    const Partition& partition = model.plan.partitions[i];
    for (const NamedTensor& weight : program.weights) {
      weights[index_of(document.find_tensor(weight.name))] = weight.tensor;
    }
    model.partitions.push_back({.device = partition.device,
                                .backend = backend.name(),
                                .backend_version = backend.version(),
                                .fingerprint = instance.facts().fingerprint,
                                .holds_weights = backend.holds_weights(),
                                .blob = program.stored.blob,
                                .check_blob = {},
                                .report = partition_report(instance, program.stored.blob, document,
                                                           partition, program.predicted_kernels)});
  }
  CompileOptions options;
  options.precision = device.bfloat16 && device.is_static ? "bf16" : "f32";
  return bundle_content(document, model, target, weights, options);
}

}  // namespace npu::gnn
