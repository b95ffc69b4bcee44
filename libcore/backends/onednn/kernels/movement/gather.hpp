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
#include "npu/tensor/dtype.hpp"

namespace npu::onednn {

/// Rows of a table by index.
struct GatherRows {
  static constexpr std::string_view kName = "gather";
  std::int64_t count = 0;
  std::int64_t rows = 0;
  std::int64_t row_bytes = 0;
  bool wide_indices = true;  ///< int64, else int32
  std::string node{};        ///< for messages

  struct Operands {
    const std::byte* table;
    const std::byte* indices;
    std::byte* target;
  };
  static Operands bind(Addresses addresses) { return {addresses[0], addresses[1], addresses[2]}; }
  /// Throws Error kFailed if an index is not in [0, rows).
  void run(const Operands& operands) const;
};

/// Elements of a tensor by indices, in an iteration space: read, or written over those of a copy of
/// the tensor, in the order of the space. Where target and tensor are one memory, nothing is
/// copied.
struct IndexedCopy {
  static constexpr std::string_view kName = "indexed-copy";
  static constexpr std::size_t kMostIndices = 8;
  /// What becomes of an element and what is written to it.
  enum class Combine : std::uint8_t { kReplace, kAdd, kMaximum, kMinimum };
  /// int64 numbers for one dimension of the indexed tensor.
  struct Index {
    std::int64_t extent = 1;            ///< of the dimension
    std::int64_t step = 1;              ///< its stride
    std::vector<std::int64_t> strides;  ///< of the numbers in the iteration space
  };
  DType type = DType::kFloat32;
  bool scatters = false;  ///< writes to the indexed tensor, else reads it
  Combine combine = Combine::kReplace;
  bool wraps = false;      ///< an index counts from the end if it is negative
  std::int64_t count = 1;  ///< elements of the indexed tensor
  std::vector<std::int64_t> extents;
  std::vector<std::int64_t> indexed_strides;  ///< of the indexed tensor; 0 where indices move it
  std::vector<std::int64_t> other_strides;    ///< of what is written: the target, or the values
  std::vector<Index> indices;
  std::string node{};  ///< for messages

  void simplify();

  struct Operands {
    const std::byte* indexed;
    const std::byte* values;  ///< null unless it scatters
    Addresses indices;
    std::byte* target;
  };
  Operands bind(Addresses addresses) const {
    const std::size_t before = scatters ? 2 : 1;
    return {addresses[0], scatters ? addresses[1] : nullptr,
            addresses.subspan(before, addresses.size() - before - 1), addresses.back()};
  }
  /// Throws Error kFailed, which names the index, if one is outside its dimension; some elements
  /// may be written by then.
  void run(const Operands& operands) const;
};

/// start, start + step, ... as int64.
struct Sequence {
  static constexpr std::string_view kName = "sequence";
  std::int64_t start = 0;
  std::int64_t step = 1;
  std::int64_t count = 0;

  struct Operands {
    std::int64_t* target;
  };
  static Operands bind(Addresses addresses) {
    return {OperandReader(addresses).next<std::int64_t>()};
  }
  void run(const Operands& operands) const;
};

template <>
inline constexpr int kEnumerators<IndexedCopy::Combine> = 4;

NPU_FIELDS(GatherRows, count, rows, row_bytes, wide_indices, node);
NPU_FIELDS(Sequence, start, step, count);
NPU_FIELDS(IndexedCopy::Index, extent, step, strides);
NPU_FIELDS(IndexedCopy, type, scatters, combine, wraps, count, extents, indexed_strides,
           other_strides, indices, node);
Footprint footprint(const GatherRows& kernel);
Footprint footprint(const Sequence& kernel);
Footprint footprint(const IndexedCopy& kernel);

}  // namespace npu::onednn
