// SPDX-License-Identifier: Apache-2.0
// Walks a plan in its order: what a step finds on its device is a slot that an earlier one has
// written, what it does not find is a graph input. O(steps + tensors), times a logarithm.
#include "runtime/executor/schedule.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "npu/device/blob.hpp"
#include "npu/support/ids.hpp"

namespace npu {
namespace {

class ScheduleBuilder {
 public:
  ScheduleBuilder(const Graph& graph, const PartitionPlan& plan, const RunDevices& devices,
                  const std::vector<StatePlace>& states)
      : graph_(graph), plan_(plan), devices_(devices) {
    for (std::size_t i = 0; i < graph.graph_inputs().size(); ++i) {
      input_of_[graph.graph_inputs()[i]] = i;
    }
    for (std::size_t i = 0; i < states.size(); ++i) {
      if (states[i].input.valid()) state_of_[states[i].input] = i;
      if (states[i].is_written_there) state_outputs_.insert(states[i].output);
    }
  }

  void add(const PlanStep& planned, const std::vector<CompiledPartition>& compiled) {
    Schedule::Step step;
    step.kind = planned.kind;
    step.index = planned.index;
    const std::size_t index = index_of(planned.index);
    if (planned.kind == PlanStep::Kind::kTransfer) {
      fill_transfer(step, plan_.transfers[index]);
    } else {
      fill_partition(step, plan_.partitions[index], compiled[index].layouts);
    }
    for (const std::size_t read : step.reads) ++made_.slots[read].readers;
    made_.steps.push_back(std::move(step));
  }

  /// The slot that a result is handed out from; kNoSlot if no node produces it.
  std::size_t result_slot(TensorId id) {
    const auto found = home_.find(id);
    if (found == home_.end()) return Schedule::kNoSlot;
    made_.slots[found->second].needs_host = true;
    ++made_.slots[found->second].readers;
    return found->second;
  }

  Schedule finish(const std::vector<TapPlace>& taps) {
    for (const TensorId id : graph_.graph_outputs()) {
      made_.outputs.push_back(state_outputs_.contains(id) ? Schedule::kNoSlot : result_slot(id));
    }
    for (const TapPlace& tap : taps) {
      made_.taps.push_back(tap.index ? Schedule::kNoSlot : result_slot(tap.tensor));
    }
    for (Schedule::Slot& slot : made_.slots) slot.is_kept |= devices_.has_queue(slot.device);
    return std::move(made_);
  }

 private:
  std::size_t slot_of(TensorId tensor, std::size_t device) {
    const auto [found, is_new] = slot_of_.try_emplace({tensor, device}, made_.slots.size());
    if (is_new) {
      made_.slots.push_back({.tensor = tensor, .device = device});
      written_by_.push_back(kNobody);
    }
    return found->second;
  }

  bool is_written(std::size_t slot) const { return written_by_[slot] != kNobody; }
  /// By the step that is being made.
  void write(std::size_t slot) { written_by_[slot] = made_.steps.size(); }

  void fill_transfer(Schedule::Step& step, const Transfer& transfer) {
    step.device = devices_.number_of(transfer.to_device);
    std::set<std::size_t> after;
    for (const TensorId id : transfer.tensors) {
      const std::size_t to = slot_of(id, step.device);
      if (is_written(to)) continue;  // an earlier step has copied it
      const std::size_t from = home_.at(id);
      add_copy(step, from, to);
      step.reads.push_back(from);
      after.insert(written_by_[from]);
      write(to);
    }
    for (const std::size_t earlier : after) {
      if (made_.steps[earlier].device != step.device) step.after.push_back(earlier);
    }
  }

  /// Which way the content of a slot goes to that of the step's device, and what it needs for it.
  void add_copy(Schedule::Step& step, std::size_t from, std::size_t to) {
    Schedule::Slot& source = made_.slots[from];
    const bool has_queue = devices_.has_queue(step.device);
    const bool is_direct = devices_.copies_directly(source.device, step.device);
    source.read_by_other = true;
    source.needs_host |= !is_direct;
    source.is_kept |= has_queue;
    const bool is_staged =
        !is_direct && has_queue && devices_[step.device].facts().pinned_memory.has_value();
    if (is_staged && !source.staged_on) source.staged_on = step.device;
    step.copies.push_back({from, to, is_direct});
  }

  void fill_partition(Schedule::Step& step, const Partition& partition,
                      const LayoutNames& layouts) {
    step.device = devices_.number_of(partition.device);
    for (const TensorId id : partition.boundary.inputs) {
      const std::size_t input = slot_of(id, step.device);
      const auto layout = layouts.find(graph_.tensor(id).name);
      if (layout != layouts.end()) made_.slots[input].layout = layout->second;
      if (!is_written(input)) {
        // The plan has been checked: only a graph input can arrive without a transfer.
        if (const auto state = state_of_.find(id); state != state_of_.end()) {
          made_.state_inputs.push_back({state->second, input});
          made_.slots[input].is_state = true;
        } else {
          step.uploads.push_back({input_of_.at(id), input});
        }
        write(input);
      }
      step.inputs.push_back(input);
      step.reads.push_back(input);
    }
    for (const TensorId id : partition.boundary.outputs) {
      const std::size_t output = slot_of(id, step.device);
      made_.slots[output].partition = index_of(step.index);
      made_.slots[output].output = step.outputs.size();
      made_.slots[output].is_state = state_outputs_.contains(id);
      step.outputs.push_back(output);
      home_[id] = output;
      write(output);
    }
  }

  static constexpr std::size_t kNobody = SIZE_MAX;

  const Graph& graph_;
  const PartitionPlan& plan_;
  const RunDevices& devices_;
  std::map<TensorId, std::size_t> input_of_;
  std::map<TensorId, std::size_t> state_of_;                         // by input
  std::set<TensorId> state_outputs_;                                 // in buffers of states
  std::map<std::pair<TensorId, std::size_t>, std::size_t> slot_of_;  // by device
  std::vector<std::size_t> written_by_;                              // slot -> step
  std::map<TensorId, std::size_t> home_;                             // slot of its producer
  Schedule made_;
};

}  // namespace

bool Schedule::has_independent_steps() const {
  for (std::size_t s = 1; s < steps.size(); ++s) {
    const Step& step = steps[s];
    const bool waits = step.device == steps[s - 1].device ||
                       std::ranges::find(step.after, s - 1) != step.after.end();
    if (!waits) return true;
  }
  return false;
}

Schedule make_schedule(const Graph& graph, const PartitionPlan& plan,
                       const std::vector<CompiledPartition>& compiled, const RunDevices& devices,
                       const std::vector<TapPlace>& taps, const std::vector<StatePlace>& states) {
  ScheduleBuilder builder(graph, plan, devices, states);
  for (const PlanStep& planned : plan.steps) builder.add(planned, compiled);
  return builder.finish(taps);
}

}  // namespace npu
