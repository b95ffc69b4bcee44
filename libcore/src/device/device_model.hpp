// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "npu/backend.h"
#include "npu/device/blob.hpp"

namespace npu {

class DeviceInstance;

/// Weights on a device, for any number of its models. Keeps them alive.
class DeviceWeights {
 public:
  DeviceWeights(std::shared_ptr<DeviceInstance> device, std::vector<NamedTensor> tensors);
  ~DeviceWeights();
  DeviceWeights(const DeviceWeights&) = delete;
  DeviceWeights& operator=(const DeviceWeights&) = delete;
  npu_weights* get() const noexcept { return weights_; }

 private:
  std::shared_ptr<DeviceInstance> device_;
  std::vector<NamedTensor> tensors_;  // empty if the device has copies
  npu_weights* weights_ = nullptr;
};

/// A loaded blob. Keeps its device open and, as long as the device uses them in place, the blob and
/// the weights alive.
class DeviceModel {
 public:
  DeviceModel(std::shared_ptr<DeviceInstance> device, Blob blob, std::vector<NamedTensor> weights,
              std::vector<std::shared_ptr<DeviceWeights>> shared);
  ~DeviceModel();
  DeviceModel(const DeviceModel&) = delete;
  DeviceModel& operator=(const DeviceModel&) = delete;
  npu_model* get() const noexcept { return model_; }
  const std::shared_ptr<DeviceInstance>& device() const noexcept { return device_; }
  /// Whether the host still holds it for the device.
  bool keeps_blob() const noexcept { return blob_.data != nullptr; }
  /// Nothing if the backend does not say.
  std::optional<MemoryReport> memory() const;

 private:
  std::shared_ptr<DeviceInstance> device_;
  Blob blob_;
  std::vector<NamedTensor> weights_;
  std::vector<std::shared_ptr<DeviceWeights>> shared_;
  npu_model* model_ = nullptr;
};

}  // namespace npu
