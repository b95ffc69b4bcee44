// SPDX-License-Identifier: Apache-2.0
// Weights and loaded blobs: each keeps what the device uses in place alive, and is freed once, in
// the order that npu/backend.h states.
#include "device/device_model.hpp"

#include <utility>

#include "device/blob_memory.hpp"
#include "device/device_call.hpp"
#include "device/device_instance.hpp"
#include "device/tensor_views.hpp"
#include "npu/support/log.hpp"

namespace npu {
namespace {

/// Throws if nothing can be loaded, since the device is elsewhere.
void require_present(const DeviceInstance& device) {
  if (!device.facts().is_absent) return;
  throw BackendError(NPU_UNSUPPORTED, "backend '" + device.backend().name() +
                                          "' has no usable device of arch '" + device.facts().arch +
                                          "' here: it compiles for one, and runs nothing");
}

}  // namespace

DeviceWeights::DeviceWeights(std::shared_ptr<DeviceInstance> device,
                             std::vector<NamedTensor> tensors)
    : device_(std::move(device)), tensors_(std::move(tensors)) {
  require_present(*device_);
  const Backend& backend = device_->backend();
  const TensorViews views(tensors_);
  npu_model_info info = sized<npu_model_info>();
  call_patiently(backend, [&](npu_error& error) {
    return backend.api().weights_load(device_->get(), views.pointers.data(), views.pointers.size(),
                                      &info, &weights_, &error);
  });
  if (weights_ == nullptr) {
    break_contract(backend, "weights_load", "it says that it loaded weights, but gave none");
  }
  if ((info.flags & NPU_RELEASES_WEIGHTS) != 0) tensors_.clear();
}

DeviceWeights::~DeviceWeights() { device_->backend().api().weights_free(weights_); }

DeviceModel::DeviceModel(std::shared_ptr<DeviceInstance> device, Blob blob,
                         std::vector<NamedTensor> weights,
                         std::vector<std::shared_ptr<DeviceWeights>> shared)
    : device_(std::move(device)),
      blob_(std::move(blob)),
      weights_(std::move(weights)),
      shared_(std::move(shared)) {
  const Backend& backend = device_->backend();
  require_present(*device_);
  const TensorViews views(weights_);
  std::vector<npu_weights*> handles;
  for (const auto& weights_of_device : shared_) handles.push_back(weights_of_device->get());
  npu_load_args args = sized<npu_load_args>();
  args.blob = blob_.data.get();
  args.blob_size = blob_.size;
  args.weights = views.pointers.data();
  args.weight_count = views.pointers.size();
  args.shared = handles.data();
  args.shared_count = handles.size();
  npu_model_info info = sized<npu_model_info>();
  call_patiently(backend, [&](npu_error& error) {
    return backend.api().model_load(device_->get(), &args, &info, &model_, &error);
  });
  if (model_ == nullptr) {
    break_contract(backend, "model_load", "it says that it loaded a blob, but gave no model");
  }
  // What the device has copies of need not be held twice.
  if ((info.flags & NPU_RELEASES_BLOB) != 0) blob_ = {};
  if ((info.flags & NPU_RELEASES_WEIGHTS) != 0) weights_.clear();
}

DeviceModel::~DeviceModel() { device_->backend().api().model_free(model_); }

}  // namespace npu
