// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "device/device_buffer.hpp"
#include "device/device_instance.hpp"
#include "npu/tensor/tensor.hpp"

namespace npu {

/// A tensor that stays on a device from one run to the next, which reads it as an input and gives
/// its next value as an output: into the same buffer, with the feature "alias" and a sub-IR that
/// pairs the two in its "aliases", or into a second one that takes turns with it.
class DeviceState {
 public:
  /// Its first value is zero.
  DeviceState(std::shared_ptr<DeviceInstance> device, DType dtype, Shape shape);

  const std::shared_ptr<DeviceInstance>& device() const noexcept { return device_; }
  DType dtype() const noexcept { return dtype_; }
  const Shape& shape() const noexcept { return shape_; }
  /// Of its value; it may have a second buffer.
  std::int64_t bytes() const noexcept { return static_cast<std::int64_t>(now_->bytes()); }
  std::int64_t held_bytes() const noexcept { return next_ == nullptr ? bytes() : 2 * bytes(); }

  /// What a run reads, and writes, if it does so in place.
  const std::shared_ptr<DeviceBuffer>& buffer() const noexcept { return now_; }
  /// What it writes otherwise; there is none before somebody asks for it.
  const std::shared_ptr<DeviceBuffer>& next_buffer();
  /// Once a run has written the next buffer.
  void advance() noexcept { std::swap(now_, next_); }

  Tensor value() const { return now_->to_host(); }
  /// Of the same dtype and shape.
  void set_value(const Tensor& value) const { now_->write(value.data()); }
  void clear() const;

 private:
  std::shared_ptr<DeviceInstance> device_;
  DType dtype_;
  Shape shape_;
  std::shared_ptr<DeviceBuffer> now_;
  std::shared_ptr<DeviceBuffer> next_;
};

}  // namespace npu
