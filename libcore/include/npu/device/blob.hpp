// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "npu/tensor/tensor.hpp"

namespace npu {

/// The bytes that compile made; the pointer shares ownership with memory or a mapped file.
struct Blob {
  std::shared_ptr<const std::byte> data;
  std::uint64_t size = 0;
};

/// Bytes that a model with one program takes of a memory.
struct MemoryBytes {
  std::uint64_t weights = 0;
  std::uint64_t scratch = 0;
  std::uint64_t boundary = 0;  ///< buffers of inputs and outputs
  std::uint64_t other = 0;
};

/// What a model takes, as its backend says.
struct MemoryReport {
  std::vector<MemoryBytes> memories;  ///< of the device
  std::uint64_t host = 0;             ///< of the host's memory, if that is none of them
  bool is_exact = false;
  bool is_bound = false;  ///< it takes no more; neither: an estimate
};

/// A named host tensor, as programs take their weights.
struct NamedTensor {
  std::string name;
  Tensor tensor;
};

/// Layouts of a backend by names of inputs and outputs of a sub-IR; what is not there is row-major.
using LayoutNames = std::map<std::string, std::string>;
}  // namespace npu
