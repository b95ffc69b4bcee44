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

/// Rows of numbers from 0 on, as probabilities are, as integers of 16 bits in two bytes: 65535 is
/// the largest number of the row. The high bytes of a row lie in front of its low ones. NaN is 0;
/// a row of zeros, of NaN or with infinity is zeros.
struct SplitRows {
  static constexpr std::string_view kName = "split-rows";
  std::int64_t rows = 1;
  std::int64_t count = 1;
  VectorIsa isa = VectorIsa::kAny;

  struct Operands {
    const float* source;   ///< [rows, count]
    std::uint8_t* target;  ///< [rows, 2, count]
  };
  static Operands bind(Addresses addresses) {
    OperandReader in(addresses);
    const auto* source = in.next<const float>();
    return {source, in.next<std::uint8_t>()};
  }
  void run(const Operands& operands) const;
};

/// The means that the numbers of SplitRows weigh, from their products with integers: target =
/// clamp(round(factor * ((256 * high + low) / sum - source_zero)) + zero) for `to` uint8 or int8,
/// or factor * .. for float32. Where the sum is 0, the mean is 0.
struct AttentionSum {
  static constexpr std::string_view kName = "attention-sum";
  DType to = DType::kUInt8;
  std::int64_t rows = 1;
  std::int64_t count = 1;  ///< of numbers of a row
  std::int64_t width = 1;  ///< of the result
  float factor = 1.0F;
  std::int64_t source_zero = 0;
  std::int64_t zero = 0;
  std::int64_t least = 0;
  std::int64_t most = 255;
  VectorIsa isa = VectorIsa::kAny;

  struct Operands {
    const std::uint8_t* parts;  ///< [rows, 2, count]
    const float* products;      ///< [rows, 2, width]
    std::byte* target;          ///< [rows, width]
  };
  static Operands bind(Addresses addresses) {
    OperandReader in(addresses);
    const auto* parts = in.next<const std::uint8_t>();
    const auto* products = in.next<const float>();
    return {parts, products, in.next<std::byte>()};
  }
  void run(const Operands& operands) const;
};

NPU_FIELDS(SplitRows, rows, count, isa);
NPU_FIELDS(AttentionSum, to, rows, count, width, factor, source_zero, zero, least, most, isa);
Footprint footprint(const SplitRows& kernel);
Footprint footprint(const AttentionSum& kernel);

}  // namespace npu::onednn
