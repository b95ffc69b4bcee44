// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "kernels/base/fields.hpp"
#include "kernels/base/footprint.hpp"
#include "kernels/base/operands.hpp"
#include "kernels/base/simd.hpp"
#include "npu/tensor/dtype.hpp"

namespace npu::onednn {

/// target = clamp(round(source * factor) + zero) with one factor and zero for each of `channels`,
/// as PyTorch does; or with source / factor, as ONNX does. Tensors are dense [outer, channels,
/// inner]. Ties go to even numbers. NaN becomes 0, or the least number for ONNX.
struct Quantize {
  static constexpr std::string_view kName = "quantize";
  DType to = DType::kUInt8;  ///< uint8, int8 or int16
  bool divides = false;
  std::int64_t outer = 1;
  std::int64_t channels = 1;
  std::int64_t inner = 1;
  std::int64_t least = 0;
  std::int64_t most = 255;
  VectorIsa isa = VectorIsa::kAny;

  struct Operands {
    const float* source;
    const float* factors;
    const float* zeros;
    std::byte* target;
  };
  static Operands bind(Addresses addresses) {
    OperandReader reader(addresses);
    const auto* source = reader.next<const float>();
    const auto* factors = reader.next<const float>();
    const auto* zeros = reader.next<const float>();
    return {source, factors, zeros, reader.next<std::byte>()};
  }
  void run(const Operands& operands) const;
};

/// target = (source - zero) * factor, likewise.
struct Dequantize {
  static constexpr std::string_view kName = "dequantize";
  DType from = DType::kUInt8;  ///< uint8, int8, int16 or int32
  std::int64_t outer = 1;
  std::int64_t channels = 1;
  std::int64_t inner = 1;
  VectorIsa isa = VectorIsa::kAny;

  struct Operands {
    const std::byte* source;
    const float* factors;
    const float* zeros;
    float* target;
  };
  static Operands bind(Addresses addresses) {
    OperandReader reader(addresses);
    const auto* source = reader.next<const std::byte>();
    const auto* factors = reader.next<const float>();
    const auto* zeros = reader.next<const float>();
    return {source, factors, zeros, reader.next<float>()};
  }
  void run(const Operands& operands) const;
};

/// target[i] = table[source[i]], for bytes: any function of a quantized tensor that is quantized
/// again.
struct ByteTable {
  static constexpr std::string_view kName = "byte-table";
  std::int64_t count = 0;
  VectorIsa isa = VectorIsa::kAny;

  struct Operands {
    const std::uint8_t* source;
    const std::uint8_t* table;  ///< 256
    std::uint8_t* target;
  };
  static Operands bind(Addresses addresses) {
    OperandReader reader(addresses);
    const auto* source = reader.next<const std::uint8_t>();
    const auto* table = reader.next<const std::uint8_t>();
    return {source, table, reader.next<std::uint8_t>()};
  }
  void run(const Operands& operands) const;
};

/// target = clamp(round(a_factor * (a - a_zero) + b_factor * (b - b_zero)) + zero) or the product
/// of the two terms instead of their sum, on bytes that lie alike: `a` is [repeat, outer,
/// inner_repeat, inner], `b` [1, outer, 1, inner].
struct QuantizedBinary {
  static constexpr std::string_view kName = "quantized-binary";
  DType a_type = DType::kUInt8;  ///< uint8 or int8, as the others
  DType b_type = DType::kUInt8;
  DType to = DType::kUInt8;
  bool multiplies = false;
  float a_factor = 1.0F;
  float b_factor = 1.0F;
  std::int64_t a_zero = 0;
  std::int64_t b_zero = 0;
  std::int64_t zero = 0;
  std::int64_t least = 0;
  std::int64_t most = 255;
  std::int64_t repeat = 1;
  std::int64_t outer = 1;
  std::int64_t inner_repeat = 1;
  std::int64_t inner = 0;
  VectorIsa isa = VectorIsa::kAny;

  struct Operands {
    const std::byte* a;
    const std::byte* b;
    std::byte* target;
  };
  static Operands bind(Addresses addresses) { return {addresses[0], addresses[1], addresses[2]}; }
  void run(const Operands& operands) const;
};

NPU_FIELDS(Quantize, to, divides, outer, channels, inner, least, most, isa);
NPU_FIELDS(Dequantize, from, outer, channels, inner, isa);
NPU_FIELDS(ByteTable, count, isa);
NPU_FIELDS(QuantizedBinary, a_type, b_type, to, multiplies, a_factor, b_factor, a_zero, b_zero,
           zero, least, most, repeat, outer, inner_repeat, inner, isa);
Footprint footprint(const Quantize& kernel);
Footprint footprint(const Dequantize& kernel);
Footprint footprint(const ByteTable& kernel);
Footprint footprint(const QuantizedBinary& kernel);

}  // namespace npu::onednn
