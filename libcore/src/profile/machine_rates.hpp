// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "npu/target/target.hpp"
#include "profile/machine_probes.hpp"
#include "profile/profile_machine.hpp"

namespace npu {

/// The times of a probe's models, and the additional work of the longer one.
struct ProbeTime {
  double longer_us = 0;
  double shorter_us = 0;
  double spread = 0;  ///< see MachineRate
  double nodes = 0;
  double flops = 0;
  double bytes = 0;
};

/// The option of a backend (npu-onednn(7)) that takes it.
inline constexpr const char* kBFloat16RateOption = "bfloat16_rate";

/// Rounds to three significant digits; more would overstate the precision of a measurement.
double rounded(double value);

/// Microseconds of the work of one node beyond `node_overhead_us`. At least a hundredth of the
/// longer model's time per node: the cost of an epilogue may be lost in the noise, and a negative
/// difference is noise.
double work_us(const ProbeTime& time, double node_overhead_us);

/// Writes rates to a device of a target and lists them for the report. Node overhead comes first:
/// the other rates are for the work beyond it.
class RateWriter {
 public:
  RateWriter(std::string device, Json& json, std::vector<MachineRate>& rates)
      : device_(std::move(device)), json_(json), rates_(rates) {}

  void node_overhead(const ProbeTime& time, double before);
  /// `partition_us`: of a partition with one node.
  void launch_overhead(double partition_us, double before);
  void memory(const ProbeTime& time, double before);
  /// By the dtypes that the device has rates for. One that `measured` does
  /// not know keeps its ratio to float32.
  void peak_flops(const Device& device,
                  const std::function<std::optional<ProbeTime>(const std::string&)>& measured);
  /// The option of a backend that computes in bfloat16 where that is faster: by products of which
  /// `floats` are of float32.
  void bfloat16_rate(const ProbeTime& floats, const ProbeTime& narrow);
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
