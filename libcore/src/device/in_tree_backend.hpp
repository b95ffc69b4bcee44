// SPDX-License-Identifier: Apache-2.0
// What the boundaries of this repository's own backends share: both are a CPU, and throw errors of
// this library.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <vector>

#include "npu/backend.h"
#include "npu/support/error.hpp"
#include "npu/tensor/dtype.hpp"

namespace npu {

/// What an error of libcore is at the boundary.
inline npu4_status status_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::kUnsupported:
      return NPU4_UNSUPPORTED;
    case ErrorCode::kInfeasible:  // of libcore's tensors: there is no memory for one
      return NPU4_MEMORY;
    case ErrorCode::kFailed:
      return NPU4_FAILED;
    default:
      return NPU4_INVALID;
  }
}

/// Fills as much of an out struct as its owner has room for.
template <typename Out>
void fill(Out* out, Out value) {
  value.struct_size = std::min<std::uint64_t>(out->struct_size, sizeof value);
  std::memcpy(out, &value, static_cast<std::size_t>(value.struct_size));
}

/// Host memory, in which everything lies; pointers with this alignment can be wrapped.
inline npu4_memory_info host_memory_info(std::uint64_t alignment) {
  npu4_memory_info made{};
  made.struct_size = sizeof made;
  made.name = "host";
  made.kind = NPU4_MEMORY_SHARED;
  made.flags = NPU4_HOST_MAPPABLE | NPU4_HOST_COHERENT | NPU4_WRAPS_HOST_POINTER;
  made.known = NPU4_KNOWN_ALIGNMENT;
  made.alignment = alignment;
  return made;
}

/// Every dtype of this library: all can be stored, and `computes` says in which ones the device
/// computes. An object of it lives as long as the process.
class DTypeInfos {
 public:
  explicit DTypeInfos(bool (*computes)(npu4_dtype)) {
    for (std::uint32_t i = 0; i < infos_.size(); ++i) {
      infos_[i].struct_size = sizeof infos_[i];
      infos_[i].dtype = i;
      infos_[i].flags = NPU4_DTYPE_STORAGE | (computes(i) ? NPU4_DTYPE_ARITHMETIC : 0);
      pointers_.push_back(&infos_[i]);
    }
  }
  DTypeInfos(const DTypeInfos&) = delete;
  DTypeInfos& operator=(const DTypeInfos&) = delete;

  const npu4_dtype_info* const* data() const noexcept { return pointers_.data(); }
  std::uint64_t size() const noexcept { return pointers_.size(); }

 private:
  std::array<npu4_dtype_info, kDTypeCount> infos_{};
  std::vector<const npu4_dtype_info*> pointers_;
};

}  // namespace npu
