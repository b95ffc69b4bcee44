// SPDX-License-Identifier: Apache-2.0
// Tensors put together from parts of others: rolled, flipped, repeated, overwritten in part, and
// triangles of matrices. Bound by memory; O(elements).
#include "kernels/parts.hpp"

#include <algorithm>
#include <cstring>

#include "kernels/elements.hpp"
#include "kernels/share_work.hpp"

namespace npu::onednn {

void CopyParts::run(const Operands& operands) const {
  for (const Part& part : parts) {
    const auto size = static_cast<std::int64_t>(part.copy.element_size);
    part.copy.run({operands.sources[static_cast<std::size_t>(part.source)] + part.from * size,
                   operands.target + part.to * size});
  }
}

void Triangle::run(const Operands& operands) const {
  const auto [source, target] = operands;
  const std::int64_t row_bytes = columns * element_size;
  const int threads = threads_for(planes * rows * columns >= kParallelElements);
  share_pieces(
      planes * rows, threads, [&, source = source, target = target](std::int64_t piece, int) {
        const std::int64_t row = piece % rows;
        const std::int64_t at = piece * row_bytes;
        // An upper triangle begins at the diagonal, a lower one ends behind it.
        const std::int64_t edge =
            std::clamp(row + diagonal + (upper ? 0 : 1), std::int64_t{0}, columns) * element_size;
        const std::int64_t begin = upper ? edge : 0;
        const std::int64_t end = upper ? row_bytes : edge;
        std::byte* to = target + at;
        std::memset(to, 0, static_cast<std::size_t>(begin));
        std::memcpy(to + begin, source + at + begin, static_cast<std::size_t>(end - begin));
        std::memset(to + end, 0, static_cast<std::size_t>(row_bytes - end));
      });
}

}  // namespace npu::onednn
