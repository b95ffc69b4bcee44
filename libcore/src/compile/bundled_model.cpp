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
  content.target = target.name;
  content.precision = options.precision;
  content.provenance["model"] = graph.model_name();
  content.provenance["isa"] = kIsaLevels[isa_level()];
  content.provenance["cpu_family"] = cpu_family();
  std::set<TensorId> kept;
  for (std::size_t i = 0; i < model.partitions.size(); ++i) {
    const CompiledPartition& partition = model.partitions[i];
    content.partitions.push_back({{.device = partition.device,
                                   .backend = partition.backend,
                                   .backend_version = partition.backend_version,
                                   .fingerprint = partition.fingerprint,
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
    content.weights.emplace_back(graph.tensor(id).name, weights[index_of(id)]);
  }
  // The bundle holds the weights that it needs, so that it can be moved anywhere by itself.
  Graph document = graph;
  document.erase_npu_member("weights_file");
  document.erase_npu_member("weights_map");
  content.document = write_graph(document);
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
                                                  const Target& target) {
  if (bundle.partitions().size() != plan.partitions.size()) {
    throw Error(ErrorCode::kParse,
                "holds " + std::to_string(bundle.partitions().size()) +
                    " compiled partitions, its document has " +
                    std::to_string(plan.partitions.size()),
                {.file = bundle.name()});
  }
  std::vector<CompiledPartition> compiled;
  for (std::size_t i = 0; i < plan.partitions.size(); ++i) {
    const BundlePartition& entry = bundle.partitions()[i];
    const Device& device = backend_device(target, plan.partitions[i].device);
    const std::string which = "partition " + std::to_string(i);
    if (entry.device != device.name || entry.backend != device.backend) {
      throw Error(ErrorCode::kParse,
                  which + " was compiled for device '" + entry.device + "' and backend '" +
                      entry.backend + "', its document has '" + device.name + "' and '" +
                      device.backend + "'",
                  {.file = bundle.name()});
    }
    const auto backend = Backend::load(device.backend);
    const std::string& fingerprint = backend->device(device_instance(device)).fingerprint;
    // A backend that looks at blobs says itself, once its device is open, whether this one fits.
    const bool fits = entry.fingerprint == fingerprint || backend->api().blob_check != nullptr;
    if (!fits || entry.holds_weights != backend->holds_weights()) {
      throw Error(ErrorCode::kUnsupported,
                  which + " was compiled for another device or another version of backend '" +
                      entry.backend + "' ('" + printable_text(entry.fingerprint) +
                      "'; here it is '" + fingerprint +
                      "'); compile the model again with npu-compile on this machine" +
                      advice_for_level(bundle),
                  {.file = bundle.name()});
    }
    const BundleSection& section = bundle.sections()[entry.section];
    compiled.push_back({.device = device.name,
                        .backend = entry.backend,
                        .backend_version = entry.backend_version,
                        .fingerprint = entry.fingerprint,
                        .holds_weights = entry.holds_weights,
                        .layouts = entry.layouts,
                        .blob = {bundle.section(entry.section), section.size},
                        .check_blob = [shared = bundle.shared_from_this(),
                                       index = entry.section] { shared->check_section(index); },
                        .report = entry.report,
                        .cache_hit = false,
                        .compile_ms = 0});
  }
  return compiled;
}

std::vector<Tensor> bundled_weights(const Bundle& bundle, const Graph& graph) {
  std::vector<Tensor> weights(graph.tensors().size());
  for (const BundleWeight& entry : bundle.weights()) {
    const TensorId id = graph.find_tensor(entry.name);
    const TensorInfo* tensor = id.valid() ? &graph.tensor(id) : nullptr;
    if (tensor == nullptr || tensor->kind != TensorKind::kWeight || tensor->dtype != entry.dtype ||
        tensor->shape != entry.shape) {
      throw Error(ErrorCode::kParse,
                  "weight '" + printable_text(entry.name) + "' (" +
                      std::string(dtype_name(entry.dtype)) + " " + shape_text(entry.shape) +
                      ") is no weight of its document",
                  {.file = bundle.name()});
    }
    weights[index_of(id)] = bundle.weight(entry);
  }
  return weights;
}

}  // namespace npu
