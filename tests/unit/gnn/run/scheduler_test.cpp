// SPDX-License-Identifier: Apache-2.0
// The scheduler with tasks that only record calls: order, turns on a resource, devices that fail,
// even while their tasks are being reassigned, and that nothing waits for a compilation.
#include "gnn/run/scheduler.hpp"

#include <atomic>
#include <functional>
#include <new>
#include <set>
#include <stdexcept>
#include <thread>

#include "catch.hpp"
#include "npu/support/error.hpp"

using namespace npu;
using namespace npu::gnn;

namespace {

struct Note {
  std::size_t layer;
  std::size_t task;
  std::int32_t device;
};

/// Writes down what it is told; tests hook into the calls.
class Notes : public TaskRunner {
 public:
  std::function<void(std::size_t task, std::int32_t device)> on_run;
  std::function<void(std::size_t task, std::int32_t device)> on_prepare;
  std::function<bool()> on_end;

  void run(std::size_t layer, std::size_t task, std::int32_t device) override {
    if (on_run) on_run(task, device);
    const std::lock_guard lock(mutex_);
    ran_.push_back({layer, task, device});
  }
  void prepare(std::size_t, std::size_t task, std::int32_t device) override {
    if (on_prepare) on_prepare(task, device);
  }
  std::string name_of(std::size_t, std::size_t task) const override {
    return "task " + std::to_string(task);
  }
  void release(std::int32_t item) override {
    const std::lock_guard lock(mutex_);
    released_.push_back(item);
  }
  bool goes_on(std::size_t) override { return !on_end || on_end(); }

  std::vector<Note> ran() const {
    const std::lock_guard lock(mutex_);
    return ran_;
  }
  std::vector<std::int32_t> released() const { return released_; }

 private:
  mutable std::mutex mutex_;
  std::vector<Note> ran_;
  std::vector<std::int32_t> released_;
};

std::vector<SchedulerDevice> devices(std::int32_t count) {
  std::vector<SchedulerDevice> list;
  for (std::int32_t d = 0; d < count; ++d) list.push_back({"d" + std::to_string(d), d, true});
  return list;
}

}  // namespace

TEST_CASE("segments follow one another, and first things come first", "[gnn][scheduler]") {
  // Items 0 and 1: a segment on device 0, then one that devices 0 and 1 share.
  std::vector<SchedulerTask> tasks;
  for (const std::int32_t item : {0, 1}) {
    tasks.push_back({item, 0, 0});
    tasks.push_back({item, 1, 0});
    tasks.push_back({item, 1, 1});
  }
  Notes notes;
  Scheduler scheduler({tasks, {}}, devices(2), notes);
  scheduler.run_layer(0);
  const auto& times = scheduler.tasks()[0];
  for (const std::size_t item : {0, 1}) {
    CHECK(times[3 * item + 1].start_ms >= times[3 * item].end_ms);
    CHECK(times[3 * item + 2].start_ms >= times[3 * item].end_ms);
  }
  CHECK(times[1].start_ms >= times[0].end_ms);
  CHECK(times[3].start_ms >= times[1].end_ms);  // device 0 in order of priority
  CHECK(notes.ran().size() == 6);
  CHECK(notes.released().size() == 2);
  CHECK(scheduler.moved_count() == 0);
  scheduler.run_layer(1);  // nothing to do
}

TEST_CASE("devices of one resource take turns", "[gnn][scheduler]") {
  std::vector<SchedulerTask> tasks;
  for (std::int32_t i = 0; i < 40; ++i) tasks.push_back({i, 0, i % 2});
  auto two = devices(2);
  two[1].resource = 0;
  Notes notes;
  std::atomic<int> inside = 0;
  std::atomic<int> most = 0;
  std::set<std::thread::id> threads;  // changing them would cost more than short tasks take
  notes.on_run = [&](std::size_t, std::int32_t) {
    most = std::max(most.load(), ++inside);
    threads.insert(std::this_thread::get_id());
    std::this_thread::yield();
    --inside;
  };
  Scheduler scheduler({tasks}, two, notes);
  scheduler.run_layer(0);
  CHECK(most == 1);
  CHECK(threads == std::set{std::this_thread::get_id()});
  CHECK(notes.ran().size() == 40);
  // The first device first, as the plan's simulation has it.
  for (std::size_t i = 0; i < 40; ++i) CHECK(notes.ran()[i].device == (i < 20 ? 0 : 1));
}

TEST_CASE("a device takes over from one of the same resource", "[gnn][scheduler]") {
  const std::vector<SchedulerTask> tasks{{0, 0, 0}, {0, 1, 1}, {1, 0, 0}, {1, 1, 1}};
  auto two = devices(2);
  two[1].resource = 0;
  Notes notes;
  notes.on_run = [](std::size_t, std::int32_t device) {
    if (device == 0) throw std::runtime_error("lost");
  };
  Scheduler scheduler({tasks}, two, notes);
  scheduler.run_layer(0);
  CHECK(scheduler.moved_count() == 2);
  CHECK(notes.ran().size() == 4);
  for (const SchedulerTask& task : scheduler.tasks()[0]) CHECK(task.device == 1);
}

