// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace npu {

/// Element types of the IR. The values are those of npu_dtype in npu/backend.h.
enum class DType : std::uint8_t {
  kFloat32 = 0,
  kFloat64 = 1,
  kFloat16 = 2,
  kBFloat16 = 3,
  kInt8 = 4,
  kUInt8 = 5,
  kInt16 = 6,
  kInt32 = 7,
  kInt64 = 8,
  kBool = 9,
  kComplex64 = 10,
  kComplex128 = 11,
};
inline constexpr int kDTypeCount = 12;

/// Bytes of one element.
std::size_t dtype_size(DType dtype) noexcept;
/// "float32", as the IR writes it.
std::string_view dtype_name(DType dtype) noexcept;
/// Inverse of dtype_name; also takes PyTorch's "torch.float32". Nothing for an unknown name.
std::optional<DType> parse_dtype(std::string_view name) noexcept;
/// float32, float64, float16 or bfloat16.
bool is_floating_point(DType dtype) noexcept;
/// True for integer types; bool is not one of them.
bool is_integer(DType dtype) noexcept;

/// int8 or uint8.
constexpr bool is_byte(DType dtype) noexcept {
  return dtype == DType::kInt8 || dtype == DType::kUInt8;
}

struct IntegerRange {
  std::int64_t least = 0;
  std::int64_t most = 0;
  bool operator==(const IntegerRange&) const = default;
};
/// What uint8 and signed integers of up to 32 bits hold; [0, 0] for others.
constexpr IntegerRange range_of(DType dtype) noexcept {
  switch (dtype) {
    case DType::kUInt8:
      return {0, 255};
    case DType::kInt8:
      return {-128, 127};
    case DType::kInt16:
      return {INT16_MIN, INT16_MAX};
    case DType::kInt32:
      return {INT32_MIN, INT32_MAX};
    default:
      return {};
  }
}

/// All names, in the order of the enum, for messages: "float32, float64, ...".
std::string_view dtype_names() noexcept;

}  // namespace npu
