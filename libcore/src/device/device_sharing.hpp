// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "npu/device/queue.hpp"

namespace npu {

/// Whether a device takes memory of the other, which is one of another backend, as a dma-buf.
bool shares_memory(const DeviceInstance& from, const DeviceInstance& to);

/// A buffer of `to` in the memory of `source`, which it keeps and only reads. Null if that cannot
/// be. Throws BackendError.
std::shared_ptr<DeviceBuffer> share_buffer(const std::shared_ptr<DeviceBuffer>& source,
                                           DeviceInstance& to);

/// An event of `to` that is done when `event`, which is one of another backend, is. Null if one of
/// them has no such events. Throws BackendError.
std::shared_ptr<DeviceEvent> share_event(const DeviceEvent& event,
                                         const std::shared_ptr<DeviceInstance>& to);

}  // namespace npu
