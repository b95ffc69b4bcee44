// SPDX-License-Identifier: Apache-2.0
#include "reference_ops.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

namespace npu::test {

std::int64_t count_of(const Shape& shape) {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

Array::Array(Shape dimensions) : shape(std::move(dimensions)) {
  values.resize(static_cast<std::size_t>(count_of(shape)));
}

std::size_t Array::offset(const Index& index) const {
  std::int64_t result = 0;
  for (std::size_t i = 0; i < shape.size(); ++i) result = result * shape[i] + index[i];
  return static_cast<std::size_t>(result);
}

void for_each(const Shape& shape, const std::function<void(const Index&)>& visit) {
  Index index(shape.size(), 0);
  for (std::int64_t i = 0; i < count_of(shape); ++i) {
    visit(index);
    for (std::size_t d = shape.size(); d > 0; --d) {
      if (++index[d - 1] < shape[d - 1]) break;
      index[d - 1] = 0;
    }
  }
}

std::uint16_t bfloat16_bits(float value) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  return static_cast<std::uint16_t>((bits + 0x7FFFU + ((bits >> 16) & 1U)) >> 16);
}

float bfloat16_value(std::uint16_t stored) {
  const std::uint32_t bits = static_cast<std::uint32_t>(stored) << 16;
  float value = 0;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

double rounded(double value, npu_dtype dtype) {
  const auto single = static_cast<float>(value);
  if (dtype != NPU_BFLOAT16 || !std::isfinite(single)) return static_cast<double>(single);
  return static_cast<double>(bfloat16_value(bfloat16_bits(single)));
}

Array random_array(const Shape& shape, std::uint32_t seed) {
  Array array(shape);
  std::uint64_t state = 0x9E3779B97F4A7C15ULL * (seed + 1);
  for (double& value : array.values) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    value = static_cast<double>(state >> 40) / static_cast<double>(1 << 22) - 2.0;
  }
  return array;
}

Array positive_array(const Shape& shape, std::uint32_t seed) {
  Array array = random_array(shape, seed);
  for (double& value : array.values) value = std::fabs(value) + 0.5;
  return array;
}

Array round_all(Array array, npu_dtype dtype) {
  for (double& value : array.values) value = rounded(value, dtype);
  return array;
}

Array map_values(const Array& a, const std::function<double(double)>& function) {
  Array result = a;
  for (double& value : result.values) value = function(value);
  return result;
}

Array zip_values(const Array& a, const Array& b,
                 const std::function<double(double, double)>& function) {
  const std::size_t rank = std::max(a.shape.size(), b.shape.size());
  const auto extent = [&](const Array& array, std::size_t i) {
    const std::size_t missing = rank - array.shape.size();
    return i < missing ? 1 : array.shape[i - missing];
  };
  Shape shape;
  for (std::size_t i = 0; i < rank; ++i) shape.push_back(std::max(extent(a, i), extent(b, i)));
  Array result(shape);
  const auto pick = [&](const Array& array, const Index& index) {
    Index own;
    for (std::size_t i = rank - array.shape.size(); i < rank; ++i) {
      own.push_back(extent(array, i) == 1 ? 0 : index[i]);
    }
    return array.at(own);
  };
  for_each(shape, [&](const Index& index) {
    result.at(index) = function(pick(a, index), pick(b, index));
  });
  return result;
}

Array convolve(const Array& x, const Array& w, const Array* bias, const ConvArguments& arguments) {
  Shape shape{x.shape[0], w.shape[0]};
  for (std::size_t i = 0; i < 2; ++i) {
    const std::int64_t span = arguments.dilation[i] * (w.shape[i + 2] - 1) + 1;
    shape.push_back((x.shape[i + 2] + arguments.pad_begin[i] + arguments.pad_end[i] - span) /
                        arguments.stride[i] +
                    1);
  }
  const std::int64_t inputs = w.shape[1];
  const std::int64_t outputs = w.shape[0] / arguments.groups;
  Array result(shape);
  for_each(shape, [&](const Index& o) {
    double sum = bias != nullptr ? bias->at({o[1]}) : 0.0;
    for_each({inputs, w.shape[2], w.shape[3]}, [&](const Index& k) {
      const std::int64_t y =
          o[2] * arguments.stride[0] - arguments.pad_begin[0] + k[1] * arguments.dilation[0];
      const std::int64_t z =
          o[3] * arguments.stride[1] - arguments.pad_begin[1] + k[2] * arguments.dilation[1];
      if (y < 0 || y >= x.shape[2] || z < 0 || z >= x.shape[3]) return;
      sum += x.at({o[0], o[1] / outputs * inputs + k[0], y, z}) * w.at({o[1], k[0], k[1], k[2]});
    });
    result.at(o) = sum;
  });
  return result;
}

Array normalize_channels(const Array& x, const Array* weight, const Array* bias, const Array& mean,
                         const Array& variance, double epsilon) {
  Array result(x.shape);
  for_each(x.shape, [&](const Index& i) {
    const Index c{i[1]};
    double value = (x.at(i) - mean.at(c)) / std::sqrt(variance.at(c) + epsilon);
    if (weight != nullptr) value *= weight->at(c);
    if (bias != nullptr) value += bias->at(c);
    result.at(i) = value;
  });
  return result;
}

Array pool(const Array& x, const Shape& shape, const PoolArguments& arguments, bool maximum) {
  Array result(shape);
  for_each(shape, [&](const Index& o) {
    double best = -INFINITY;
    double sum = 0.0;
    std::int64_t inside = 0;
    std::int64_t padded = 0;
    for_each(arguments.kernel, [&](const Index& k) {
      std::int64_t at[2];
      bool in = true;
      bool in_padding = true;
      for (std::size_t i = 0; i < 2; ++i) {
        at[i] =
            o[i + 2] * arguments.stride[i] - arguments.padding[i] + k[i] * arguments.dilation[i];
        in = in && at[i] >= 0 && at[i] < x.shape[i + 2];
        in_padding = in_padding && at[i] < x.shape[i + 2] + arguments.padding[i];
      }
      padded += in_padding ? 1 : 0;
      if (!in) return;
      ++inside;
      const double value = x.at({o[0], o[1], at[0], at[1]});
      best = std::max(best, value);
      sum += value;
    });
    std::int64_t divisor = arguments.count_include_pad ? padded : inside;
    if (arguments.divisor != 0) divisor = arguments.divisor;
    result.at(o) = maximum ? best : sum / static_cast<double>(divisor);
  });
  return result;
}

Array pool_adaptively(const Array& x, std::int64_t height, std::int64_t width) {
  Array result({x.shape[0], x.shape[1], height, width});
  for_each(result.shape, [&](const Index& o) {
    const std::int64_t y0 = o[2] * x.shape[2] / height;
    const std::int64_t y1 = ((o[2] + 1) * x.shape[2] + height - 1) / height;
    const std::int64_t x0 = o[3] * x.shape[3] / width;
    const std::int64_t x1 = ((o[3] + 1) * x.shape[3] + width - 1) / width;
    double sum = 0.0;
    for_each({y1 - y0, x1 - x0}, [&](const Index& k) {
      sum += x.at({o[0], o[1], y0 + k[0], x0 + k[1]});
    });
    result.at(o) = sum / static_cast<double>((y1 - y0) * (x1 - x0));
  });
  return result;
}

Array mean_over(const Array& x, const std::set<std::size_t>& dimensions, bool keep) {
  Shape kept = x.shape;
  double count = 1.0;
  for (const std::size_t d : dimensions) {
    count *= static_cast<double>(x.shape[d]);
    kept[d] = 1;
  }
  Array sums(kept);
  for_each(x.shape, [&](Index index) {
    const double value = x.at(index);
    for (const std::size_t d : dimensions) index[d] = 0;
    sums.at(index) += value / count;
  });
  if (!keep) {
    for (auto d = dimensions.rbegin(); d != dimensions.rend(); ++d) {
      sums.shape.erase(sums.shape.begin() + static_cast<std::ptrdiff_t>(*d));
    }
  }
  return sums;
}

Array multiply(const Array& a, const Array& b) {
  const std::int64_t rows = a.shape[a.shape.size() - 2];
  const std::int64_t inner = a.shape.back();
  const std::int64_t columns = b.shape.back();
  Array a_batch(Shape(a.shape.begin(), a.shape.end() - 2));
  Array b_batch(Shape(b.shape.begin(), b.shape.end() - 2));
  std::iota(a_batch.values.begin(), a_batch.values.end(), 0.0);
  std::iota(b_batch.values.begin(), b_batch.values.end(), 0.0);
  const Array a_at = zip_values(a_batch, b_batch, [](double x, double) { return x; });
  const Array b_at = zip_values(a_batch, b_batch, [](double, double y) { return y; });
  Shape shape = a_at.shape;
  shape.insert(shape.end(), {rows, columns});
  Array result(shape);
  for (std::size_t batch = 0; batch < a_at.values.size(); ++batch) {
    const auto a_begin = static_cast<std::int64_t>(a_at.values[batch]) * rows * inner;
    const auto b_begin = static_cast<std::int64_t>(b_at.values[batch]) * inner * columns;
    for_each({rows, columns, inner}, [&](const Index& i) {
      result.values[batch * static_cast<std::size_t>(rows * columns) +
                    static_cast<std::size_t>(i[0] * columns + i[1])] +=
          a.values[static_cast<std::size_t>(a_begin + i[0] * inner + i[2])] *
          b.values[static_cast<std::size_t>(b_begin + i[2] * columns + i[1])];
    });
  }
  return result;
}

Array permute(const Array& x, const std::vector<std::size_t>& order) {
  Shape shape;
  for (const std::size_t d : order) shape.push_back(x.shape[d]);
  Array result(shape);
  for_each(shape, [&](const Index& o) {
    Index i(o.size());
    for (std::size_t d = 0; d < order.size(); ++d) i[order[d]] = o[d];
    result.at(o) = x.at(i);
  });
  return result;
}

Array swap_last(const Array& x) {
  std::vector<std::size_t> order(x.shape.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::swap(order[order.size() - 1], order[order.size() - 2]);
  return permute(x, order);
}

Array softmax(const Array& x, std::size_t dimension, bool logarithm) {
  Array result(x.shape);
  for_each(x.shape, [&](Index index) {
    const std::int64_t own = index[dimension];
    double largest = -INFINITY;
    for (index[dimension] = 0; index[dimension] < x.shape[dimension]; ++index[dimension]) {
      largest = std::max(largest, x.at(index));
    }
    double sum = 0.0;
    for (index[dimension] = 0; index[dimension] < x.shape[dimension]; ++index[dimension]) {
      sum += std::exp(x.at(index) - largest);
    }
    index[dimension] = own;
    const double shifted = x.at(index) - largest;
    result.at(index) = logarithm ? shifted - std::log(sum) : std::exp(shifted) / sum;
  });
  return result;
}

Array normalize_rows(const Array& x, std::size_t width, const Array* weight, const Array* bias,
                     double epsilon) {
  Array result = x;
  for (std::size_t begin = 0; begin < x.values.size(); begin += width) {
    double mean = 0.0;
    double variance = 0.0;
    for (std::size_t i = 0; i < width; ++i)
      mean += x.values[begin + i] / static_cast<double>(width);
    for (std::size_t i = 0; i < width; ++i) {
      variance +=
          (x.values[begin + i] - mean) * (x.values[begin + i] - mean) / static_cast<double>(width);
    }
    for (std::size_t i = 0; i < width; ++i) {
      double value = (x.values[begin + i] - mean) / std::sqrt(variance + epsilon);
      if (weight != nullptr) value *= weight->values[i];
      if (bias != nullptr) value += bias->values[i];
      result.values[begin + i] = value;
    }
  }
  return result;
}

Array concatenate(const std::vector<Array>& parts, std::size_t dimension) {
  Shape shape = parts.front().shape;
  shape[dimension] = 0;
  for (const Array& part : parts) shape[dimension] += part.shape[dimension];
  Array result(shape);
  std::int64_t begin = 0;
  for (const Array& part : parts) {
    for_each(part.shape, [&](Index index) {
      const double value = part.at(index);
      index[dimension] += begin;
      result.at(index) = value;
    });
    begin += part.shape[dimension];
  }
  return result;
}

Array slice(const Array& x, std::size_t dimension, std::int64_t start, std::int64_t count,
            std::int64_t step) {
  Shape shape = x.shape;
  shape[dimension] = count;
  Array result(shape);
  for_each(shape, [&](Index index) {
    const Index target = index;
    index[dimension] = start + index[dimension] * step;
    result.at(target) = x.at(index);
  });
  return result;
}

Array reshape(Array x, Shape shape) {
  x.shape = std::move(shape);
  return x;
}

}  // namespace npu::test
