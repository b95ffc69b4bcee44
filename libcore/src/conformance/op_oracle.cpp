// SPDX-License-Identifier: Apache-2.0
// Draws nodes and computes them by their definitions, in double precision and without a thought for
// speed. No backend is the reference, so that each of them can be checked.
#include "conformance/op_oracle.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "npu/support/ids.hpp"

namespace npu::conformance {
namespace {

std::int64_t count_of(const Shape& shape) {
  std::int64_t count = 1;
  for (const std::int64_t extent : shape) count *= extent;
  return count;
}

std::int64_t pick(Random& random, std::int64_t least, std::int64_t most) {
  return least + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(most - least + 1));
}

// Sizes 0 and 1, odd ones, and those just off a vector's.
std::int64_t draw_extent(Random& random) {
  constexpr std::int64_t kExtents[] = {1, 1, 2, 3, 4, 5, 7, 8, 9, 17};
  return pick(random, 0, 39) == 0 ? 0 : kExtents[pick(random, 0, 9)];
}

Shape draw_shape(Random& random, std::int64_t least_rank, std::int64_t most_rank) {
  Shape shape;
  const std::int64_t rank = pick(random, least_rank, most_rank);
  for (std::int64_t i = 0; i < rank; ++i) {
    std::int64_t extent = draw_extent(random);
    if (count_of(shape) * extent > 4096) extent = 1;
    shape.push_back(extent);
  }
  return shape;
}

Values make(const Shape& shape) { return {shape, std::vector<double>(index_of(count_of(shape)))}; }

// Calls `visit` with the place of every element, in row-major order.
template <typename Visit>
void for_each_place(const Shape& shape, const Visit& visit) {
  Shape place(shape.size(), 0);
  const std::int64_t count = count_of(shape);
  for (std::int64_t i = 0; i < count; ++i) {
    visit(i, place);
    for (std::size_t d = shape.size(); d-- > 0;) {
      if (++place[d] < shape[d]) break;
      place[d] = 0;
    }
  }
}

std::size_t offset_of(const Shape& shape, const Shape& place) {
  std::int64_t offset = 0;
  for (std::size_t d = 0; d < shape.size(); ++d) offset = offset * shape[d] + place[d];
  return index_of(offset);
}

// The element of an operand that broadcasts to `place` of the result.
double broadcast_at(const Values& operand, const Shape& place) {
  Shape own(operand.shape.size());
  const std::size_t skip = place.size() - own.size();
  for (std::size_t d = 0; d < own.size(); ++d) {
    own[d] = operand.shape[d] == 1 ? 0 : place[skip + d];
  }
  return operand.data[offset_of(operand.shape, own)];
}

OpDefinition unary(std::string name, bool takes_integers, double (*function)(double)) {
  const auto draw = [name, function](Random& random) {
    DrawnNode node{.op = name, .operands = {draw_shape(random, 0, 5)}, .result = {}};
    node.result = node.operands.front();
    node.evaluate = [function](const std::vector<Values>& operands) {
      Values result = operands.front();
      for (double& value : result.data) value = function(value);
      return result;
    };
    return node;
  };
  return {std::move(name), takes_integers, takes_integers && function(1) >= 0, draw};
}

OpDefinition binary(std::string name, bool takes_integers, bool takes_unsigned,
                    double (*function)(double, double)) {
  const auto draw = [name, function](Random& random) {
    DrawnNode node{.op = name, .operands = {}, .result = draw_shape(random, 0, 5)};
    const Shape result = node.result;
    for (int i = 0; i < 2; ++i) {
      // Half of them are like the result; the other operand is, where this one broadcasts.
      Shape shape = result;
      if (i == 1 && random() % 2 == 0) {
        shape.erase(shape.begin(), shape.begin() + pick(random, 0, std::ssize(shape)));
        for (std::int64_t& extent : shape) {
          if (random() % 3 == 0) extent = 1;
        }
      }
      node.operands.push_back(shape);
    }
    if (random() % 2 == 0) std::swap(node.operands[0], node.operands[1]);
    node.evaluate = [function, result](const std::vector<Values>& operands) {
      Values values = make(result);
      for_each_place(result, [&](std::int64_t i, const Shape& place) {
        values.data[index_of(i)] =
            function(broadcast_at(operands[0], place), broadcast_at(operands[1], place));
      });
      return values;
    };
    return node;
  };
  return {std::move(name), takes_integers, takes_unsigned, draw};
}

// A sum, mean or maximum over some dimensions.
OpDefinition reduction(std::string name, double start, double (*join)(double, double),
                       bool is_mean) {
  const auto draw = [name, start, join, is_mean](Random& random) {
    DrawnNode node{.op = name, .operands = {draw_shape(random, 1, 4)}, .result = {}};
    Shape& shape = node.operands.front();
    for (std::int64_t& extent : shape) extent = std::max<std::int64_t>(extent, 1);
    std::vector<std::int64_t> dims;
    for (std::int64_t d = 0; d < std::ssize(shape); ++d) {
      if (random() % 2 == 0) dims.push_back(d);
    }
    if (dims.empty()) dims.push_back(std::ssize(shape) - 1);
    const bool keeps = random() % 2 == 0;
    Shape kept = shape;
    std::int64_t joined = 1;
    for (const std::int64_t d : dims) joined *= std::exchange(kept[index_of(d)], 1);
    for (std::int64_t d = 0; d < std::ssize(shape); ++d) {
      const bool is_joined = std::find(dims.begin(), dims.end(), d) != dims.end();
      if (keeps || !is_joined) node.result.push_back(kept[index_of(d)]);
    }
    node.attrs = {{"dim", dims}, {"keepdim", keeps}};
    const double divisor = is_mean ? static_cast<double>(joined) : 1;
    node.evaluate = [kept, start, join, divisor,
                     result = node.result](const std::vector<Values>& operands) {
      Values values = make(kept);
      std::fill(values.data.begin(), values.data.end(), start);
      for_each_place(operands[0].shape, [&](std::int64_t i, Shape place) {
        for (std::size_t d = 0; d < place.size(); ++d) place[d] = std::min(place[d], kept[d] - 1);
        double& into = values.data[offset_of(kept, place)];
        into = join(into, operands[0].data[index_of(i)]);
      });
      for (double& value : values.data) value /= divisor;
      values.shape = result;
      return values;
    };
    return node;
  };
  return {std::move(name), false, false, draw};
}

DrawnNode draw_softmax(Random& random) {
  DrawnNode node{.op = "aten.softmax.int", .operands = {draw_shape(random, 1, 4)}, .result = {}};
  Shape& shape = node.operands.front();
  for (std::int64_t& extent : shape) extent = std::max<std::int64_t>(extent, 1);
  node.result = shape;
  const std::int64_t dim = pick(random, 0, std::ssize(shape) - 1);
  node.attrs = {{"dim", random() % 2 == 0 ? dim : dim - std::ssize(shape)}};
  node.evaluate = [dim](const std::vector<Values>& operands) {
    Values result = operands.front();
    Shape kept = result.shape;
    kept[index_of(dim)] = 1;
    Values sums = make(kept);
    for (double& value : result.data) value = std::exp(value);
    const auto sum_of = [&](Shape place) -> double& {
      place[index_of(dim)] = 0;
      return sums.data[offset_of(kept, place)];
    };
    for_each_place(result.shape, [&](std::int64_t i, const Shape& place) {
      sum_of(place) += result.data[index_of(i)];
    });
    for_each_place(result.shape, [&](std::int64_t i, const Shape& place) {
      result.data[index_of(i)] /= sum_of(place);
    });
    return result;
  };
  return node;
}

// a[batch, rows, depth] times b; `b_is_transposed`: b[batch, columns, depth], as linear has it.
Values product(const Values& a, const Values& b, bool b_is_transposed, std::int64_t batches,
               std::int64_t rows, std::int64_t depth, std::int64_t columns) {
  Values result = make({batches, rows, columns});
  for (std::int64_t n = 0; n < batches; ++n) {
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t j = 0; j < columns; ++j) {
        double sum = 0;
        for (std::int64_t k = 0; k < depth; ++k) {
          const std::int64_t right = b_is_transposed ? j * depth + k : k * columns + j;
          sum += a.data[index_of((n * rows + i) * depth + k)] *
                 b.data[index_of(n * depth * columns + right)];
        }
        result.data[index_of((n * rows + i) * columns + j)] = sum;
      }
    }
  }
  return result;
}

