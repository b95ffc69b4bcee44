// SPDX-License-Identifier: Apache-2.0
// Host tensors, and exact conversions between float32 and the 16-bit formats.
#include "npu/tensor/tensor.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <tuple>
#include <utility>

#include "npu/support/error.hpp"
#include "support/checked.hpp"
#include "support/host_memory.hpp"

namespace npu {
namespace {

std::pair<std::int64_t, std::size_t> checked_sizes(DType dtype, const Shape& shape) {
  const auto count = checked_element_count(shape);
  const auto bytes =
      count ? checked_multiply(*count, static_cast<std::int64_t>(dtype_size(dtype))) : std::nullopt;
  if (!bytes) {
    throw Error(ErrorCode::kInvalidGraph,
                "a tensor of shape " + shape_text(shape) + " does not fit in memory");
  }
  return {*count, static_cast<std::size_t>(*bytes)};
}

}  // namespace

std::string shape_text(const Shape& shape) {
  std::string text = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (i != 0) text += ", ";
    text += std::to_string(shape[i]);
  }
  return text + "]";
}

namespace {

// Null if there is no memory.
std::shared_ptr<const std::byte> allocate_zeroed(std::size_t bytes) {
#if !defined(__SANITIZE_ADDRESS__)  // which only guards the ends of malloc's blocks
  if (bytes >= kLargeBlock) return allocate_large(bytes);
#endif
  if (bytes > PTRDIFF_MAX - 64) return nullptr;
  const std::size_t rounded = std::max<std::size_t>(64, (bytes + 63) / 64 * 64);
  void* const memory = std::aligned_alloc(64, rounded);
  if (memory == nullptr) return nullptr;
  std::memset(memory, 0, rounded);
  return {static_cast<std::byte*>(memory),
          [](const std::byte* p) { std::free(const_cast<std::byte*>(p)); }};
}

}  // namespace

const Shape& Tensor::no_shape() noexcept {
  static const Shape shape{0};
  return shape;
}

Tensor::Tensor(DType dtype, Shape shape) : dtype_(dtype), shape_(std::move(shape)) {
  std::tie(element_count_, bytes_) = checked_sizes(dtype_, shape_);
  data_ = allocate_zeroed(bytes_);
  if (data_ == nullptr) {
    throw Error(ErrorCode::kInfeasible, "out of memory for a tensor of " + std::to_string(bytes_) +
                                            " bytes, shape " + shape_text(shape_));
  }
}

Tensor::Tensor(DType dtype, Shape shape, std::shared_ptr<const std::byte> data)
    : dtype_(dtype), shape_(std::move(shape)), data_(std::move(data)) {
  std::tie(element_count_, bytes_) = checked_sizes(dtype_, shape_);
}

double Tensor::value_as_double(std::int64_t index) const noexcept {
  switch (dtype_) {
    case DType::kFloat32:
      return static_cast<double>(as<float>()[index]);
    case DType::kFloat64:
      return as<double>()[index];
    case DType::kFloat16:
      return static_cast<double>(float16_to_float(as<std::uint16_t>()[index]));
    case DType::kBFloat16:
      return static_cast<double>(bfloat16_to_float(as<std::uint16_t>()[index]));
    case DType::kInt8:
      return as<std::int8_t>()[index];
    case DType::kUInt8:
    case DType::kBool:
      return as<std::uint8_t>()[index];
    case DType::kInt16:
      return as<std::int16_t>()[index];
    case DType::kInt32:
      return as<std::int32_t>()[index];
    case DType::kInt64:
      return static_cast<double>(as<std::int64_t>()[index]);
    case DType::kComplex64:
      return static_cast<double>(as<float>()[2 * index]);
    case DType::kComplex128:
      return as<double>()[2 * index];
  }
  return 0;
}

float bfloat16_to_float(std::uint16_t bits) noexcept {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

std::uint16_t float_to_bfloat16(float value) noexcept {
  std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  if (std::isnan(value)) return static_cast<std::uint16_t>((bits >> 16) | 0x40);
  bits += 0x7fff + ((bits >> 16) & 1);
  return static_cast<std::uint16_t>(bits >> 16);
}

float float16_to_float(std::uint16_t bits) noexcept {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000) << 16;
  const std::uint32_t exponent = (bits >> 10) & 0x1f;
  const std::uint32_t mantissa = bits & 0x3ff;
  if (exponent == 0x1f) return std::bit_cast<float>(sign | 0x7f800000 | (mantissa << 13));
  if (exponent != 0) {
    return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
  }
  // Zero or subnormal: mantissa * 2^-24 is exact in float32.
  const float magnitude = static_cast<float>(mantissa) * 0x1p-24F;
  return sign != 0 ? -magnitude : magnitude;
}

std::uint16_t float_to_float16(float value) noexcept {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000);
  const std::uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return static_cast<std::uint16_t>(sign | 0x7e00);
  if (magnitude >= 0x477ff000) return static_cast<std::uint16_t>(sign | 0x7c00);  // rounds to inf
  if (magnitude < 0x38800000) {  // below 2^-14: subnormal, in units of 2^-24, ties to even
    const float scaled = std::bit_cast<float>(magnitude) * 0x1p24F;
    return static_cast<std::uint16_t>(sign | static_cast<std::uint16_t>(std::nearbyint(scaled)));
  }
  const std::uint32_t rounded = magnitude + 0xfff + ((magnitude >> 13) & 1);
  return static_cast<std::uint16_t>(sign | ((rounded - 0x38000000) >> 13));
}

}  // namespace npu
