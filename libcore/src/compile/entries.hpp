// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "device/device_instance.hpp"

namespace npu {

/// Programs of several entries on one device. With a backend that has the feature "entries" they
/// are one blob and one model, whose weights are there once; without it each entry is a model of
/// its own, and weights are shared as far as the backend can.
class EntryPrograms {
 public:
  /// Compiles and loads. Throws Error kUsage if two entries have one name, or there is none, and
  /// BackendError.
  EntryPrograms(const std::shared_ptr<DeviceInstance>& device, std::vector<ModelEntry> entries,
                const std::vector<NamedTensor>& weights, const std::string& options = "{}");

  /// Throws Error kUsage if there is no such entry.
  DeviceProgram& program(std::string_view name) const;
  /// Models that hold weights on the device: one, or one for each entry.
  std::size_t models() const noexcept { return models_; }

 private:
  std::vector<std::pair<std::string, std::unique_ptr<DeviceProgram>>> programs_;
  std::size_t models_ = 0;
};

}  // namespace npu
