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

/// `count` elements of one dimension, as a view.
Value sliced(Lowering& lowering, const Value& value, std::size_t dimension, std::int64_t start,
             std::int64_t count);

/// What start, end and step choose of a dimension: `count` elements, which is not 0.
struct SliceRange {
  std::int64_t start = 0;
  std::int64_t step = 1;
  std::int64_t count = 1;
};
SliceRange slice_range(const Lowering& lowering, const BoundNode& node, std::int64_t extent);

/// A resampling by its arguments. The kernel knows neither planes nor type.
struct ResampleCall {
  TensorId input;
  Shape output;
  Resample kernel;
};
ResampleCall read_resample(Lowering& lowering, const BoundNode& node);

/// A padding by its arguments: of each dimension a part is kept, and lies somewhere in the result.
struct PadCall {
  Shape result;
  std::vector<std::int64_t> from;    ///< first element that is kept
  std::vector<std::int64_t> extent;  ///< elements that are kept
  std::vector<std::int64_t> begin;   ///< where they begin in the result
  double number = 0;                 ///< around them
};
PadCall read_pad(Lowering& lowering, const BoundNode& node);
/// The result for a source in any layout, channels last or row-major.
Value add_pad(Lowering& lowering, const PadCall& call, const Value& source, float number,
              bool channels_last);

}  // namespace npu::onednn
