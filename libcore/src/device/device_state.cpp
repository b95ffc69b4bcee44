// SPDX-License-Identifier: Apache-2.0
// Buffers that outlive a run. Nothing is copied here: a state that is not written in place costs a
// second buffer, and which of the two it is in changes with each run.
#include "device/device_state.hpp"

#include <utility>

namespace npu {

DeviceState::DeviceState(std::shared_ptr<DeviceInstance> device, DType dtype, Shape shape)
    : device_(std::move(device)),
      dtype_(dtype),
      shape_(std::move(shape)),
      now_(device_->allocate(dtype_, shape_, NPU_USAGE_STATE)) {
  clear();
}

const std::shared_ptr<DeviceBuffer>& DeviceState::next_buffer() {
  if (next_ == nullptr) next_ = device_->allocate(dtype_, shape_, NPU_USAGE_STATE);
  return next_;
}

void DeviceState::clear() const { set_value(Tensor(dtype_, shape_)); }

}  // namespace npu
