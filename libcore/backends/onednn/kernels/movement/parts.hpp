// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/fields.hpp"
#include "kernels/base/footprint.hpp"
#include "kernels/base/operands.hpp"
#include "kernels/movement/copies.hpp"
#include "npu/tensor/dtype.hpp"

namespace npu::onednn {

/// Copies of parts of tensors into one tensor, in their order: a later part may lie over an earlier
/// one. Strides of a source may be 0 or negative.
struct CopyParts {
  static constexpr std::string_view kName = "copy-parts";
  struct Part {
    std::int64_t source = 0;  ///< which of the tensors that are read
    std::int64_t from = 0;    ///< the first element that is read,
    std::int64_t to = 0;      ///< and where it is written
    StridedCopy copy;
  };
  std::int64_t sources = 1;  ///< tensors that are read
  std::vector<Part> parts;

  struct Operands {
    Addresses sources;
    std::byte* target;
  };
  static Operands bind(Addresses addresses) {
    return {addresses.first(addresses.size() - 1), addresses.back()};
  }
  void run(const Operands& operands) const;
};

/// The upper or lower triangles of row-major matrices, zeros elsewhere.
struct Triangle {
  static constexpr std::string_view kName = "triangle";
  std::int64_t element_size = 4;
  std::int64_t planes = 1;
  std::int64_t rows = 1;
  std::int64_t columns = 1;
  std::int64_t diagonal = 0;  ///< of row 0, the column of the diagonal, which is a part of both
  bool upper = false;

  using Operands = UnaryOperands;
  static Operands bind(Addresses addresses) { return bind_unary(addresses); }
  void run(const Operands& operands) const;
};

/// Rows of a row-major tensor along one dimension, those behind the first `valid` ones written
/// anew.
struct TailRows {
  static constexpr std::string_view kName = "tail";
  enum class Fill : std::uint8_t { kZero, kLowest, kEdge };
  DType type = DType::kFloat32;
  Fill fill = Fill::kZero;
  std::int64_t planes = 1;  ///< of the dimensions in front
  std::int64_t rows = 1;
  std::int64_t width = 1;  ///< elements of a row
  std::string node{};      ///< for messages

  struct Operands {
    const std::byte* source;
    const std::byte* valid;  ///< int64
    std::byte* target;
  };
  static Operands bind(Addresses addresses) { return {addresses[0], addresses[1], addresses[2]}; }
  /// Throws Error kFailed if there are not 0 to `rows` valid rows, or none to repeat.
  void run(const Operands& operands) const;
};

NPU_FIELDS(CopyParts::Part, source, from, to, copy);
NPU_FIELDS(CopyParts, sources, parts);
NPU_FIELDS(Triangle, element_size, planes, rows, columns, diagonal, upper);
template <>
inline constexpr int kEnumerators<TailRows::Fill> = 3;
NPU_FIELDS(TailRows, type, fill, planes, rows, width, node);
Footprint footprint(const CopyParts& kernel);
Footprint footprint(const Triangle& kernel);
Footprint footprint(const TailRows& kernel);

}  // namespace npu::onednn
