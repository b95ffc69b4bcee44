// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "kernels/attention/key_ranges.hpp"
#include "kernels/base/fields.hpp"
#include "kernels/base/footprint.hpp"
#include "kernels/base/operands.hpp"

namespace npu::onednn {

/// Which keys of a cache each query looks at, as a byte for each: 1 or 0, or the opposite.
struct LengthMask {
  static constexpr std::string_view kName = "length-mask";
  std::int64_t queries = 1;
  KeyRanges ranges;
  bool is_opposite = false;

  struct Operands {
    const std::int64_t* positions;  ///< null without
    const std::int64_t* valid;      ///< null without
    std::byte* target;
  };
  Operands bind(Addresses addresses) const;
  void run(const Operands& operands) const;
};

NPU_FIELDS(LengthMask, queries, ranges, is_opposite);
Footprint footprint(const LengthMask& kernel);

}  // namespace npu::onednn
