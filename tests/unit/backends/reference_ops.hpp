// SPDX-License-Identifier: Apache-2.0
// Arrays of float64, the ops of a backend computed on them by slow loops, and the rounding of their
// values to the type under test.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>
#include <utility>
#include <vector>

#include "npu/backend.h"

namespace npu::test {

using Shape = std::vector<std::int64_t>;
using Index = std::vector<std::int64_t>;

std::int64_t count_of(const Shape& shape);

struct Array {
  Shape shape;
  std::vector<double> values;

  Array() = default;
  explicit Array(Shape dimensions);
  std::size_t offset(const Index& index) const;
  double& at(const Index& index) { return values[offset(index)]; }
  double at(const Index& index) const { return values[offset(index)]; }
};

/// Visits the indices in order, the last dimension fastest.
void for_each(const Shape& shape, const std::function<void(const Index&)>& visit);

/// Rounded to the nearest, ties to even.
std::uint16_t bfloat16_bits(float value);
float bfloat16_value(std::uint16_t stored);
/// float32, or bfloat16 where that is the type.
double rounded(double value, npu_dtype dtype);

/// Values in about -2..2 that no two seeds share.
Array random_array(const Shape& shape, std::uint32_t seed);
/// From 0.5 on.
Array positive_array(const Shape& shape, std::uint32_t seed);
Array round_all(Array array, npu_dtype dtype);
Array map_values(const Array& a, const std::function<double(double)>& function);
/// Broadcasts.
Array zip_values(const Array& a, const Array& b,
                 const std::function<double(double, double)>& function);

struct ConvArguments {
  Index stride{1, 1};
  Index pad_begin{0, 0};
  Index pad_end{0, 0};
  Index dilation{1, 1};
  std::int64_t groups = 1;
};

Array convolve(const Array& x, const Array& w, const Array* bias, const ConvArguments& arguments);
Array normalize_channels(const Array& x, const Array* weight, const Array* bias, const Array& mean,
                         const Array& variance, double epsilon);

struct PoolArguments {
  Index kernel{2, 2};
  Index stride{2, 2};
  Index padding{0, 0};
  Index dilation{1, 1};
  bool count_include_pad = true;
  std::int64_t divisor = 0;
};

/// `shape` is the result's: the tests write it down themselves.
Array pool(const Array& x, const Shape& shape, const PoolArguments& arguments, bool maximum);
Array pool_adaptively(const Array& x, std::int64_t height, std::int64_t width);
Array mean_over(const Array& x, const std::set<std::size_t>& dimensions, bool keep);
/// Both of rank 2 or more; batches broadcast.
Array multiply(const Array& a, const Array& b);
Array permute(const Array& x, const std::vector<std::size_t>& order);
Array swap_last(const Array& x);
Array softmax(const Array& x, std::size_t dimension, bool logarithm);
/// Over the last dimensions that make up `width` elements.
Array normalize_rows(const Array& x, std::size_t width, const Array* weight, const Array* bias,
                     double epsilon);
Array concatenate(const std::vector<Array>& parts, std::size_t dimension);
Array slice(const Array& x, std::size_t dimension, std::int64_t start, std::int64_t count,
            std::int64_t step);
Array reshape(Array x, Shape shape);

}  // namespace npu::test
