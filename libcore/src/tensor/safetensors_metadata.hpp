// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "npu/tensor/tensor.hpp"

namespace npu {

/// Texts by key, in the member `__metadata__` of a safetensors header.
using SafetensorsMetadata = std::vector<std::pair<std::string, std::string>>;

/// write_safetensors with metadata.
void write_safetensors_with(const SafetensorsMetadata& metadata, const std::string& path,
                            const std::vector<std::pair<std::string, Tensor>>& tensors);

/// What a file says under a key; empty if it does not. Throws Error as SafetensorsFile does.
std::string safetensors_metadata(const std::string& path, std::string_view key);

}  // namespace npu
