// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "device/device_instance.hpp"

namespace npu::gnn {

/// Buffers of a device that are used again by later tasks: memory that comes from the system costs
/// more to be mapped than to be written. Any thread may call.
class BufferPool {
 public:
  /// A buffer that nothing else refers to, of undefined content; it comes back when the caller and
  /// all views of it are gone.
  std::shared_ptr<DeviceBuffer> take(DeviceInstance& instance, DType dtype, const Shape& shape);
  /// How much of all that was given out is kept; buffers that are in use count and stay.
  void keep_at_most(std::uint64_t bytes);

 private:
  struct Kept {
    const DeviceInstance* instance;
    DType dtype;
    Shape shape;
    std::uint64_t bytes;
    std::shared_ptr<DeviceBuffer> buffer;
  };

  void drop_idle();

  std::mutex mutex_;
  std::vector<Kept> kept_;  // the ones that were taken last are at the end
  std::uint64_t bytes_ = 0;
  std::uint64_t most_bytes_ = std::uint64_t{1} << 30;
};

}  // namespace npu::gnn
