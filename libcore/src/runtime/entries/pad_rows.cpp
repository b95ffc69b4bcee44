// SPDX-License-Identifier: Apache-2.0
// Puts tensors into larger shapes and takes them out again. What is added are copies of the last
// valid row: they are finite where that is, and ops that treat rows alike give copies again, which
// is what npu.padding (npu-ir(5)) is proved for. O(bytes of the larger shape).
#include "runtime/entries/pad_rows.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "npu/support/error.hpp"
#include "support/json_fields.hpp"

namespace npu {
namespace {

[[noreturn]] void refuse_shapes(const Tensor& tensor, const Shape& shape) {
  throw Error(ErrorCode::kInvalidGraph, "a tensor of shape " + shape_text(tensor.shape()) +
                                            " has no rows for the shape " + shape_text(shape));
}

/// Fills a tensor of another shape row by row of the last dimension: what lies beyond the source in
/// a dimension is its last row there.
Tensor clamped_copy(const Tensor& source, const Shape& shape) {
  Tensor result(source.dtype(), shape);
  if (result.bytes() == 0) return result;
  const std::size_t size = dtype_size(source.dtype());
  if (shape.empty()) {
    std::memcpy(result.mutable_data(), source.data(), size);
    return result;
  }
  const std::size_t last = shape.size() - 1;
  const auto row = static_cast<std::size_t>(shape[last]);
  const auto given = static_cast<std::size_t>(source.shape()[last]);
  const std::size_t common = std::min(row, given);
  Shape place(last, 0);
  std::byte* to = result.mutable_data();
  const std::byte* const end = to + result.bytes();
  while (to != end) {
    std::size_t index = 0;
    for (std::size_t d = 0; d < last; ++d) {
      const std::int64_t at = std::min(place[d], source.shape()[d] - 1);
      index = index * static_cast<std::size_t>(source.shape()[d]) + static_cast<std::size_t>(at);
    }
    const std::byte* from = source.data() + index * given * size;
    std::memcpy(to, from, common * size);
    for (std::size_t i = common; i < row; ++i) {
      std::memcpy(to + i * size, from + (given - 1) * size, size);
    }
    to += row * size;
    for (std::size_t d = last; d-- > 0;) {
      if (++place[d] < shape[d]) break;
      place[d] = 0;
    }
  }
  return result;
}

}  // namespace

std::optional<Tensor> valid_size(const TensorInfo& input, const SizeBindings& valid) {
  constexpr std::string_view kPrefix = "npu.n.";  // and a symbol
  if (!input.name.starts_with(kPrefix) || input.dtype != DType::kInt64 || !input.shape.empty()) {
    return std::nullopt;
  }
  const auto size = valid.find(std::string_view(input.name).substr(kPrefix.size()));
  if (size == valid.end()) return std::nullopt;
  Tensor tensor(DType::kInt64, {});
  *tensor.as_mutable<std::int64_t>() = size->second;
  return tensor;
}

std::string unproved_size(const Graph& entry, const SizeBindings& valid) {
  const Json* padding = entry.npu_member("padding");
  const Json* symbols = padding == nullptr ? nullptr : member_object(*padding, "symbols");
  for (const auto& [name, value] : valid) {
    const Json* symbol = symbols == nullptr ? nullptr : member_object(*symbols, name);
    const auto least = symbol == nullptr ? std::nullopt : member_integer(*symbol, "min");
    if (!least || value >= *least) continue;
    return name + " is " + std::to_string(value) + ", expected at least " + std::to_string(*least);
  }
  return {};
}

void check_proved(const Graph& entry, const SizeBindings& valid) {
  const std::string unproved = unproved_size(entry, valid);
  if (unproved.empty()) return;
  throw Error(ErrorCode::kInfeasible,
              "padding is not proved for these inputs: size " + unproved +
                  "; compile with a bucket of that size",
              {.file = entry.file});
}

Tensor padded_rows(const Tensor& tensor, const Shape& capacity) {
  if (tensor.shape() == capacity) return tensor;
  bool fits = tensor.shape().size() == capacity.size();
  for (std::size_t d = 0; fits && d < capacity.size(); ++d) {
    const std::int64_t rows = tensor.shape()[d];
    fits = rows <= capacity[d] && (rows > 0 || capacity[d] == 0);
  }
  if (!fits) refuse_shapes(tensor, capacity);
  return clamped_copy(tensor, capacity);
}

Tensor first_rows(const Tensor& tensor, const Shape& extents) {
  if (tensor.shape() == extents) return tensor;
  bool fits = tensor.shape().size() == extents.size();
  for (std::size_t d = 0; fits && d < extents.size(); ++d) {
    fits = extents[d] >= 0 && extents[d] <= tensor.shape()[d];
  }
  if (!fits) refuse_shapes(tensor, extents);
  return clamped_copy(tensor, extents);
}

}  // namespace npu
