// SPDX-License-Identifier: Apache-2.0
// Loads compiled partitions. What several partitions of a device read is uploaded once for all of
// them, where the backend takes weights of their own. O(tensors) besides the backends.
#include "runtime/executor/loaded_programs.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "compile/sub_ir.hpp"
#include "npu/support/error.hpp"
#include "npu/support/ids.hpp"

namespace npu {
namespace {

using ScratchBuffers = std::vector<std::shared_ptr<DeviceBuffer>>;  // by device

/// What partitions of a device share.
struct SharedWeights {
  std::set<TensorId> tensors;
  std::shared_ptr<DeviceWeights> weights;  // null: there are none
};

const Tensor& weight_of(const PlanToLoad& from, TensorId id, std::size_t partition) {
  const TensorInfo& info = from.graph.tensor(id);
  const Tensor& weight = from.weights[index_of(id)];
  if (weight.dtype() != info.dtype || weight.shape() != info.shape) {
    throw Error(ErrorCode::kInvalidGraph, "weight '" + info.name + "' of partition " +
                                              std::to_string(partition) + " is missing");
  }
  return weight;
}

/// By device. Uploads what several of its partitions read.
std::vector<SharedWeights> share_weights(const PlanToLoad& from, LoadedPrograms& programs) {
  std::vector<std::map<TensorId, std::vector<std::size_t>>> readers(from.devices.size());
  for (std::size_t p = 0; p < from.plan.partitions.size(); ++p) {
    const Partition& partition = from.plan.partitions[p];
    if (from.compiled[p].holds_weights) continue;
    auto& of_device = readers[from.devices.number_of(partition.device)];
    for (const TensorId id : partition.boundary.weights) of_device[id].push_back(p);
  }
  std::vector<SharedWeights> shared(from.devices.size());
  for (std::size_t d = 0; d < from.devices.size(); ++d) {
    std::vector<NamedTensor> tensors;
    std::set<TensorId> ids;
    for (const auto& [id, partitions] : readers[d]) {
      if (partitions.size() < 2) continue;
      tensors.push_back({from.graph.tensor(id).name, weight_of(from, id, partitions.front())});
      ids.insert(id);
    }
    if (tensors.empty()) continue;
    shared[d].weights = from.devices[d].load_weights(std::move(tensors));
    if (shared[d].weights == nullptr) continue;  // this backend takes them with each model
    programs.weight_uploads += static_cast<std::int64_t>(ids.size());
    for (const TensorId id : ids) programs.weight_bytes += from.graph.tensor(id).bytes();
    shared[d].tensors = std::move(ids);
  }
  return shared;
}

/// The scratch memory that the programs of each device need, which run one after another, where the
/// backend takes it from the host; otherwise 0.
std::vector<std::uint64_t> find_scratch(const PlanToLoad& from) {
  std::vector<std::uint64_t> bytes(from.devices.size(), 0);
  for (std::size_t p = 0; p < from.plan.partitions.size(); ++p) {
    const std::size_t d = from.devices.number_of(from.plan.partitions[p].device);
    if (!from.devices[d].backend().has_feature("scratch")) continue;
    const auto report = from.devices[d].blob_memory(from.compiled[p].blob);
    if (!report || report->memories.empty()) continue;
    bytes[d] = std::max(bytes[d], report->memories.front().scratch);
  }
  return bytes;
}

/// One for each device of a flight; null if its programs have their own.
ScratchBuffers make_scratch(const RunDevices& devices, const std::vector<std::uint64_t>& bytes) {
  ScratchBuffers scratch(devices.size());
  for (std::size_t d = 0; d < devices.size(); ++d) {
    if (bytes[d] != 0) scratch[d] = devices[d].make_scratch(bytes[d]);
  }
  return scratch;
}

ProgramSignature signature_of(const PlanToLoad& from, std::size_t partition) {
  const Partition& part = from.plan.partitions[partition];
  ProgramSignature signature =
      program_signature(from.graph, part.nodes.size(), part.boundary.outputs);
  const LayoutNames& layouts = from.compiled[partition].layouts;
  for (std::size_t i = 0; i < signature.outputs.size(); ++i) {
    const auto layout = layouts.find(from.graph.tensor(part.boundary.outputs[i]).name);
    if (layout != layouts.end()) signature.outputs[i].layout = layout->second;
  }
  signature.is_timed = from.is_timed;
  for (const TapPlace& tap : from.taps) {
    if (tap.partition != partition || !tap.index) continue;
    const TensorInfo& info = from.graph.tensor(tap.tensor);
    signature.taps.push_back({info.name, {info.dtype, info.shape}});
  }
  return signature;
}

std::unique_ptr<DeviceProgram> load_partition(const PlanToLoad& from, std::size_t p,
                                              const SharedWeights& shared,
                                              const std::shared_ptr<DeviceBuffer>& scratch,
                                              LoadedPrograms& programs) {
  const Partition& partition = from.plan.partitions[p];
  const CompiledPartition& compiled = from.compiled[p];
  std::vector<NamedTensor> used;
  std::vector<std::shared_ptr<DeviceWeights>> objects;
  for (const TensorId id : partition.boundary.weights) {
    if (shared.tensors.contains(id)) {
      if (objects.empty()) objects.push_back(shared.weights);
      continue;
    }
    ++programs.weight_uploads;
    programs.weight_bytes += from.graph.tensor(id).bytes();
    if (compiled.holds_weights) continue;
    used.push_back({from.graph.tensor(id).name, weight_of(from, id, p)});
  }
  DeviceInstance& device = from.devices[from.devices.number_of(partition.device)];
  try {
    if (compiled.program.empty()) {
      return device.load(compiled.blob, std::move(used), signature_of(from, p), std::move(objects),
                         scratch);
    }
    auto& model = from.models.list[{&device, compiled.blob.data.get()}];
    if (model == nullptr) {
      model = device.load_model(compiled.blob, std::move(used), std::move(objects));
    }
    return std::make_unique<DeviceProgram>(model, signature_of(from, p), compiled.program, scratch);
  } catch (const Error&) {
    if (compiled.check_blob) compiled.check_blob();  // that the file is damaged says more
    throw;
  }
}

/// Whether a run has work of a device that need not wait for other work of it.
bool has_several_partitions(const PlanToLoad& from, std::size_t d) {
  return std::ranges::count(from.plan.partitions, from.devices.name(d), &Partition::device) > 1;
}

}  // namespace

LoadedPrograms load_programs(const PlanToLoad& from) {
  LoadedPrograms programs;
  const std::vector<SharedWeights> shared = share_weights(from, programs);
  programs.scratch_bytes = find_scratch(from);
  const ScratchBuffers scratch = make_scratch(from.devices, programs.scratch_bytes);
  Flight& flight = *programs.flights.emplace_back(std::make_unique<Flight>());
  for (std::size_t p = 0; p < from.plan.partitions.size(); ++p) {
    const std::size_t d = from.devices.number_of(from.plan.partitions[p].device);
    flight.programs.push_back(load_partition(from, p, shared[d], scratch[d], programs));
    LoadedPrograms::Partition& loaded = programs.partitions.emplace_back();
    loaded.check = from.compiled[p].check_blob;
    const Json& report = *from.compiled[p].report;
    const Json* steps = find_member(report, "steps");
    if (steps != nullptr && steps->is_array()) loaded.report_steps = steps->size();
    programs.int8.add(read_compile_numbers(report));
  }
  for (const TensorId id : from.graph.graph_outputs()) {
    const bool is_weight = from.graph.tensor(id).kind == TensorKind::kWeight;
    programs.output_weights.push_back(is_weight ? from.weights[index_of(id)] : Tensor());
  }
  return programs;
}

void open_flights(LoadedPrograms& programs, const PlanToLoad& from, std::int32_t count) {
  auto& flights = programs.flights;
  for (std::int32_t i = 1; i < count; ++i) {
    auto flight = std::make_unique<Flight>();
    const ScratchBuffers scratch = make_scratch(from.devices, programs.scratch_bytes);
    for (std::size_t p = 0; p < from.plan.partitions.size(); ++p) {
      const DeviceProgram& first = *flights.front()->programs[p];
      const std::size_t d = from.devices.number_of(from.plan.partitions[p].device);
      flight->programs.push_back(std::make_unique<DeviceProgram>(
          first.model(), first.signature(), from.compiled[p].program, scratch[d]));
    }
    flights.push_back(std::move(flight));
  }
  for (const auto& flight : flights) {
    for (const auto& program : flight->programs) {
      const bool keeps = program->model()->device()->keeps_outputs();
      flight->outputs.push_back(keeps ? program->make_outputs()
                                      : std::vector<std::shared_ptr<DeviceBuffer>>());
      flight->taps.push_back(program->make_taps());
    }
    for (std::size_t d = 0; d < from.devices.size(); ++d) {
      auto& queues = flight->queues.emplace_back();
      if (!from.devices.has_queue(d)) continue;
      const bool has_room = from.devices[d].facts().queues >= flights.size() * kLanes;
      const std::size_t lanes = has_room && has_several_partitions(from, d) ? kLanes : 1;
      for (std::size_t lane = 0; lane < lanes; ++lane) {
        queues[lane] = std::make_unique<DeviceQueue>(from.devices.instance(d), from.is_timed);
      }
    }
  }
}

}  // namespace npu
