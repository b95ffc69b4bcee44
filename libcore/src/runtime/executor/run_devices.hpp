// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "device/device_instance.hpp"
#include "npu/compile/compiler.hpp"
#include "npu/partition/partition_plan.hpp"
#include "npu/runtime/executor.hpp"
#include "npu/target/target.hpp"

namespace npu {

/// The devices that a plan runs on, open, by number: in the order of their first partitions.
class RunDevices {
 public:
  /// Takes those that are among `open`, and opens the others. Throws Error kUnsupported for one
  /// without a backend, or that does not take as many runs at once as the options say.
  RunDevices(const PartitionPlan& plan, const Target& target, const ExecutorOptions& options,
             const OpenDevices& open);

  std::size_t size() const noexcept { return instances_.size(); }
  DeviceInstance& operator[](std::size_t number) const { return *instances_[number]; }
  const std::shared_ptr<DeviceInstance>& instance(std::size_t number) const {
    return instances_[number];
  }
  const std::string& name(std::size_t number) const { return names_[number]; }
  bool contains(const std::string& name) const { return numbers_.contains(name); }
  /// Of a device of the plan.
  std::size_t number_of(const std::string& name) const { return numbers_.at(name); }
  OpenDevices by_name() const;

  /// Whether work is submitted to it.
  bool has_queue(std::size_t number) const { return has_queue_[number] != 0; }
  /// Whether work of one device can wait for work of the other.
  bool shares_events(std::size_t a, std::size_t b) const;
  /// Whether the content of a buffer can go from one device to another without the host.
  bool copies_directly(std::size_t from, std::size_t to) const;
  /// Whether a thread that submits never has to wait.
  bool submits_all() const;

 private:
  void check_in_flight(std::int32_t wanted) const;

  std::vector<std::string> names_;
  std::vector<std::shared_ptr<DeviceInstance>> instances_;
  std::vector<char> has_queue_;
  std::map<std::string, std::size_t> numbers_;
};

}  // namespace npu
