// SPDX-License-Identifier: Apache-2.0
// Where tensors lie in scratch memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace npu::opencl {

/// Scratch memory for tensors that live from one launch to another: offsets, so that no two that
/// live at once overlap.
struct ScratchTensor {
  std::uint64_t bytes = 0;
  std::size_t first = 0;  ///< launches that write and last read it
  std::size_t last = 0;
  std::uint64_t offset = 0;  ///< filled
};
/// Returns the bytes that are needed.
std::uint64_t plan_scratch(std::vector<ScratchTensor>& tensors);

}  // namespace npu::opencl
