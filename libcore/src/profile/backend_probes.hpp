// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "device/device_instance.hpp"

namespace npu {

/// What it costs to move a tensor.
struct CopyRate {
  double latency_us = 0;
  double bytes_per_s = 0;
};

/// Rates of a device as the calls of its backend show them. What cannot be measured, since the
/// device refuses every op that would, is not there.
struct DeviceRates {
  CopyRate write;                   ///< from the host
  CopyRate read;                    ///< to the host
  std::optional<double> launch_us;  ///< of a program, beyond its node
  std::optional<double> node_us;
  std::optional<double> memory_bandwidth;  ///< bytes per second
  std::map<DType, double> peak_flops;      ///< of products, or of additions if it has none
};

/// The dtypes that a device computes in, those with fractions first; float32 if it lists none.
std::vector<DType> arithmetic_dtypes(const DeviceFacts& facts);

/// Measures in about half a second, and as long for each of its dtypes that is among `dtypes`;
/// least times count, since other load on a machine can only add time. `tell` is called before each
/// measurement.
DeviceRates measure_device(const std::shared_ptr<DeviceInstance>& device,
                           const std::set<DType>& dtypes,
                           const std::function<void(const char*)>& tell);

/// A copy from one device to another of the same backend, if it makes any.
std::optional<CopyRate> measure_copy(const std::shared_ptr<DeviceInstance>& from,
                                     const std::shared_ptr<DeviceInstance>& to);

}  // namespace npu
