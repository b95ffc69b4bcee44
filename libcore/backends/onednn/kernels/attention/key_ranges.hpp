// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/base/fields.hpp"
#include "kernels/base/footprint_builder.hpp"

namespace npu::onednn {

/// Which keys of a cache a query looks at, as npu.length_mask says: those in front of the valid
/// length, up to its own position, and no more than a window back from there.
struct KeyRanges {
  std::int64_t keys = 1;  ///< the capacity of the cache
  bool has_positions = true;
  bool has_valid = false;
  bool causal = true;
  std::int64_t window = 0;  ///< keys, the own one included; 0: no bound

  struct Range {
    std::int64_t begin = 0;
    std::int64_t end = 0;  ///< not above `keys`; not above `begin` where there are none
  };
  /// Of a query; `positions` and `valid` are null without. Any numbers are taken.
  Range of(std::int64_t query, const std::int64_t* positions, const std::int64_t* valid) const {
    Range range{0, keys};
    if (valid != nullptr) range.end = std::clamp<std::int64_t>(*valid, 0, keys);
    if (positions == nullptr) return range;
    const std::int64_t position = std::clamp<std::int64_t>(positions[query], -1, kMaxOperandBytes);
    if (causal) range.end = std::min(range.end, position + 1);
    if (window > 0) range.begin = std::clamp<std::int64_t>(position - window + 1, 0, keys);
    return range;
  }

  /// What is read, in the order of the operands.
  void check(FootprintBuilder& builder, std::int64_t queries) const {
    require(window >= 0 && window <= kMaxOperandBytes, "'window' is none");
    require(has_positions || (!causal && window == 0), "there are no positions to compare with");
    if (has_positions) builder.read(queries, 8);
    if (has_valid) builder.read(1, 8);
  }
};

NPU_FIELDS(KeyRanges, keys, has_positions, has_valid, causal, window);

}  // namespace npu::onednn
