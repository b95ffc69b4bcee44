// SPDX-License-Identifier: Apache-2.0
// Reductions, products and convolutions by their definitions.
#include "conformance/oracle/reduce.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>

#include "npu/support/error.hpp"
#include "npu/support/ids.hpp"
#include "ops/op_name.hpp"

namespace npu::conformance {
Shape dims_of(const Call& call, std::int64_t rank) {
  Shape dims;
  if (call.has("dim")) dims = call.integers("dim");
  for (std::int64_t& dim : dims) dim += dim < 0 ? rank : 0;
  std::sort(dims.begin(), dims.end());
  if (dims.empty()) {
    dims.resize(index_of(rank));
    std::iota(dims.begin(), dims.end(), 0);
  }
  if (!dims.empty() && dims.back() >= rank) refuse("no such dimension");
  return dims;
}

Values reduce(const Values& x, const Shape& dims, bool keeps, DType dtype,
              const std::function<Bounded(std::span<const Bounded>)>& fold) {
  Shape kept = x.shape;
  Shape shape;
  for (std::int64_t d = 0; d < x.rank(); ++d) {
    const bool is_joined = std::find(dims.begin(), dims.end(), d) != dims.end();
    if (is_joined) kept[index_of(d)] = 1;
    if (keeps || !is_joined) shape.push_back(kept[index_of(d)]);
  }
  Values result = make_values(kept, dtype);
  std::vector<std::vector<Bounded>> parts(result.data.size());
  for_each_place(x.shape, [&](std::size_t i, Shape place) {
    std::int64_t into = 0;
    for (std::size_t d = 0; d < place.size(); ++d) {
      into = into * kept[d] + (kept[d] == 1 ? 0 : place[d]);
    }
    parts[index_of(into)].push_back(x.data[i]);
  });
  for (std::size_t i = 0; i < parts.size(); ++i) result.data[i] = fold(parts[i]);
  result.shape = shape;
  return result;
}

void along(Values& x, std::int64_t dim, const std::function<void(std::span<Bounded>)>& change) {
  const std::int64_t extent = x.extent(dim);
  std::int64_t inner = 1;
  for (std::int64_t d = dim + 1; d < x.rank(); ++d) inner *= x.extent(d);
  if (x.data.empty()) return;
  const std::int64_t outer = std::ssize(x.data) / (extent * inner);
  std::vector<Bounded> row(index_of(extent));
  for (std::int64_t o = 0; o < outer * inner; ++o) {
    Bounded* first = &x.data[index_of(o / inner * extent * inner + o % inner)];
    for (std::int64_t i = 0; i < extent; ++i) row[index_of(i)] = first[i * inner];
    change(row);
    for (std::int64_t i = 0; i < extent; ++i) first[i * inner] = row[index_of(i)];
  }
}

// Whatever is subtracted first cancels, so that it has no error; only the differences are rounded.
// A function inside of a softmax keeps what is small beside the largest absolutely: 4 units in the
// last place of 2^-20 of that.
void softmax_row(std::span<Bounded> row, bool logarithm) {
  double largest = -HUGE_VAL;
  double unknown = 0;
  for (const Bounded x : row) {
    largest = std::isnan(x.value) || std::isnan(largest) ? double{NAN} : std::max(largest, x.value);
    if (!x.is_known()) unknown = anything().error;
  }
  Sum sum;
  std::vector<Bounded> shifted;
  for (const Bounded x : row) {
    shifted.push_back(rounded(x.value - largest, x.error, std::abs(x.value - largest)));
    sum.add(apply([](double v) { return std::exp(v); }, shifted.back()));
  }
  const Bounded total = sum.result();
  const double small = Rounding::now().row_least;
  for (std::size_t i = 0; i < row.size(); ++i) {
    if (logarithm) {
      row[i] = shifted[i] - apply([](double v) { return std::log(v); }, total);
      row[i].error += Rounding::now().unit;
    } else {
      row[i] = apply([](double v) { return std::exp(v); }, shifted[i]) / total;
      const double share = static_cast<double>(row.size()) * std::abs(row[i].value);
      if (row[i].value != 0) row[i].error += small * (1 + share);
    }
    row[i].error += unknown;
  }
}

// ---- Products ----

namespace {

/// One sum of products of `count` elements at steps, fast where all are numbers.
Bounded dot(const Bounded* a, std::int64_t a_step, const Bounded* b, std::int64_t b_step,
            std::int64_t count, Sum& sum) {
  for (std::int64_t i = 0; i < count; ++i) {
    const Bounded x = a[i * a_step];
    const Bounded y = b[i * b_step];
    const double value = x.value * y.value;
    const double error = std::abs(x.value) * y.error + std::abs(y.value) * x.error;
    if (std::isfinite(value + error)) {
      const double magnitude = std::abs(value);
      sum.add(value, error + x.error * y.error + Rounding::now().unit * magnitude, magnitude);
    } else {
      sum.add_product(x, y);
    }
  }
  return sum.result();
}

}  // namespace

Values contract(const Values& a, std::string_view a_labels, const Values& b,
                std::string_view b_labels, std::string_view result_labels) {
  std::map<char, std::int64_t> extents;
  const auto note = [&](const Values& operand, std::string_view labels) {
    if (std::ssize(labels) != operand.rank()) refuse("labels do not fit the rank");
    for (std::size_t i = 0; i < labels.size(); ++i) {
      std::int64_t& extent = extents.try_emplace(labels[i], 1).first->second;
      const std::int64_t own = operand.shape[i];
      if (extent != 1 && own != 1 && extent != own) refuse("extents differ");
      if (extent == 1) extent = own;
    }
  };
  note(a, a_labels);
  note(b, b_labels);
  std::string summed;
  for (const auto& [label, extent] : extents) {
    if (result_labels.find(label) == std::string_view::npos) summed += label;
  }
  const auto steps_of = [&](const Values& operand, std::string_view labels, std::string_view of) {
    Shape steps(of.size(), 0);
    std::int64_t step = 1;
    for (std::size_t i = labels.size(); i-- > 0;) {
      for (std::size_t k = 0; k < of.size(); ++k) {
        // A label may stand twice: both move on.
        if (of[k] == labels[i] && operand.shape[i] != 1) steps[k] += step;
      }
      step *= operand.shape[i];
    }
    return steps;
  };
  Shape shape, inner;
  for (const char label : result_labels) shape.push_back(extents.at(label));
  for (const char label : summed) inner.push_back(extents.at(label));
  std::int64_t count = 1;
  std::string last;
  if (!summed.empty()) {
    last = summed.back();
    count = inner.back();
    summed.pop_back();
    inner.pop_back();
  }
  if (static_cast<double>(count_of(shape)) * static_cast<double>(count_of(inner) * count) > 4e6) {
    refuse("too much work");
  }
  const Shape a_outer = steps_of(a, a_labels, result_labels),
              a_inner = steps_of(a, a_labels, summed);
  const Shape b_outer = steps_of(b, b_labels, result_labels),
              b_inner = steps_of(b, b_labels, summed);
  const std::int64_t a_last = last.empty() ? 0 : steps_of(a, a_labels, last)[0];
  const std::int64_t b_last = last.empty() ? 0 : steps_of(b, b_labels, last)[0];
  Values result = make_values(shape, a.dtype);
  for_each_place(shape, [&](std::size_t i, const Shape& place) {
    const std::int64_t a_at =
        std::inner_product(place.begin(), place.end(), a_outer.begin(), std::int64_t{0});
    const std::int64_t b_at =
        std::inner_product(place.begin(), place.end(), b_outer.begin(), std::int64_t{0});
    Sum sum;
    for_each_place(inner, [&](std::size_t, const Shape& k) {
      const std::int64_t x =
          a_at + std::inner_product(k.begin(), k.end(), a_inner.begin(), std::int64_t{0});
      const std::int64_t y =
          b_at + std::inner_product(k.begin(), k.end(), b_inner.begin(), std::int64_t{0});
      dot(a.data.data() + x, a_last, b.data.data() + y, b_last, count, sum);
    });
    result.data[i] = sum.result();
  });
  return result;
}

// ---- Convolutions ----

namespace {

/// With three dimensions of space, of which the first may be 1.
using Space = std::array<std::int64_t, 3>;

Space space_of(const Shape& values, std::int64_t missing) {
  Space space{missing, missing, missing};
  std::copy(values.begin(), values.end(), space.end() - std::ssize(values));
  return space;
}

struct Tap {
  std::int64_t image;
  std::int64_t weight;
};

/// Normwise: a transformed tile mixes all of its pixels with growing factors.
double tile_error(const Bounded* image, std::int64_t pixels, const Bounded* weight,
                  std::int64_t taps) {
  double largest = 0;
  double sum = 0;
  for (std::int64_t i = 0; i < pixels; ++i) {
    if (std::isfinite(image[i].value)) largest = std::max(largest, std::abs(image[i].value));
  }
  for (std::int64_t k = 0; k < taps; ++k) sum += std::abs(weight[k].value);
  return largest * sum * Rounding::now().unit * Rounding::now().tile_growth;
}

}  // namespace

Values convolve(const Values& x, const Values& w, const Values* bias, const Convolution& how) {
  const std::int64_t spatial = x.rank() - 2;
  if (spatial < 1 || spatial > 3 || w.rank() != x.rank() || how.groups < 1)
    refuse("no convolution");
  const auto tail = [&](const Shape& shape) { return Shape(shape.begin() + 2, shape.end()); };
  const Space in = space_of(tail(x.shape), 1), kernel = space_of(tail(w.shape), 1);
  const Space stride = space_of(how.stride, 1), dilation = space_of(how.dilation, 1);
  const Space begin = space_of(how.pad_begin, 0), end = space_of(how.pad_end, 0);
  const Space more = space_of(how.output_padding, 0);
  const std::int64_t per_group = how.transposed ? w.shape[1] : w.shape[0] / how.groups;
  const std::int64_t channels = x.shape[1] / how.groups;
  if (x.shape[1] % how.groups != 0 ||
      (how.transposed ? w.shape[0] != x.shape[1] : w.shape[1] != channels)) {
    refuse("channels differ");
  }
  Space out{};
  for (std::size_t i = 0; i < 3; ++i) {
    const std::int64_t span = dilation[i] * (kernel[i] - 1) + 1;
    const std::int64_t room = in[i] + begin[i] + end[i] - span;
    if (!how.transposed && room < 0) refuse("no window fits");
    out[i] = how.transposed ? (in[i] - 1) * stride[i] - begin[i] - end[i] + span + more[i]
                            : room / stride[i] + 1;
    if (out[i] < 1) refuse("nothing is left");
  }
  Shape shape{x.shape[0], per_group * how.groups};
  shape.insert(shape.end(), out.end() - spatial, out.end());
  Values result = make_values(shape, x.dtype);
  const std::int64_t pixels = in[0] * in[1] * in[2], taps = kernel[0] * kernel[1] * kernel[2];
  const std::int64_t places = out[0] * out[1] * out[2];
  std::vector<Tap> used;
  const auto collect = [&](std::int64_t place) {
    const Space at{place / (out[1] * out[2]), place / out[2] % out[1], place % out[2]};
    used.clear();
    for (std::int64_t k = 0; k < taps; ++k) {
      const Space tap{k / (kernel[1] * kernel[2]), k / kernel[2] % kernel[1], k % kernel[2]};
      std::int64_t offset = 0;
      bool is_inside = true;
      for (std::size_t i = 0; i < 3; ++i) {
        std::int64_t from = how.transposed ? at[i] + begin[i] - tap[i] * dilation[i]
                                           : at[i] * stride[i] - begin[i] + tap[i] * dilation[i];
        if (how.transposed) {
          is_inside = is_inside && from >= 0 && from % stride[i] == 0;
          from /= stride[i];
        }
        is_inside = is_inside && from >= 0 && from < in[i];
        offset = offset * in[i] + from;
      }
      if (is_inside) used.push_back({offset, k});
    }
  };
  const double growth = how.transposed || taps == 1 ? 0 : Rounding::now().tile_growth;
  for (std::int64_t place = 0; place < places; ++place) {
    collect(place);
    for (std::int64_t n = 0; n < x.shape[0]; ++n) {
      for (std::int64_t f = 0; f < per_group * how.groups; ++f) {
        const std::int64_t group = f / per_group;
        Sum sum;
        double extra = 0;
        for (std::int64_t c = 0; c < channels; ++c) {
          const std::int64_t channel = group * channels + c;
          const Bounded* image = &x.data[index_of((n * x.shape[1] + channel) * pixels)];
          const std::int64_t filter =
              how.transposed ? channel * per_group + f % per_group : f * channels + c;
          const Bounded* weight = &w.data[index_of(filter * taps)];
          for (const Tap tap : used) dot(image + tap.image, 0, weight + tap.weight, 0, 1, sum);
          if (growth > 0) extra += tile_error(image, pixels, weight, taps);
        }
        if (bias != nullptr) sum.add(bias->data[index_of(f)]);
        Bounded& y = result.data[index_of((n * per_group * how.groups + f) * places + place)];
        y = sum.result();
        if (std::isfinite(y.value)) y.error += extra;
      }
    }
  }
  return result;
}

void draw_convolution(NodeDraw& d) {
  const std::string_view name = functional_name(d.op);
  const bool general = name == "convolution";
  const bool transposed =
      name.find("transpose") != std::string_view::npos || (general && d.chance(30));
  const std::int64_t spatial = general ? d.pick(1, 3) : spatial_rank(d.op);
  Shape otherwise{d.chance(60) ? 1 : d.pick(2, 3),
                  d.one_of<std::int64_t>({1, 2, 3, 4, 5, 8, 16, 17, 24, 32, 64})};
  for (std::int64_t i = 0; i < spatial; ++i) otherwise.push_back(d.pick(1, spatial == 3 ? 6 : 14));
  const Shape x = d.subject(
      spatial + 2, spatial + 2, Fill::kAny, [](const Shape& shape) { return shape[1] > 0; },
      otherwise);
  const std::int64_t in = x[1];
  std::int64_t groups = 1;
  if (d.chance(35)) {
    std::vector<std::int64_t> divisors;
    for (std::int64_t g = 1; g <= in; ++g) {
      if (in % g == 0) divisors.push_back(g);
    }
    groups = divisors[index_of(d.pick(0, std::ssize(divisors) - 1))];
  }
  std::int64_t per_group = d.one_of<std::int64_t>({1, 1, 2, 3, 4, 5, 8, 16, 17, 32});
  if (d.chance(30)) per_group = std::max<std::int64_t>(in / groups, 1);
  if (per_group * groups > 96) per_group = 1;
  Shape kernel, stride, padding, dilation, output_padding;
  const std::int64_t style = d.pick(0, 2);
  const std::int64_t one = d.one_of<std::int64_t>({1, 3});
  const std::int64_t pads = d.pick(0, 3);
  const std::int64_t pad = d.pick(0, 3);
  const bool strides = d.chance(35), dilates = d.chance(20);
  std::string mode;
  if (d.op.ends_with(".padding")) mode = d.chance(50) ? "same" : "valid";
  for (std::int64_t i = 0; i < spatial; ++i) {
    const std::int64_t extent = x[index_of(i + 2)];
    kernel.push_back(style == 0 ? one : d.one_of<std::int64_t>({1, 1, 2, 3, 3, 4, 5}));
    if (spatial == 3) kernel.back() = std::min<std::int64_t>(kernel.back(), 3);
    dilation.push_back(dilates ? d.pick(1, 3) : 1);
    stride.push_back(strides && mode != "same" ? d.pick(1, 3) : 1);
    std::int64_t span = dilation.back() * (kernel.back() - 1) + 1;
    padding.push_back(pads == 0   ? 0
                      : pads == 1 ? span / 2
                      : pads == 2 ? pad
                                  : d.pick(0, kernel.back() + 1));
    if (!mode.empty()) padding.back() = 0;
    if (!transposed && mode != "same" && span > extent + 2 * padding.back()) {
      kernel.back() = span = 1;
    }
    output_padding.push_back(
        transposed && d.chance(30) ? d.pick(0, std::max(stride.back(), dilation.back()) - 1) : 0);
    const std::int64_t made =
        (extent - 1) * stride.back() - 2 * padding.back() + span + output_padding.back();
    if (transposed && made < 1) padding.back() = 0;
  }
  Shape weight = transposed ? Shape{in, per_group} : Shape{per_group * groups, in / groups};
  weight.insert(weight.end(), kernel.begin(), kernel.end());
  if (count_of(x) * count_of(weight) / in > (1 << 19))
    weight[transposed ? 1 : 0] = transposed ? 1 : groups;
  const std::int64_t out = transposed ? weight[1] * groups : weight[0];
  d.beside(weight, 85);
  if (d.chance(60)) d.beside({out}, 85);
  d.attrs = {{"stride", stride}, {"dilation", dilation}, {"groups", groups}};
  d.attrs["padding"] = mode.empty() ? Json(padding) : Json(mode);
  if (transposed || general) d.attrs["output_padding"] = output_padding;
  if (general) d.attrs["transposed"] = transposed;
}

std::vector<Values> convolution(const Call& call) {
  const Values& x = call.tensor("input");
  const Values& w = call.tensor("weight");
  const auto spatial = static_cast<std::size_t>(std::max<std::int64_t>(x.rank() - 2, 1));
  Convolution how{.stride = call.integers("stride"),
                  .pad_begin = {},
                  .pad_end = {},
                  .dilation = call.integers("dilation"),
                  .output_padding = {}};
  how.groups = call.integer("groups");
  how.transposed = call.is("transpose") || call.boolean("transposed");
  if (call.has("output_padding")) how.output_padding = call.integers("output_padding");
  how.stride.resize(spatial, how.stride.empty() ? 1 : how.stride.back());
  how.dilation.resize(spatial, how.dilation.empty() ? 1 : how.dilation.back());
  how.pad_begin.assign(spatial, 0);
  how.pad_end.assign(spatial, 0);
  const std::string mode = call.text("padding");
  for (std::size_t i = 0; i < spatial; ++i) {
    if (mode == "same") {
      const std::int64_t pads = how.dilation[i] * (w.shape.at(i + 2) - 1);
      how.pad_begin[i] = pads / 2;
      how.pad_end[i] = pads - pads / 2;
    } else if (mode.empty()) {
      const Shape padding = call.integers("padding");
      how.pad_begin[i] = how.pad_end[i] = padding.at(std::min(i, padding.size() - 1));
    }
  }
  return {convolve(x, w, call.find("bias"), how)};
}

}  // namespace npu::conformance