DrawnNode draw_matrix_product(Random& random) {
  const int kind = static_cast<int>(random() % 3);  // mm, bmm, linear
  const std::int64_t batches = kind == 1 ? pick(random, 1, 3) : 1;
  const std::int64_t rows = pick(random, 1, 19);
  const std::int64_t depth = pick(random, 1, 33);
  const std::int64_t columns = pick(random, 1, 19);
  DrawnNode node;
  const char* const names[] = {"aten.mm.default", "aten.bmm.default", "aten.linear.default"};
  node.op = names[kind];
  node.operands = {{rows, depth}, {depth, columns}};
  node.result = {rows, columns};
  if (kind == 1) {
    node.operands = {{batches, rows, depth}, {batches, depth, columns}};
    node.result = {batches, rows, columns};
  }
  const bool has_bias = kind == 2 && random() % 2 == 0;
  if (kind == 2) node.operands[1] = {columns, depth};
  if (has_bias) node.operands.push_back({columns});
  node.evaluate = [=, result = node.result](const std::vector<Values>& operands) {
    Values values = product(operands[0], operands[1], kind == 2, batches, rows, depth, columns);
    values.shape = result;
    for (std::size_t i = 0; has_bias && i < values.data.size(); ++i) {
      values.data[i] += operands[2].data[i % index_of(columns)];
    }
    return values;
  };
  return node;
}

