// SPDX-License-Identifier: Apache-2.0
// What an encoder reads, from files: features of a sound, or ids of a text. A tensor with one more
// dimension holds the sources of several requests behind each other, as inputs of several steps do.
// O(bytes).
#include "runtime/generate/source_tensors.hpp"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "npu/support/error.hpp"
#include "npu/tensor/safetensors.hpp"
#include "support/text.hpp"
#include "tensor/npy.hpp"
#include "tensor/onnx_tensor.hpp"

namespace npu {
namespace {

/// The tensor of a file for the input; nothing if it has none.
std::optional<Tensor> tensor_in(const InputFile& file, const SourceInput& input) {
  if (file.input && *file.input != input.name) return std::nullopt;
  if (file.path.ends_with(".npy")) return read_npy(file.path, &input.dtype);
  if (file.path.ends_with(".pb")) return read_onnx_tensor(file.path);
  const SafetensorsFile tensors(file.path);
  const SafetensorsEntry* entry = tensors.find(input.name);
  return entry == nullptr ? std::nullopt : std::optional(tensors.tensor(*entry));
}

/// The parts of a tensor, which is `count` tensors of a shape, each where devices can use it; in a
/// file it may lie anywhere.
std::vector<Tensor> parts_of(const Tensor& stack, const Shape& shape, std::int64_t count) {
  std::vector<Tensor> parts;
  for (std::int64_t i = 0; i < count; ++i) {
    Tensor& part = parts.emplace_back(stack.dtype(), shape);
    if (part.bytes() == 0) continue;
    const auto begin = static_cast<std::size_t>(i) * part.bytes();
    std::memcpy(part.mutable_data(), stack.data() + begin, part.bytes());
  }
  return parts;
}

}  // namespace

std::vector<Tensor> read_sources(const std::vector<InputFile>& files, const SourceInput& input) {
  std::optional<Tensor> found;
  std::string path;
  for (const InputFile& file : files) {
    auto tensor = tensor_in(file, input);
    if (!tensor) {
      throw Error(ErrorCode::kUsage,
                  "--inputs has no source: the encoder reads the input '" + input.name + "'",
                  {.file = file.path});
    }
    if (found) {
      throw Error(ErrorCode::kUsage, "--inputs gives '" + input.name + "' twice",
                  {.file = file.path});
    }
    found = std::move(tensor);
    path = file.path;
  }
  if (!found) return {};
  const std::size_t rank = input.shape.size();
  const std::size_t given = found->shape().size();
  if (found->dtype() != input.dtype || (given != rank && given != rank + 1)) {
    throw Error(ErrorCode::kInvalidGraph,
                "the source '" + input.name + "' is " + std::string(dtype_name(found->dtype())) +
                    " " + shape_text(found->shape()) + ", expected " +
                    std::string(dtype_name(input.dtype)) + " " + shape_text(input.shape) +
                    " or one more dimension in front, for several requests",
                {.file = path});
  }
  const Shape& shape = found->shape();
  if (given == rank) return parts_of(*found, shape, 1);
  return parts_of(*found, {shape.begin() + 1, shape.end()}, shape.front());
}

Tensor source_of_ids(const std::vector<std::int64_t>& ids) {
  Tensor tensor(DType::kInt64, {1, static_cast<std::int64_t>(ids.size())});
  std::copy(ids.begin(), ids.end(), tensor.as_mutable<std::int64_t>());
  return tensor;
}

}  // namespace npu
