// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "npu/device/blob.hpp"

namespace npu {

/// The states of a model after some steps, as --state-out writes them.
struct StateFile {
  std::vector<NamedTensor> values;
  std::int64_t position = 0;  ///< steps that led there
};

/// Reads a safetensors file; one that states no position is at 0. Throws Error kIo or kParse.
StateFile read_state_file(const std::string& path);

/// Writes it, whole or not at all. Throws Error kIo.
void write_state_file(const std::string& path, const StateFile& file);

}  // namespace npu