struct Window {
  std::int64_t batch, channels, height, width, filters, kernel, stride, padding;
  std::int64_t out(std::int64_t size) const { return (size + 2 * padding - kernel) / stride + 1; }
};

double convolve_at(const Window& w, const Values& image, const Values& filter, const Shape& at) {
  double sum = 0;
  for (std::int64_t c = 0; c < w.channels; ++c) {
    for (std::int64_t ky = 0; ky < w.kernel; ++ky) {
      for (std::int64_t kx = 0; kx < w.kernel; ++kx) {
        const std::int64_t y = at[2] * w.stride + ky - w.padding;
        const std::int64_t x = at[3] * w.stride + kx - w.padding;
        if (y < 0 || x < 0 || y >= w.height || x >= w.width) continue;
        sum += image.data[offset_of(image.shape, {at[0], c, y, x})] *
               filter.data[offset_of(filter.shape, {at[1], c, ky, kx})];
      }
    }
  }
  return sum;
}

DrawnNode draw_convolution(Random& random) {
  Window w{.batch = pick(random, 1, 2),
           .channels = pick(random, 1, 5),
           .height = pick(random, 5, 9),
           .width = pick(random, 5, 9),
           .filters = pick(random, 1, 9),
           .kernel = pick(random, 1, 3),
           .stride = pick(random, 1, 2),
           .padding = 0};
  w.padding = pick(random, 0, w.kernel / 2);
  DrawnNode node{.op = "aten.conv2d.default", .operands = {}, .result = {}};
  node.operands = {{w.batch, w.channels, w.height, w.width},
                   {w.filters, w.channels, w.kernel, w.kernel},
                   {w.filters}};
  node.result = {w.batch, w.filters, w.out(w.height), w.out(w.width)};
  node.attrs = {{"stride", {w.stride, w.stride}}, {"padding", {w.padding, w.padding}}};
  node.evaluate = [w, result = node.result](const std::vector<Values>& operands) {
    Values values = make(result);
    for_each_place(result, [&](std::int64_t i, const Shape& at) {
      values.data[index_of(i)] =
          convolve_at(w, operands[0], operands[1], at) + operands[2].data[index_of(at[1])];
    });
    return values;
  };
  return node;
}