TEST_CASE("a device that fails leaves its tasks to the next that can run them",
          "[gnn][scheduler]") {
  std::vector<std::vector<SchedulerTask>> layers(2);
  for (std::int32_t i = 0; i < 12; ++i) {
    layers[0].push_back({i, 0, i % 3});
    layers[1].push_back({i, 0, i % 3});
  }
  Notes notes;
  std::atomic<int> done = 0;
  notes.on_run = [&](std::size_t, std::int32_t device) {
    if (device == 1 && ++done > 2) throw std::runtime_error("lost");
  };
  notes.on_prepare = [](std::size_t, std::int32_t device) {
    if (device == 0) throw Error(ErrorCode::kUnsupported, "no scatter");
  };
  Scheduler scheduler(layers, devices(3), notes);
  scheduler.run_layer(0);
  scheduler.run_layer(1);
  CHECK(scheduler.failures() == std::vector<std::string>{"device 'd1' failed: lost"});
  CHECK(scheduler.moved_count() == 2 + 4);  // two of this layer, all four of the next
  CHECK(notes.ran().size() == 24);
  for (std::size_t t = 0; t < 12; ++t) {
    const SchedulerTask& task = scheduler.tasks()[1][t];
    CHECK(task.moved == (t % 3 == 1));
    CHECK(task.device == (t % 3 == 0 ? 0 : 2));
  }
}

TEST_CASE("a device that has failed elsewhere is not tried again", "[gnn][scheduler]") {
  const std::vector<SchedulerTask> tasks{{0, 0, 0}, {1, 0, 1}};
  Notes notes;
  notes.on_run = [](std::size_t, std::int32_t device) {
    if (device == 0) throw std::runtime_error("lost");
  };
  Scheduler first({tasks}, devices(2), notes);
  first.run_layer(0);
  Scheduler second({tasks}, devices(2), notes);
  second.leave_out(first.broken());
  second.run_layer(0);
  CHECK(second.failures().empty());
  CHECK(second.broken() == first.broken());
  CHECK(second.moved_count() == 1);
  CHECK(second.tasks()[0][0].device == 1);
  notes.on_prepare = [](std::size_t, std::int32_t) {
    throw Error(ErrorCode::kUnsupported, "no scatter");
  };
  Scheduler third({tasks}, devices(2), notes);
  third.leave_out(first.broken());
  CHECK_THROWS_WITH(third.run_layer(0),
                    Catch::Contains("device 'd0' failed: lost; no other device runs task 0"));
}

TEST_CASE("where no device has memory, that is the error", "[gnn][scheduler]") {
  const std::vector<SchedulerTask> tasks{{0, 0, 0}};
  const auto code_of = [&](const std::function<void()>& fail) {
    Notes notes;
    notes.on_run = [&](std::size_t, std::int32_t) { fail(); };
    Scheduler scheduler({tasks}, devices(1), notes);
    try {
      scheduler.run_layer(0);
    } catch (const Error& error) {
      return error.code();
    }
    return ErrorCode::kUsage;
  };
  CHECK(code_of([] { throw std::bad_alloc(); }) == ErrorCode::kInfeasible);
  CHECK(code_of([] { throw Error(ErrorCode::kInfeasible, "out of memory"); }) ==
        ErrorCode::kInfeasible);
  CHECK(code_of([] { throw std::runtime_error("lost"); }) == ErrorCode::kUnsupported);
}

TEST_CASE("where no device can take over, the error says what and why", "[gnn][scheduler]") {
  Notes notes;
  notes.on_run = [](std::size_t, std::int32_t device) {
    if (device == 0) throw std::runtime_error("lost");
  };
  notes.on_prepare = [](std::size_t, std::int32_t) {
    throw Error(ErrorCode::kUnsupported, "no scatter");
  };
  Scheduler scheduler({{{0, 0, 0}, {1, 0, 1}}}, devices(2), notes);
  try {
    scheduler.run_layer(0);
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kUnsupported);
    CHECK(error.message() ==
          "device 'd0' failed: lost; no other device runs task 0; d1: no scatter");
  }
}

TEST_CASE("others go on while a task is made ready for another device", "[gnn][scheduler]") {
  // Device 0 fails at once. Its task is only ready for device 1 when device 1 has run all of its
  // own: with the scheduler's lock held that would never be.
  std::vector<SchedulerTask> tasks{{0, 0, 0}};
  for (std::int32_t i = 1; i <= 5; ++i) tasks.push_back({i, 0, 1});
  Notes notes;
  std::atomic<int> others = 0;
  notes.on_run = [&](std::size_t task, std::int32_t device) {
    if (device == 0) throw std::runtime_error("lost");
    if (task != 0) ++others;
  };
  notes.on_prepare = [&](std::size_t, std::int32_t) {
    while (others < 5) std::this_thread::yield();
  };
  Scheduler scheduler({tasks}, devices(2), notes);
  scheduler.run_layer(0);
  CHECK(notes.ran().back().task == 0);
  CHECK(notes.ran().back().device == 1);
}

TEST_CASE("a device that fails while it is given tasks loses them again", "[gnn][scheduler]") {
  // Many rounds: devices 0 and 1 fail at about the same time, device 2 does everything.
  for (int round = 0; round < 50; ++round) {
    std::vector<SchedulerTask> tasks;
    for (std::int32_t i = 0; i < 9; ++i) tasks.push_back({i, 0, i % 3});
    Notes notes;
    notes.on_run = [](std::size_t, std::int32_t device) {
      if (device < 2) throw std::runtime_error("lost");
    };
    Scheduler scheduler({tasks}, devices(3), notes);
    scheduler.run_layer(0);
    CHECK(notes.ran().size() == 9);
    CHECK(scheduler.failures().size() == 2);
    for (const SchedulerTask& task : scheduler.tasks()[0]) CHECK(task.device == 2);
  }
}

TEST_CASE("a layer that is asked to stop ends with an error", "[gnn][scheduler]") {
  Notes notes;
  int ended = 0;
  notes.on_end = [&] { return ++ended < 2; };
  Scheduler scheduler({{{0, 0, 0}, {1, 0, 0}, {2, 0, 0}}}, devices(1), notes);
  try {
    scheduler.run_layer(0);
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(error.message() == "interrupted");
  }
  CHECK(notes.ran().size() == 2);
}
