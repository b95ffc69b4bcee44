// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "npu/device/blob.hpp"

namespace npu {

/// What a model remembers, between two processes.
struct SavedStates {
  std::vector<NamedTensor> values;  ///< by the names of states
  std::int64_t position = 0;        ///< steps that led there; of a decoder, behind the last id
};

/// Reads a safetensors file that write_saved_states has written. Throws Error kIo, kParse.
SavedStates read_saved_states(const std::string& path);

/// Writes it, whole or not at all.
void write_saved_states(const std::string& path, const SavedStates& saved);

}  // namespace npu
