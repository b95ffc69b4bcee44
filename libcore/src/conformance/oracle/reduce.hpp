// SPDX-License-Identifier: Apache-2.0
// What rows of several ops share: sums along dimensions, products and convolutions.
#pragma once

#include <functional>
#include <span>

#include "conformance/oracle/op_oracle.hpp"

namespace npu::conformance {

/// The dimensions that "dim" names, from 0 on and ascending; all where it is missing or empty.
Shape dims_of(const Call& call, std::int64_t rank);
/// Calls `fold` with the elements of each result.
Values reduce(const Values& x, const Shape& dims, bool keeps, DType dtype,
              const std::function<Bounded(std::span<const Bounded>)>& fold);
/// Calls `change` with each row along a dimension.
void along(Values& x, std::int64_t dim, const std::function<void(std::span<Bounded>)>& change);
void softmax_row(std::span<Bounded> row, bool logarithm);

void draw_convolution(NodeDraw& draw);
std::vector<Values> convolution(const Call& call);

/// A convolution in up to three dimensions of space.
struct Convolution {
  Shape stride, pad_begin, pad_end, dilation, output_padding;
  std::int64_t groups = 1;
  bool transposed = false;
};
Values convolve(const Values& x, const Values& w, const Values* bias, const Convolution& how);

}  // namespace npu::conformance