DrawnNode draw_permute(Random& random) {
  DrawnNode node{
      .op = "aten.permute.default", .operands = {draw_shape(random, 1, 5)}, .result = {}};
  const Shape& shape = node.operands.front();
  std::vector<std::int64_t> dims(shape.size());
  for (std::size_t d = 0; d < dims.size(); ++d) dims[d] = static_cast<std::int64_t>(d);
  for (std::size_t d = dims.size(); d-- > 1;) std::swap(dims[d], dims[random() % (d + 1)]);
  for (const std::int64_t d : dims) node.result.push_back(shape[index_of(d)]);
  node.attrs = {{"dims", dims}};
  node.evaluate = [dims, result = node.result](const std::vector<Values>& operands) {
    Values values = make(result);
    for_each_place(result, [&](std::int64_t i, const Shape& at) {
      Shape from(at.size());
      for (std::size_t d = 0; d < dims.size(); ++d) from[index_of(dims[d])] = at[d];
      values.data[index_of(i)] = operands[0].data[offset_of(operands[0].shape, from)];
    });
    return values;
  };
  return node;
}

DrawnNode draw_cat(Random& random) {
  DrawnNode node{.op = "aten.cat.default", .operands = {}, .result = draw_shape(random, 1, 4)};
  const std::int64_t dim = pick(random, 0, std::ssize(node.result) - 1);
  std::int64_t& total = node.result[index_of(dim)];
  total = 0;
  const std::int64_t count = pick(random, 1, 3);
  for (std::int64_t i = 0; i < count; ++i) {
    Shape shape = node.result;
    shape[index_of(dim)] = pick(random, 1, 5);
    total += shape[index_of(dim)];
    node.operands.push_back(shape);
  }
  node.attrs = {{"dim", dim}, {"_tensor_list_sizes", {count}}};
  node.evaluate = [dim, result = node.result](const std::vector<Values>& operands) {
    Values values = make(result);
    for_each_place(result, [&](std::int64_t i, Shape at) {
      std::size_t from = 0;
      std::int64_t& along = at[index_of(dim)];
      while (along >= operands[from].shape[index_of(dim)]) {
        along -= operands[from++].shape[index_of(dim)];
      }
      values.data[index_of(i)] = operands[from].data[offset_of(operands[from].shape, at)];
    });
    return values;
  };
  return node;
}

double gelu(double x) { return x * 0.5 * (1 + std::erf(x / std::sqrt(2.0))); }
double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

}  // namespace

const std::vector<OpDefinition>& op_definitions() {
  static const std::vector<OpDefinition> definitions = {
      unary("aten.relu.default", true, [](double x) { return x < 0 ? 0 : x; }),
      unary("aten.neg.default", true, [](double x) { return -x; }),
      unary("aten.abs.default", true, [](double x) { return std::abs(x); }),
      unary("aten.exp.default", false, [](double x) { return std::exp(x); }),
      unary("aten.sqrt.default", false, [](double x) { return std::sqrt(x); }),
      unary("aten.tanh.default", false, [](double x) { return std::tanh(x); }),
      unary("aten.sigmoid.default", false, sigmoid),
      unary("aten.silu.default", false, [](double x) { return x * sigmoid(x); }),
      unary("aten.gelu.default", false, gelu),
      binary("aten.add.Tensor", true, true, [](double a, double b) { return a + b; }),
      binary("aten.sub.Tensor", true, false, [](double a, double b) { return a - b; }),
      binary("aten.mul.Tensor", true, true, [](double a, double b) { return a * b; }),
      binary("aten.div.Tensor", false, false, [](double a, double b) { return a / b; }),
      binary("aten.maximum.default", true, true, [](double a, double b) { return std::max(a, b); }),
      binary("aten.minimum.default", true, true, [](double a, double b) { return std::min(a, b); }),
      reduction(
          "aten.sum.dim_IntList", 0, [](double a, double b) { return a + b; }, false),
      reduction(
          "aten.mean.dim", 0, [](double a, double b) { return a + b; }, true),
      reduction(
          "aten.amax.default", -HUGE_VAL, [](double a, double b) { return std::max(a, b); }, false),
      {"aten.softmax.int", false, false, draw_softmax},
      {"matrix products", false, false, draw_matrix_product},
      {"aten.conv2d.default", false, false, draw_convolution},
      {"aten.permute.default", true, true, draw_permute},
      {"aten.cat.default", true, true, draw_cat}};
  return definitions;
}

}  // namespace npu::conformance
