// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "device/device_call.hpp"
#include "device/device_program.hpp"

namespace npu {

/// The taps of a run as an array of pointers. Valid as long as names and buffers are, which are as
/// many.
struct TapViews {
  TapViews(const std::vector<TapType>& taps,
           std::span<const std::shared_ptr<DeviceBuffer>> buffers) {
    views.reserve(buffers.size());
    for (std::size_t i = 0; i < buffers.size(); ++i) {
      npu_tap view = sized<npu_tap>();
      view.name = taps[i].name.c_str();
      view.buffer = buffers[i]->get();
      views.push_back(view);
    }
    for (const npu_tap& view : views) pointers.push_back(&view);
  }
  void put(npu_run_args& args) const {
    args.taps = pointers.data();
    args.tap_count = pointers.size();
  }
  std::vector<npu_tap> views;
  std::vector<const npu_tap*> pointers;
};

}  // namespace npu
