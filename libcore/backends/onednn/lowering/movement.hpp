// SPDX-License-Identifier: Apache-2.0
#pragma once

// What ops share that move elements, or only name them anew.

#include <cstddef>
#include <cstdint>
#include <optional>

#include "lowering/lowering.hpp"

namespace npu::onednn {

std::int64_t element_count(const Shape& shape);
/// The first tensor operand, whatever its argument is called.
TensorId first_operand(const Lowering& lowering);
/// The result is the operand.
void define_alias(Lowering& lowering);
/// The layout of a tensor of another extent along `dimension` that has the same blocks, if all of
/// it lies in one piece with that dimension outermost; nothing otherwise.
std::optional<Layout> stacked_layout(const Layout& like, std::size_t dimension,
                                     std::int64_t extent);

/// What start, end and step choose of a dimension: `count` elements, which is not 0.
struct SliceRange {
  std::int64_t start = 0;
  std::int64_t step = 1;
  std::int64_t count = 1;
};
SliceRange slice_range(const Lowering& lowering, const BoundNode& node, std::int64_t extent);

}  // namespace npu::onednn
