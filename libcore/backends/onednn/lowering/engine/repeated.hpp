// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "npu/tensor/tensor.hpp"
#include "program/plan.hpp"

namespace npu::onednn {

class Lowering;

/// A view that may show elements of a value several times, such as heads of keys that queries
/// share. Strides alone cannot say that of a dimension that was joined with a repeated one, so each
/// dimension is a list of runs.
struct Repeated {
  struct Run {
    std::int64_t count = 1;
    std::int64_t stride = 0;  ///< in elements; 0 repeats
    bool operator==(const Run&) const = default;
  };
  using Runs = std::vector<Run>;

  Value source;  ///< has strides alone; its first element is that of the view
  /// Of each dimension, the outermost run first; none in a dimension of 1.
  std::vector<Runs> dimensions;
  NodeId node;  ///< that a copy of the view counts for

  Shape shape() const;
};

/// All of a value that has strides alone.
Repeated view_of(const Value& value);
/// The same elements in the same order; nothing if runs of the result would cut runs of the view.
std::optional<Repeated> reshaped(const Repeated& view, const Shape& shape);
/// Dimension i of the result is dimension order[i].
Repeated permuted(const Repeated& view, const std::vector<std::size_t>& order);
/// Dimensions of 1 repeated up to `shape`, which has as many dimensions.
Repeated expanded(const Repeated& view, const Shape& shape);

/// A row-major copy.
Value written_out(Lowering& lowering, const Repeated& view);

/// Matrices in the last two dimensions of a view, one for each place of `batch`, to which the
/// dimensions before them broadcast.
struct Matrices {
  std::vector<std::int64_t> offsets;  ///< first elements
  std::int64_t strides[2]{};          ///< [row, column]; 0 where there is one
};
/// Nothing if the last two dimensions are no plain strides.
std::optional<Matrices> matrices_of(const Repeated& view, const Shape& batch);

}  // namespace npu::onednn
