// SPDX-License-Identifier: Apache-2.0
#pragma once

// Elements of float32 and bfloat16 for kernels that are bound by memory: they compute in float32
// and round to nearest even.

#include <bit>
#include <cstddef>
#include <cstdint>

namespace npu::onednn {

/// Below this many elements the start of a parallel region costs more than it saves.
constexpr std::int64_t kParallelElements = 16384;

struct BFloat16 {
  std::uint16_t bits;
};

inline float load(float value) { return value; }
inline float load(BFloat16 value) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(value.bits) << 16);
}

inline std::uint16_t rounded_bits(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const bool is_nan = (bits & 0x7FFFFFFFU) > 0x7F800000U;
  const std::uint32_t rounded = bits + 0x7FFFU + ((bits >> 16) & 1U);
  return static_cast<std::uint16_t>((is_nan ? bits | 0x00400000U : rounded) >> 16);
}
inline void store(float& target, float value) { target = value; }
inline void store(BFloat16& target, float value) { target.bits = rounded_bits(value); }

/// x, but at least `low` and at most `high`; NaN stays. Not std::clamp, of which there is no
/// vector.
[[gnu::always_inline]] inline float cut(float x, float low, float high) {
  const float raised = x < low ? low : x;
  return raised > high ? high : raised;
}

/// The nearest integer from `low` to `high`, which are below 2^22, ties to even. NaN stays.
[[gnu::always_inline]] inline float rounded_number(float x, float low, float high) {
  constexpr float kShift = 12582912.0F;
  return (cut(x, low, high) + kShift) - kShift;
}

template <typename T>
const T* elements(const std::byte* data) {
  return static_cast<const T*>(static_cast<const void*>(data));
}
template <typename T>
T* elements(std::byte* data) {
  return static_cast<T*>(static_cast<void*>(data));
}

}  // namespace npu::onednn
