// SPDX-License-Identifier: Apache-2.0
// The mask of attention over a cache as a tensor, for those who do not read lengths. O(queries *
// keys).
#include "kernels/attention/length_mask.hpp"

#include <cstring>

#include "kernels/base/footprint_builder.hpp"

namespace npu::onednn {

LengthMask::Operands LengthMask::bind(Addresses addresses) const {
  OperandReader in(addresses);
  Operands operands{};
  operands.positions = in.next_if<const std::int64_t>(ranges.has_positions);
  operands.valid = in.next_if<const std::int64_t>(ranges.has_valid);
  operands.target = in.next<std::byte>();
  return operands;
}

void LengthMask::run(const Operands& operands) const {
  for (std::int64_t i = 0; i < queries; ++i) {
    const auto [begin, end] = ranges.of(i, operands.positions, operands.valid);
    std::byte* const row = operands.target + i * ranges.keys;
    const int seen = is_opposite ? 0 : 1;
    std::memset(row, 1 - seen, static_cast<std::size_t>(ranges.keys));
    if (begin < end) std::memset(row + begin, seen, static_cast<std::size_t>(end - begin));
  }
}

Footprint footprint(const LengthMask& kernel) {
  FootprintBuilder builder;
  const Count queries = at_least_one(kernel.queries, "queries");
  kernel.ranges.check(builder, kernel.queries);
  return builder.write(queries * at_least_one(kernel.ranges.keys, "keys"), 1).done();
}

}  // namespace npu::onednn
