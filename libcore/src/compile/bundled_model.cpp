// SPDX-License-Identifier: Apache-2.0
// A compiled model as the content of a bundle, and the partitions of a bundle as a compiled model.
// What a bundle says is checked against its own document and the backends that are here.
// O(partitions + weights), without a copy of either.
#include <set>

#include "compile/backend_device.hpp"
#include "device/backend.hpp"
#include "device/cpu_family.hpp"
#include "device/isa_level.hpp"
#include "npu/compile/compiler.hpp"
#include "npu/ir/json_writer.hpp"
#include "support/text.hpp"

namespace npu {

BundleContent bundle_content(const Graph& graph, const CompiledModel& model, const Target& target,
                             const std::vector<Tensor>& weights, const CompileOptions& options) {
  BundleContent content;
  BundleContent::Entry& entry = content.entries.front();
  content.target = target.name;
  content.precision = options.precision;
  content.provenance["model"] = graph.model_name();
  content.provenance["isa"] = kIsaLevels[isa_level()];
  content.provenance["cpu_family"] = cpu_family();
  std::set<TensorId> kept;
  for (std::size_t i = 0; i < model.partitions.size(); ++i) {
    const CompiledPartition& partition = model.partitions[i];
    entry.partitions.push_back({{.device = partition.device,
                                 .backend = partition.backend,
                                 .backend_version = partition.backend_version,
                                 .fingerprint = partition.fingerprint,
                                 .program = partition.program,
                                 .holds_weights = partition.holds_weights,
                                 .layouts = partition.layouts,
                                 .report = partition.report},
                                partition.blob.data,
                                partition.blob.size});
    if (partition.holds_weights) continue;
    const auto& used = model.plan.partitions[i].boundary.weights;
    kept.insert(used.begin(), used.end());
  }
  for (const TensorId id : graph.graph_outputs()) {
    if (graph.tensor(id).kind == TensorKind::kWeight) kept.insert(id);
  }
  for (const TensorId id : kept) {
    entry.weights.emplace_back(graph.tensor(id).name, weights[index_of(id)]);
  }
  // The bundle holds the weights that it needs, so that it can be moved anywhere by itself.
  Graph document = graph;
  document.erase_npu_member("weights_file");
  document.erase_npu_member("weights_map");
  entry.document = write_graph(document);
  return content;
}

namespace {

/// For a bundle of a level that there is not here, ", or ..".
std::string advice_for_level(const Bundle& bundle) {
  const auto level = bundle_isa_level(bundle);
  if (!level || *level <= isa_level()) return "";
  return ", or on another one with --isa " + std::string(kIsaLevels[isa_level()]);
}

}  // namespace

std::vector<CompiledPartition> bundled_partitions(const Bundle& bundle, const PartitionPlan& plan,
                                                  const Target& target, std::size_t entry) {
  const std::vector<BundlePartition>& partitions = bundle.entries()[entry].partitions;
  if (partitions.size() != plan.partitions.size()) {
    throw Error(ErrorCode::kParse,
                "holds " + std::to_string(partitions.size()) +
                    " compiled partitions, its document has " +
                    std::to_string(plan.partitions.size()),
                {.file = bundle.name()});
  }
  std::vector<CompiledPartition> compiled;
  for (std::size_t i = 0; i < plan.partitions.size(); ++i) {
    const BundlePartition& stored = partitions[i];
    const Device& device = backend_device(target, plan.partitions[i].device);
    const std::string which = "partition " + std::to_string(i);
    if (stored.device != device.name || stored.backend != device.backend) {
      throw Error(ErrorCode::kParse,
                  which + " was compiled for device '" + stored.device + "' and backend '" +
                      stored.backend + "', its document has '" + device.name + "' and '" +
                      device.backend + "'",
                  {.file = bundle.name()});
    }
    const auto backend = Backend::load(device.backend);
    const std::string& fingerprint = backend->device(device_instance(device)).fingerprint;
    // A backend that looks at blobs says itself, once its device is open, whether this one fits.
    const bool fits = stored.fingerprint == fingerprint || backend->api().blob_check != nullptr;
    if (!fits || stored.holds_weights != backend->holds_weights()) {
      throw Error(ErrorCode::kUnsupported,
                  which + " was compiled for another device or another version of backend '" +
                      stored.backend + "' ('" + printable_text(stored.fingerprint) +
                      "'; here it is '" + fingerprint +
                      "'); compile the model again with npu-compile on this machine" +
                      advice_for_level(bundle),
                  {.file = bundle.name()});
    }
    const BundleSection& section = bundle.sections()[stored.section];
    compiled.push_back({.device = device.name,
                        .backend = stored.backend,
                        .backend_version = stored.backend_version,
                        .fingerprint = stored.fingerprint,
                        .holds_weights = stored.holds_weights,
                        .layouts = stored.layouts,
                        .program = stored.program,
                        .blob = {bundle.section(stored.section), section.size},
                        .check_blob = [shared = bundle.shared_from_this(),
                                       index = stored.section] { shared->check_section(index); },
                        .report = stored.report,
                        .cache_hit = false,
                        .compile_ms = 0});
  }
  return compiled;
}

std::vector<Tensor> bundled_weights(const Bundle& bundle, const Graph& graph, std::size_t entry) {
  std::vector<Tensor> weights(graph.tensors().size());
  for (const std::size_t place : bundle.entries()[entry].weights) {
    const BundleWeight& stored = bundle.weights()[place];
    const TensorId id = graph.find_tensor(stored.name);
    const TensorInfo* tensor = id.valid() ? &graph.tensor(id) : nullptr;
    if (tensor == nullptr || tensor->kind != TensorKind::kWeight || tensor->dtype != stored.dtype ||
        tensor->shape != stored.shape) {
      throw Error(ErrorCode::kParse,
                  "weight '" + printable_text(stored.name) + "' (" +
                      std::string(dtype_name(stored.dtype)) + " " + shape_text(stored.shape) +
                      ") is no weight of its document",
                  {.file = bundle.name()});
    }
    weights[index_of(id)] = bundle.weight(stored);
  }
  return weights;
}

}  // namespace npu
