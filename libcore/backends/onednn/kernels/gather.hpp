// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "kernels/operands.hpp"

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
  /// Throws Error kInfeasible if an index is not in [0, rows).
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

}  // namespace npu::onednn
