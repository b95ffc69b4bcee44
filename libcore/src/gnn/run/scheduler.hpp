// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "support/thread_pool.hpp"

namespace npu::gnn {

/// What the scheduler has to know of a task.
struct SchedulerTask {
  std::int32_t item = 0;    ///< the tasks of an item follow one another, segment by segment
  std::size_t segment = 0;  ///< starts when all tasks of the segment before have ended
  std::int32_t device = 0;  ///< where it runs; changes if that device fails
  bool moved = false;       ///< runs on another device than at first
  double start_ms = 0;      ///< since the run began
  double end_ms = 0;
};

struct SchedulerDevice {
  std::string name;
  std::int32_t resource = 0;  ///< devices that share one take turns
  bool present = true;        ///< can be given tasks
};

/// What the scheduler's tasks do. Calls for devices of different resources come at the same time,
/// from different threads; what is called under the scheduler's lock says so.
class TaskRunner {
 public:
  virtual ~TaskRunner() = default;
  /// Computes the task on its device. Throws if the device fails.
  virtual void run(std::size_t layer, std::size_t task, std::int32_t device) = 0;
  /// Makes the task ready to run on a device, which may take long. Throws Error if it cannot.
  virtual void prepare(std::size_t layer, std::size_t task, std::int32_t device) = 0;
  /// "stages 1-4", for messages.
  virtual std::string name_of(std::size_t layer, std::size_t task) const = 0;
  /// All tasks of the item in this layer have ended.
  virtual void release(std::int32_t item) = 0;
  /// A task has ended. Returns false to stop. Under the lock: calls never overlap.
  virtual bool goes_on(std::size_t layer) = 0;
};

/// Runs the layers of a task graph, one worker a resource. A worker takes the first task of the
/// first of its devices that has one whose item has come so far; a device that fails loses its
/// tasks to others that can run them.
class Scheduler {
 public:
  /// `tasks` by layer, in order of priority. `runner` outlives the scheduler.
  Scheduler(std::vector<std::vector<SchedulerTask>> tasks, std::vector<SchedulerDevice> devices,
            TaskRunner& runner);

  /// Devices that have failed before, with what went wrong, are given nothing.
  void leave_out(const std::map<std::int32_t, std::string>& broken) { broken_ = broken; }
  /// Starts the clock of the times of tasks.
  void start();
  std::chrono::steady_clock::time_point started() const noexcept { return start_; }
  /// Runs all tasks of a layer. Throws Error kUnsupported if no device is left that can run one,
  /// kInfeasible if the last one had no memory for it, and Error kIo "interrupted" if the runner
  /// asks to stop.
  void run_layer(std::size_t layer);

  const std::vector<std::vector<SchedulerTask>>& tasks() const noexcept { return tasks_; }
  /// "device 'npu' failed: ...", in order.
  const std::vector<std::string>& failures() const noexcept { return failures_; }
  /// The same by device, with those that were left out.
  const std::map<std::int32_t, std::string>& broken() const noexcept { return broken_; }
  /// Tasks that were given to another device.
  std::int32_t moved_count() const noexcept { return moved_count_; }

 private:
  enum class State : std::uint8_t { kWaiting, kRunning, kMoving, kDone };
  struct Item {
    std::vector<std::int32_t> open;  // tasks by segment
    bool is_done() const noexcept;
  };
  struct Place {
    std::size_t layer = 0;
    std::size_t task = 0;
  };

  double now_ms() const;
  bool is_over() const noexcept { return left_ == 0 || interrupted_ || !fatal_.text.empty(); }
  std::size_t next_task(std::int32_t device) const;
  void work(std::int32_t resource);
  struct Failure {
    std::string text;  // empty: there is none
    bool is_memory = false;
  };
  Failure run_task(std::size_t task, std::int32_t device);
  bool finish_task(std::size_t task);
  std::vector<Place> take_tasks_of(std::int32_t device, const std::string& failure);
  void give_to_others(const std::vector<Place>& places, const Failure& failure);
  bool give_to(const Place& place, std::int32_t device, std::string& reasons);

  std::vector<std::vector<SchedulerTask>> tasks_;
  std::vector<SchedulerDevice> devices_;
  TaskRunner& runner_;
  ThreadPool workers_;
  std::chrono::steady_clock::time_point start_;

  std::mutex mutex_;  // of everything below, and of SchedulerTask::device and ::moved
  std::condition_variable changed_;
  std::size_t layer_ = 0;
  std::vector<State> states_;  // by task of the layer
  std::map<std::int32_t, Item> items_;
  std::size_t left_ = 0;
  std::map<std::int32_t, std::string> broken_;  // devices, with what went wrong
  std::vector<std::string> failures_;
  std::set<std::int32_t> exhausted_;  // broken devices that had too little memory
  Failure fatal_;
  std::int32_t moved_count_ = 0;
  bool interrupted_ = false;
};

}  // namespace npu::gnn
