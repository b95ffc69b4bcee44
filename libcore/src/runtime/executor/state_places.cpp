// SPDX-License-Identifier: Apache-2.0
// Binds states to the buffers that outlive runs. One that a program overwrites in part is written
// where it lies, if the program was compiled so; every other one has a second buffer. What a state
// costs in each run is known here: bytes that a program copies, because it was not compiled to
// write in place, and bytes that go to a device which does not own it, or come from there.
// O(states x partitions).
#include "runtime/executor/state_places.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "compile/state_aliases.hpp"
#include "ir/states_section.hpp"
#include "npu/support/ids.hpp"
#include "support/json_fields.hpp"

namespace npu {
namespace {

/// Whether a program writes into the buffer of an input without copying it first.
bool writes_in_place(const CompiledPartition& compiled, const std::string& output) {
  const Json* aliases = member_object(*compiled.report, "aliases");
  const std::string* said = aliases == nullptr ? nullptr : member_text(*aliases, output);
  return said != nullptr && *said == "in_place";
}

class StatePlacer {
 public:
  StatePlacer(const Graph& graph, const PartitionPlan& plan,
              const std::vector<CompiledPartition>& compiled, const RunDevices& devices,
              DeviceStates& states)
      : graph_(graph), plan_(plan), compiled_(compiled), devices_(devices), states_(states) {
    for (std::size_t p = 0; p < plan.partitions.size(); ++p) {
      for (const StateAlias& alias : state_aliases(graph, plan, p)) aliased_.insert(alias.output);
      const SubgraphBoundary& boundary = plan.partitions[p].boundary;
      for (const TensorId id : boundary.inputs) readers_[id].push_back(p);
      for (std::size_t i = 0; i < boundary.outputs.size(); ++i) {
        writer_of_[boundary.outputs[i]] = {p, i};
      }
    }
  }

  StatePlace place(const State& state) {
    StatePlace place;
    if (!state.input.empty()) place.input = graph_.find_tensor(state.input);
    if (!state.output.empty()) place.output = graph_.find_tensor(state.output);
    const TensorInfo& tensor = graph_.tensor(place.input.valid() ? place.input : place.output);
    const auto writer = writer_of_.find(place.output);
    if (writer != writer_of_.end()) {
      place.writer = writer->second.first;
      place.writer_output = writer->second.second;
    }
    const std::size_t wanted = wanted_device(place);
    DeviceStates::Named& named = states_.find_or_make(
        state.name, tensor.dtype, tensor.shape, devices_.name(wanted), devices_.instance(wanted));
    place.state = &named.state;
    for (std::size_t d = 0; d < devices_.size(); ++d) {
      if (devices_.instance(d) == named.state.device()) place.device = d;
    }
    place.use = {.name = state.name, .device = named.device, .bytes = tensor.bytes()};
    find_path(place);
    count_transfers(place);
    return place;
  }

 private:
  std::size_t device_of(std::size_t partition) const {
    return devices_.number_of(plan_.partitions[partition].device);
  }

  /// Where it should lie if this plan is the first to have it: a state that no node uses is on the
  /// first device.
  std::size_t wanted_device(const StatePlace& place) const {
    if (place.writer != StatePlace::kNone) return device_of(place.writer);
    const auto readers = readers_.find(place.input);
    return readers == readers_.end() ? 0 : device_of(readers->second.front());
  }

  void find_path(StatePlace& place) const {
    if (place.writer == StatePlace::kNone) return;  // kept
    place.is_written_there = device_of(place.writer) == place.device;
    if (!place.is_written_there) {
      place.use.path = StatePath::kCopied;
      return;
    }
    if (!place.input.valid() || !readers_.contains(place.input)) {  // nobody reads what was there
      place.is_one_buffer = true;
      place.use.path = StatePath::kInPlace;
      return;
    }
    const CompiledPartition& compiled = compiled_[place.writer];
    const std::string& output = graph_.tensor(place.output).name;
    place.is_one_buffer =
        aliased_.contains(place.output) && devices_[place.device].backend().has_feature("alias");
    if (place.is_one_buffer && writes_in_place(compiled, output)) {
      place.use.path = StatePath::kInPlace;
    } else if (is_overwritten(place)) {
      place.use.path = StatePath::kCopied;
      place.use.copied_bytes = place.use.bytes;
    } else {
      place.use.path = StatePath::kInTurns;
    }
  }

  bool is_overwritten(const StatePlace& place) const {
    const State ends{.name = {},
                     .input = graph_.tensor(place.input).name,
                     .output = graph_.tensor(place.output).name,
                     .axis = {}};
    return !chain_in_place(graph_, ends).empty();
  }

  /// What a run moves between devices: the input to each other device that reads it, the output to
  /// the owner, and along the plan.
  void count_transfers(StatePlace& place) const {
    std::int64_t moves = 0;
    std::set<std::size_t> readers;
    if (const auto found = readers_.find(place.input); found != readers_.end()) {
      for (const std::size_t p : found->second) readers.insert(device_of(p));
    }
    for (const std::size_t d : readers) moves += d == place.device ? 0 : 1;
    if (place.writer != StatePlace::kNone) {
      moves += place.is_written_there ? 0 : 1;
      std::set<std::string> taken{plan_.partitions[place.writer].device};
      for (const Transfer& transfer : plan_.transfers) {
        const bool has_it = std::find(transfer.tensors.begin(), transfer.tensors.end(),
                                      place.output) != transfer.tensors.end();
        if (has_it && taken.insert(transfer.to_device).second) ++moves;
      }
    }
    place.use.transfer_bytes = moves * place.use.bytes;
  }

  const Graph& graph_;
  const PartitionPlan& plan_;
  const std::vector<CompiledPartition>& compiled_;
  const RunDevices& devices_;
  DeviceStates& states_;
  std::set<TensorId> aliased_;                                         // outputs
  std::map<TensorId, std::vector<std::size_t>> readers_;               // partitions
  std::map<TensorId, std::pair<std::size_t, std::size_t>> writer_of_;  // partition, output
};

}  // namespace

std::vector<StatePlace> place_states(const Graph& graph, const PartitionPlan& plan,
                                     const std::vector<CompiledPartition>& compiled,
                                     const RunDevices& devices, DeviceStates& states) {
  Diagnostics known;  // the reader has told them
  const std::vector<State> list = read_states(graph, known);
  std::vector<StatePlace> places;
  if (list.empty()) return places;
  StatePlacer placer(graph, plan, compiled, devices, states);
  for (const State& state : list) places.push_back(placer.place(state));
  return places;
}

}  // namespace npu
