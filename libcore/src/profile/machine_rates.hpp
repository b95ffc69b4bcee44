// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "npu/profile/profile_machine.hpp"
#include "npu/target/target.hpp"
#include "profile/machine_probes.hpp"

namespace npu {

/// How long the models of a probe took, and what the longer one does more.
struct ProbeTime {
  double longer_us = 0;
  double shorter_us = 0;
  double spread = 0;  ///< see MachineRate
  double nodes = 0;
  double flops = 0;
  double bytes = 0;
};

/// Three significant digits: more would promise what no measurement keeps.
double rounded(double value);

/// Microseconds of the work of one node beyond `node_overhead_us`. At least a hundredth of the
/// longer model's time by node: what an epilogue costs may be lost in the noise, and a difference
/// below zero is noise.
double work_us(const ProbeTime& time, double node_overhead_us);

/// Puts rates into a device of a target and lists them for the report. Node overhead first: the
/// other rates are of what lies above it.
class RateWriter {
 public:
  RateWriter(std::string device, Json& json, std::vector<MachineRate>& rates)
      : device_(std::move(device)), json_(json), rates_(rates) {}

  void node_overhead(const ProbeTime& time, double before);
  /// `partition_us`: of a partition with one node.
  void launch_overhead(double partition_us, double before);
  void memory(const ProbeTime& time, double before);
  /// By the dtypes that the device has rates for. One that `measured` does not know keeps its ratio
  /// to float32.
  void peak_flops(const Device& device,
                  const std::function<std::optional<ProbeTime>(const std::string&)>& measured);
  /// An element of `op_rates`.
  Json op_rate(const MachineProbe& probe, const ProbeTime& time);

 private:
  void add(const std::string& what, const char* unit, double before, double measured,
           double spread);

  std::string device_;
  Json& json_;
  std::vector<MachineRate>& rates_;
  double node_overhead_us_ = 0;
};

}  // namespace npu
