// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "kernels/base/fields.hpp"
#include "kernels/base/footprint.hpp"
#include "kernels/base/operands.hpp"
#include "npu/tensor/dtype.hpp"

namespace npu::onednn {

/// Element-wise conversion between two of float32, bfloat16 and float16, to nearest even; `source`
/// and `target` differ.
struct Convert {
  static constexpr std::string_view kName = "convert";
  DType from = DType::kFloat32;
  DType to = DType::kBFloat16;
  std::int64_t count = 0;

  using Operands = UnaryOperands;
  static Operands bind(Addresses addresses) { return bind_unary(addresses); }
  void run(const Operands& operands) const;
};

/// Rounds float32 values to the nearest bfloat16; `target` is the source.
struct RoundToBFloat16 {
  static constexpr std::string_view kName = "round-to-bfloat16";
  std::int64_t count = 0;

  using Operands = UnaryOperands;
  static Operands bind(Addresses addresses) { return bind_unary(addresses); }
  void run(const Operands& operands) const;
};

struct CopyBytes {
  static constexpr std::string_view kName = "copy";
  std::int64_t bytes = 0;

  using Operands = UnaryOperands;
  static Operands bind(Addresses addresses) { return bind_unary(addresses); }
  void run(const Operands& operands) const;
};

/// An element-by-element copy in an iteration space. `element_size` is 1, 2, 4, 8 or 16.
struct StridedCopy {
  static constexpr std::string_view kName = "strided-copy";
  std::size_t element_size = 4;
  std::vector<std::int64_t> extents;
  std::vector<std::int64_t> source_strides;
  std::vector<std::int64_t> target_strides;

  /// Joins neighbouring dimensions that lie in one run of memory in both tensors.
  void simplify();

  using Operands = UnaryOperands;
  static Operands bind(Addresses addresses) { return bind_unary(addresses); }
  void run(const Operands& operands) const;
};

/// A copy into the middle of a tensor of one number.
struct PaddedCopy {
  static constexpr std::string_view kName = "padded-copy";
  DType type = DType::kFloat32;  ///< float32, bfloat16, uint8 or int8
  float number = 0.0F;           ///< one of the type's
  std::int64_t count = 0;        ///< elements of the target
  std::int64_t offset = 0;       ///< of the first element that is copied, in elements
  StridedCopy copy;

  using Operands = UnaryOperands;
  static Operands bind(Addresses addresses) { return bind_unary(addresses); }
  void run(const Operands& operands) const;
};

/// Element-wise conversion between any two of float32, bfloat16, float64, the integers and bool:
/// towards zero to an integer, and true for all but 0.
struct Cast {
  static constexpr std::string_view kName = "cast";
  DType from = DType::kFloat32;
  DType to = DType::kFloat32;
  std::int64_t count = 0;

  static bool supports(DType type) noexcept;

  using Operands = UnaryOperands;
  static Operands bind(Addresses addresses) { return bind_unary(addresses); }
  void run(const Operands& operands) const;
};

/// Concatenation of dense row-major tensors: each is `outer` runs of run_bytes[i] bytes.
struct PlainConcat {
  static constexpr std::string_view kName = "concatenation";
  std::int64_t outer = 1;
  std::vector<std::int64_t> run_bytes;

  struct Operands {
    std::span<std::byte* const> sources;
    std::byte* target;
  };
  static Operands bind(Addresses addresses) {
    return {addresses.first(addresses.size() - 1), addresses.back()};
  }
  void run(const Operands& operands) const;
};

NPU_FIELDS(Convert, from, to, count);
NPU_FIELDS(RoundToBFloat16, count);
NPU_FIELDS(CopyBytes, bytes);
NPU_FIELDS(StridedCopy, element_size, extents, source_strides, target_strides);
NPU_FIELDS(PaddedCopy, type, number, count, offset, copy);
NPU_FIELDS(Cast, from, to, count);
NPU_FIELDS(PlainConcat, outer, run_bytes);
Footprint footprint(const Convert& kernel);
Footprint footprint(const RoundToBFloat16& kernel);
Footprint footprint(const CopyBytes& kernel);
Footprint footprint(const StridedCopy& kernel);
Footprint footprint(const PaddedCopy& kernel);
Footprint footprint(const Cast& kernel);
Footprint footprint(const PlainConcat& kernel);

}  // namespace npu::onednn
