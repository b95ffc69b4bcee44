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

/// A tensor that stays on a device from one run to the next, which reads it as an input and gives
/// its next value as an output. One buffer for both with the feature "alias", for a sub-IR that
/// pairs them in its "aliases"; two that take turns without it.
class DeviceState {
 public:
  /// `begin` is its first value.
  DeviceState(const std::shared_ptr<DeviceInstance>& device, const Tensor& begin);

  npu_buffer* input() const noexcept { return buffers_.front()->get(); }
  npu_buffer* output() const noexcept { return buffers_.back()->get(); }
  bool is_in_place() const noexcept { return buffers_.size() == 1; }
  /// Once a run has written the output.
  void advance() noexcept { std::swap(buffers_.front(), buffers_.back()); }
  Tensor value() const { return buffers_.front()->to_host(); }
  void set_value(const Tensor& value) const { buffers_.front()->write(value.data()); }

 private:
  std::vector<std::shared_ptr<DeviceBuffer>> buffers_;  // that it is in, and that it goes to
};

}  // namespace npu
