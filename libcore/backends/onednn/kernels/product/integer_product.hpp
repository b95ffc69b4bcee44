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

// Exact sums of products of integers, in three kernels: the left factor, or the windows of a
// convolution, become rows; the right one becomes panels; and rows times panels are the result.

/// Bytes of a row or column of `inner` numbers: bytes are multiplied four at a time.
inline std::int64_t padded_inner(DType type, std::int64_t inner) {
  return is_byte(type) ? ceil_div(inner, 4) * 4 : inner * 4;
}

/// A row for each window of [batch, extents.., channels], of each group of channels: [groups,
/// batch, windows, taps.., channels / groups]. Around the source lies the number that stands for
/// zero. int8 becomes uint8 by adding 128. Behind all rows of bytes are their sums, as int32.
struct IntegerRows {
  static constexpr std::string_view kName = "integer-rows";
  DType type = DType::kUInt8;  ///< uint8, int8 or int32
  std::int64_t batch = 1;
  std::int64_t groups = 1;
  std::int64_t channels = 1;
  std::int64_t extents[3]{1, 1, 1};
  std::int64_t taps[3]{1, 1, 1};
  std::int64_t stride[3]{1, 1, 1};
  std::int64_t dilation[3]{1, 1, 1};
  std::int64_t pad[3]{0, 0, 0};  ///< in front
  std::int64_t windows[3]{1, 1, 1};
  VectorIsa isa = VectorIsa::kAny;

  std::int64_t inner() const { return taps[0] * taps[1] * taps[2] * (channels / groups); }
  std::int64_t rows() const { return groups * batch * windows[0] * windows[1] * windows[2]; }

  struct Operands {
    const std::byte* source;
    const std::int32_t* zero;  ///< of the type's numbers
    std::byte* target;
  };
  static Operands bind(Addresses addresses) {
    OperandReader in(addresses);
    const auto* source = in.next<const std::byte>();
    const auto* zero = in.next<const std::int32_t>();
    return {source, zero, in.next<std::byte>()};
  }
  void run(const Operands& operands) const;
};

/// Bytes of the right factor [batch, inner, columns], row-major, in panels of 16 columns: [batch,
/// panels, inner / 4, 16, 4]. uint8 becomes int8 by subtracting 128. Behind them are the sums of
/// columns, 16 for each panel.
struct IntegerPanels {
  static constexpr std::string_view kName = "integer-panels";
  static constexpr std::int64_t kColumns = 16;
  DType type = DType::kInt8;  ///< uint8 or int8
  std::int64_t batch = 1;
  std::int64_t inner = 1;
  std::int64_t columns = 1;

  std::int64_t panels() const { return ceil_div(columns, kColumns); }

  struct Operands {
    const std::byte* source;
    std::byte* target;
  };
  static Operands bind(Addresses addresses) { return {addresses[0], addresses[1]}; }
  void run(const Operands& operands) const;
};

/// target = (left - left zero) * (right - right zero) for matrices [batch, rows, inner] and [batch,
/// inner, columns], modulo 2^32: rows of IntegerRows and panels of IntegerPanels with what stands
/// for zero in each row and column, or, for int32, rows and a row-major matrix without zero points.
struct IntegerProduct {
  static constexpr std::string_view kName = "integer-product";
  DType type = DType::kUInt8;  ///< uint8 or int32
  std::int64_t batch = 1;
  std::int64_t rows = 1;
  std::int64_t inner = 1;
  std::int64_t columns = 1;
  std::int64_t target_batch = 0;  ///< from a matrix of the result to the next one
  std::int64_t target_row = 1;    ///< from a row of the result to the next one
  bool left_zeros = false;        ///< one for each row, else one for all
  bool right_zeros = false;       ///< one for each column, else one for all
  std::int64_t left_shift = 0;    ///< added to the zero points, as it was to the numbers
  std::int64_t right_shift = 0;
  bool uses_vnni = false;
  VectorIsa isa = VectorIsa::kAny;

  struct Operands {
    const std::byte* left;
    const std::byte* right;
    const std::int32_t* left_zero;   ///< null for int32
    const std::int32_t* right_zero;  ///< likewise
    std::int32_t* target;
  };
  Operands bind(Addresses addresses) const {
    OperandReader in(addresses);
    Operands operands{};
    operands.left = in.next<const std::byte>();
    operands.right = in.next<const std::byte>();
    operands.left_zero = in.next_if<const std::int32_t>(is_byte(type));
    operands.right_zero = in.next_if<const std::int32_t>(is_byte(type));
    operands.target = in.next<std::int32_t>();
    return operands;
  }
  void run(const Operands& operands) const;
};

/// Whether this CPU multiplies bytes four at a time, with vectors of AVX-512.
bool cpu_has_vnni();

NPU_FIELDS(IntegerRows, type, batch, groups, channels, extents, taps, stride, dilation, pad,
           windows, isa);
NPU_FIELDS(IntegerPanels, type, batch, inner, columns);
NPU_FIELDS(IntegerProduct, type, batch, rows, inner, columns, target_batch, target_row, left_zeros,
           right_zeros, left_shift, right_shift, uses_vnni, isa);
Footprint footprint(const IntegerRows& kernel);
Footprint footprint(const IntegerPanels& kernel);
Footprint footprint(const IntegerProduct& kernel);

}  // namespace npu::onednn
