// SPDX-License-Identifier: Apache-2.0
// Work-conserving workers with one queue: what the plan's simulation assumes, and what compensates
// for a device that fails. Devices that share a resource take turns anyway and have one worker: a
// thread each would wake for every turn, and libraries keep processors busy for a while for the
// thread that called them last.
//
// One mutex guards the states of tasks and devices; nothing slow happens while it is held: tasks
// are computed, values are released, and programs for another device are compiled without it. A
// task whose device has failed is in the state kMoving until its new device is ready for it, so
// that no worker takes it and the layer does not end without it. If the new device fails meanwhile,
// the worker that moves the task finds another one. O(tasks) for each task taken.
#include "gnn/run/scheduler.hpp"

#include <algorithm>
#include <exception>
#include <new>
#include <utility>

#include "npu/support/error.hpp"
#include "npu/support/ids.hpp"
#include "support/elapsed.hpp"

namespace npu::gnn {
namespace {

constexpr auto kNoTask = static_cast<std::size_t>(-1);

}  // namespace

Scheduler::Scheduler(std::vector<std::vector<SchedulerTask>> tasks,
                     std::vector<SchedulerDevice> devices, TaskRunner& runner)
    : tasks_(std::move(tasks)), devices_(std::move(devices)), runner_(runner) {
  start();
}

void Scheduler::start() { start_ = Clock::now(); }

double Scheduler::now_ms() const { return milliseconds_since(start_); }

bool Scheduler::Item::is_done() const noexcept {
  return std::all_of(open.begin(), open.end(), [](std::int32_t count) { return count == 0; });
}

void Scheduler::run_layer(std::size_t layer) {
  layer_ = layer;
  left_ = tasks_[layer].size();
  states_.assign(left_, State::kWaiting);
  items_.clear();
  fatal_ = {};
  for (const SchedulerTask& task : tasks_[layer]) {
    auto& open = items_[task.item].open;
    if (open.size() <= task.segment) open.resize(task.segment + 1, 0);
    ++open[task.segment];
  }
  // What a device did in an earlier run, before it failed, needs another one now.
  std::vector<Place> orphans;
  for (std::size_t t = 0; t < left_; ++t) {
    if (!broken_.contains(tasks_[layer][t].device)) continue;
    states_[t] = State::kMoving;
    orphans.push_back({layer, t});
  }
  if (!orphans.empty()) {
    const std::int32_t device = tasks_[layer][orphans.back().task].device;
    give_to_others(orphans, {broken_.at(device), exhausted_.contains(device)});
  }
  // A resource without work waits as well: it may have to take over from a device that fails. If
  // there is only one, it runs on this thread.
  std::vector<std::int32_t> resources;
  for (const SchedulerDevice& device : devices_) {
    if (!device.present) continue;
    if (std::find(resources.begin(), resources.end(), device.resource) != resources.end()) continue;
    resources.push_back(device.resource);
  }
  workers_.run(resources.size(), [&](std::size_t i) noexcept { work(resources[i]); });
  if (interrupted_) throw Error(ErrorCode::kIo, "interrupted");
  if (fatal_.text.empty()) return;
  throw Error(fatal_.is_memory ? ErrorCode::kInfeasible : ErrorCode::kUnsupported, fatal_.text);
}

// The task that the device should start now; kNoTask if there is none.
std::size_t Scheduler::next_task(std::int32_t device) const {
  if (broken_.contains(device)) return kNoTask;
  const std::vector<SchedulerTask>& tasks = tasks_[layer_];
  for (std::size_t t = 0; t < tasks.size(); ++t) {
    if (tasks[t].device != device || states_[t] != State::kWaiting) continue;
    const std::size_t segment = tasks[t].segment;
    if (segment == 0 || items_.at(tasks[t].item).open[segment - 1] == 0) return t;
  }
  return kNoTask;
}

void Scheduler::work(std::int32_t resource) {
  std::unique_lock lock(mutex_);
  for (;;) {
    std::size_t task = kNoTask;
    std::int32_t device = 0;
    changed_.wait(lock, [&] {
      if (is_over()) return true;
      for (std::size_t d = 0; d < devices_.size() && task == kNoTask; ++d) {
        if (devices_[d].resource != resource) continue;
        device = static_cast<std::int32_t>(d);
        task = next_task(device);
      }
      return task != kNoTask;
    });
    if (task == kNoTask) return;
    states_[task] = State::kRunning;
    lock.unlock();
    const Failure error = run_task(task, device);
    lock.lock();
    if (error.text.empty()) {
      const bool item_done = finish_task(task);
      changed_.notify_all();
      if (!item_done) continue;
      lock.unlock();
      runner_.release(tasks_[layer_][task].item);
      lock.lock();
      continue;
    }
    states_[task] = State::kWaiting;
    const Failure failure{"device '" + devices_[index_of(device)].name + "' failed: " + error.text,
                          error.is_memory};
    if (failure.is_memory) exhausted_.insert(device);
    const std::vector<Place> places = take_tasks_of(device, failure.text);
    changed_.notify_all();
    lock.unlock();
    give_to_others(places, failure);
    lock.lock();
  }
}

Scheduler::Failure Scheduler::run_task(std::size_t task, std::int32_t device) {
  SchedulerTask& state = tasks_[layer_][task];
  Failure failure;
  state.start_ms = now_ms();
  try {
    runner_.run(layer_, task, device);
  } catch (const std::bad_alloc&) {
    failure = {"out of memory", true};
  } catch (const Error& error) {
    failure = {error.what(), error.code() == ErrorCode::kInfeasible};
  } catch (const std::exception& exception) {
    failure.text = exception.what();
  }
  state.end_ms = now_ms();
  return failure;
}

// Under the lock. Whether that was the item's last task.
bool Scheduler::finish_task(std::size_t task) {
  const SchedulerTask& ended = tasks_[layer_][task];
  states_[task] = State::kDone;
  --left_;
  Item& item = items_.at(ended.item);
  --item.open[ended.segment];
  interrupted_ = !runner_.goes_on(layer_) || interrupted_;
  return item.is_done();
}

// Under the lock: marks the device as broken, and takes all that it has not done, of this layer and
// of those to come. A task of this layer is in the state kMoving until it has another device.
std::vector<Scheduler::Place> Scheduler::take_tasks_of(std::int32_t device,
                                                       const std::string& failure) {
  broken_.emplace(device, failure);
  failures_.push_back(failure);
  std::vector<Place> places;
  for (std::size_t l = layer_; l < tasks_.size(); ++l) {
    for (std::size_t t = 0; t < tasks_[l].size(); ++t) {
      if (tasks_[l][t].device != device || (l == layer_ && states_[t] != State::kWaiting)) continue;
      if (l == layer_) states_[t] = State::kMoving;
      places.push_back({l, t});
    }
  }
  return places;
}

void Scheduler::give_to_others(const std::vector<Place>& places, const Failure& failure) {
  for (const Place& place : places) {
    std::string reasons;
    bool given = false;
    for (std::size_t d = 0; d < devices_.size() && !given; ++d) {
      given = give_to(place, static_cast<std::int32_t>(d), reasons);
    }
    if (given) continue;
    const std::lock_guard lock(mutex_);
    fatal_ = {failure.text + "; no other device runs " + runner_.name_of(place.layer, place.task) +
                  reasons,
              failure.is_memory};
    changed_.notify_all();
    return;
  }
}

bool Scheduler::give_to(const Place& place, std::int32_t device, std::string& reasons) {
  const SchedulerDevice& to = devices_[index_of(device)];
  const auto is_broken = [&] { return broken_.contains(device); };
  {
    const std::lock_guard lock(mutex_);
    if (is_broken() || !to.present) return false;
  }
  try {
    runner_.prepare(place.layer, place.task, device);
  } catch (const Error& refusal) {
    reasons += "; " + to.name + ": " + refusal.message();
    return false;
  }
  const std::lock_guard lock(mutex_);
  if (is_broken()) return false;  // meanwhile
  SchedulerTask& task = tasks_[place.layer][place.task];
  task.device = device;
  task.moved = true;
  if (place.layer == layer_) states_[place.task] = State::kWaiting;
  ++moved_count_;
  changed_.notify_all();
  return true;
}

}  // namespace npu::gnn
