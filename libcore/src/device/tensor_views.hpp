// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "device/device_call.hpp"
#include "npu/device/blob.hpp"

namespace npu {

/// Host tensors as an array of pointers, as calls take them. Valid as long as the tensors are.
struct TensorViews {
  explicit TensorViews(const std::vector<NamedTensor>& tensors) {
    views.reserve(tensors.size());
    for (const NamedTensor& named : tensors) {
      npu_tensor view = sized<npu_tensor>();
      view.name = named.name.c_str();
      view.dtype = static_cast<npu_dtype>(named.tensor.dtype());
      view.rank = static_cast<std::uint32_t>(named.tensor.shape().size());
      view.shape = named.tensor.shape().data();
      view.data = named.tensor.data();
      view.bytes = named.tensor.bytes();
      views.push_back(view);
    }
    for (const npu_tensor& view : views) pointers.push_back(&view);
  }
  std::vector<npu_tensor> views;
  std::vector<const npu_tensor*> pointers;
};

}  // namespace npu
