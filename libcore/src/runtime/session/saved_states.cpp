// SPDX-License-Identifier: Apache-2.0
// States in a file: a safetensors file with each by its name, bit for bit, and the position as one
// more tensor, whose name no state may have here.
#include "runtime/session/saved_states.hpp"

#include <string_view>
#include <utility>

#include "npu/support/error.hpp"
#include "npu/tensor/safetensors.hpp"

namespace npu {
namespace {

constexpr std::string_view kPosition = "npu.position";

}  // namespace

SavedStates read_saved_states(const std::string& path) {
  const SafetensorsFile file(path);
  SavedStates saved;
  bool has_position = false;
  for (const SafetensorsEntry& entry : file.entries()) {
    const Tensor tensor = file.tensor(entry);
    if (entry.name != kPosition) {
      saved.values.push_back({entry.name, tensor});
      continue;
    }
    has_position = tensor.dtype() == DType::kInt64 && tensor.element_count() == 1 &&
                   tensor.as<std::int64_t>()[0] >= 0;
    if (has_position) saved.position = tensor.as<std::int64_t>()[0];
  }
  if (!has_position) {
    throw Error(ErrorCode::kParse,
                "expected an int64 'npu.position' of at least 0: this is no file of --state-out",
                {.file = path});
  }
  return saved;
}

void write_saved_states(const std::string& path, const SavedStates& saved) {
  std::vector<std::pair<std::string, Tensor>> tensors;
  for (const NamedTensor& state : saved.values) {
    if (state.name == kPosition) {
      throw Error(ErrorCode::kUnsupported, "a state named 'npu.position' cannot be saved",
                  {.file = path});
    }
    tensors.emplace_back(state.name, state.tensor);
  }
  Tensor position(DType::kInt64, {1});
  *position.as_mutable<std::int64_t>() = saved.position;
  tensors.emplace_back(kPosition, position);
  write_safetensors(path, tensors);
}

}  // namespace npu
