// SPDX-License-Identifier: Apache-2.0
// States on their way to another process: a tensor for each, by its name, and the number of steps
// in the metadata. O(bytes).
#include "runtime/session/state_file.hpp"

#include <charconv>

#include "npu/support/error.hpp"
#include "npu/tensor/safetensors.hpp"
#include "support/text.hpp"
#include "tensor/safetensors_metadata.hpp"

namespace npu {

constexpr const char* kPosition = "position";

StateFile read_state_file(const std::string& path) {
  const SafetensorsFile file(path);
  StateFile read;
  for (const SafetensorsEntry& entry : file.entries()) {
    read.values.push_back({entry.name, file.tensor(entry)});
  }
  const std::string text = safetensors_metadata(path, kPosition);
  if (text.empty()) return read;
  const char* const end = text.data() + text.size();
  const auto [rest, fault] = std::from_chars(text.data(), end, read.position);
  if (fault != std::errc() || rest != end || read.position < 0) {
    throw Error(ErrorCode::kParse,
                "metadata 'position': expected a number of steps, found '" + short_text(text) + "'",
                {.file = path});
  }
  return read;
}

void write_state_file(const std::string& path, const StateFile& file) {
  std::vector<std::pair<std::string, Tensor>> tensors;
  for (const NamedTensor& value : file.values) tensors.emplace_back(value.name, value.tensor);
  write_safetensors_with({{kPosition, std::to_string(file.position)}}, path, tensors);
}

}  // namespace npu
