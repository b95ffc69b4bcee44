// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "kernels/base/fields.hpp"
#include "kernels/base/footprint.hpp"
#include "kernels/base/operands.hpp"
#include "kernels/movement/copies.hpp"

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

NPU_FIELDS(CopyParts::Part, source, from, to, copy);
NPU_FIELDS(CopyParts, sources, parts);
NPU_FIELDS(Triangle, element_size, planes, rows, columns, diagonal, upper);
Footprint footprint(const CopyParts& kernel);
Footprint footprint(const Triangle& kernel);

}  // namespace npu::onednn
