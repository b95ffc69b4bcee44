// SPDX-License-Identifier: Apache-2.0
// Resampling: images at other sizes and at places that a grid names.
#include <algorithm>
#include <cmath>

#include "npu/support/ids.hpp"
#include "op_rows.hpp"
#include "ops/op_name.hpp"

namespace npu::test {
namespace {

/// An element along one dimension with its weight.
struct Tap {
  std::int64_t place;
  Bounded weight;
};
using Taps = std::vector<Tap>;

/// The two elements around a position, or the four of a cubic; places may lie outside.
Taps taps_at(Bounded position, bool cubic) {
  const double floor = std::floor(position.value);
  const auto first = static_cast<std::int64_t>(floor);
  const Bounded t{position.value - floor, position.error};
  const Bounded rest = number(1) - t;
  if (!cubic) {
    Taps taps{{first, rest}, {first + 1, t}};
    // Rounded, it may lie on the other side of an element.
    if (t.value <= position.error) taps.push_back({first - 1, {0, position.error}});
    if (rest.value <= position.error) taps.push_back({first + 2, {0, position.error}});
    return taps;
  }
  const double a = -0.75;
  const auto near = [&](Bounded x) {
    return (number(a + 2) * x - number(a + 3)) * x * x + number(1);
  };
  const auto far = [&](Bounded x) {
    return ((number(a) * x - number(5 * a)) * x + number(8 * a)) * x - number(4 * a);
  };
  return {{first - 1, far(t + number(1))},
          {first, near(t)},
          {first + 1, near(rest)},
          {first + 2, far(rest + number(1))}};
}

// ---- Sizes ----

void draw_upsample(NodeDraw& d) {
  const std::int64_t count = spatial_rank(d.op);
  Shape otherwise{d.pick(1, 2), d.one_of<std::int64_t>({1, 3, 16, 24})};
  for (std::int64_t i = 0; i < count; ++i) otherwise.push_back(d.pick(1, count == 3 ? 5 : 9));
  const Shape shape = d.subject(
      count + 2, count + 2, Fill::kAny,
      [](const Shape& s) { return count_of(s) > 0 && s.back() < 20; }, otherwise);
  Ints size;
  std::vector<double> factors;
  const bool by_size = d.chance(50);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t factor = d.pick(1, 3);
    size.push_back(by_size ? d.pick(1, 9) : shape[index_of(i + 2)] * factor);
    factors.push_back(d.op.ends_with(".vec") && shape[index_of(i + 2)] > 1
                          ? d.one_of({1.0, 1.5, 2.0, 0.5, 2.3})
                          : static_cast<double>(factor));
  }
  if (d.op.find("nearest") == std::string::npos) d.attrs["align_corners"] = d.chance(50);
  if (d.op.ends_with(".vec")) {
    d.attrs["output_size"] = by_size ? Json(size) : Json(nullptr);
    d.attrs["scale_factors"] = by_size ? Json(nullptr) : Json(factors);
    return;
  }
  d.attrs["output_size"] = size;
  for (std::int64_t i = 0; i < count && !by_size && d.chance(70); ++i) {
    const std::string name = count == 1 ? "scales" : std::string("scales_") + "dhw"[3 - count + i];
    d.attrs[name] = factors[index_of(i)];
  }
}

/// `is_exact`: nearest neighbours do not follow the factor.
Taps resized(const Call& call, std::int64_t at, std::int64_t in, std::int64_t out, double factor,
             bool is_exact) {
  const bool corners = call.boolean("align_corners"), cubic = call.is("cubic");
  // In float32, as PyTorch defines the place of the nearest element.
  const auto step = static_cast<float>(
      factor > 0 ? 1 / factor : static_cast<double>(in) / static_cast<double>(out));
  if (is_exact) return {{at * in / out, number(1)}};
  if (call.is("nearest")) {
    const auto half = call.is("exact") ? 0.5F : 0.0F;
    const float position = (static_cast<float>(at) + half) * step;
    return {{std::clamp<std::int64_t>(static_cast<std::int64_t>(std::floor(position)), 0, in - 1),
             number(1)}};
  }
  // PyTorch reads an element that stays in its place twice, the second time with a weight of 0.
  if (in == out && !cubic) return {{at, number(1)}, {at, {0, 0x1p-24}}};
  const double scale =
      corners ? (out > 1 ? static_cast<double>(in - 1) / static_cast<double>(out - 1) : 0)
              : static_cast<double>(step);
  double position =
      corners ? static_cast<double>(at) * scale : (static_cast<double>(at) + 0.5) * scale - 0.5;
  if (!cubic && position < 0) position = 0;
  const Bounded inexact{position, 0x1p-22 * (std::abs(position) + 1)};
  Taps taps = taps_at(inexact, cubic);
  for (Tap& tap : taps) tap.place = std::clamp<std::int64_t>(tap.place, 0, in - 1);
  return taps;
}

Results upsample(const Call& call) {
  const Values& x = call.operand(0);
  Ints size;
  if (call.has("output_size")) size = call.integers("output_size");
  std::vector<double> factors(x.shape.size() - 2, 0);
  if (call.has("scale_factors")) factors = call.numbers("scale_factors");
  if (factors.size() == 1) factors = {call.number_or("scales", factors[0])};
  for (std::size_t i = 0; i < factors.size() && factors.size() > 1; ++i) {
    factors[i] = call.number_or(std::string("scales_") + "dhw"[3 - factors.size() + i], factors[i]);
  }
  Shape shape(x.shape.begin(), x.shape.begin() + 2);
  std::vector<std::vector<Taps>> taps(factors.size());
  for (std::size_t i = 0; i < factors.size(); ++i) {
    const std::int64_t in = x.shape[i + 2];
    shape.push_back(size.empty() ? static_cast<std::int64_t>(static_cast<double>(in) * factors[i])
                                 : size[i]);
    // PyTorch takes a single channel for the last dimension of its memory, where this holds.
    const std::int64_t out = shape.back();
    const bool is_exact = call.is("nearest") && !call.is("exact") && x.shape[1] == 1 &&
                          factors.size() > 1 && (out == in || out == 2 * in);
    for (std::int64_t at = 0; at < out; ++at)
      taps[i].push_back(resized(call, at, in, out, factors[i], is_exact));
  }
  Values result = make_values(shape, x.dtype);
  for_each_place(shape, [&](std::size_t i, const Shape& place) {
    Shape counts;
    for (std::size_t k = 0; k < taps.size(); ++k)
      counts.push_back(std::ssize(taps[k][index_of(place[k + 2])]));
    Sum sum;
    Bounded only;
    for_each_place(counts, [&](std::size_t, const Shape& which) {
      Shape from = place;
      Bounded weight = number(1);
      for (std::size_t k = 0; k < taps.size(); ++k) {
        const Tap& tap = taps[k][index_of(place[k + 2])][index_of(which[k])];
        from[k + 2] = tap.place;
        weight = k == 0 ? tap.weight : weight * tap.weight;
      }
      only = x.at(from);
      // The weights of a cubic's elements add up to 1.375 at most, in one dimension after the
      // other.
      const double part = 1.375 * std::abs(only.value);
      if (call.is("cubic") && std::isfinite(part) && part > Rounding::now().most) only = anything();
      // One that may have no weight may not be read, either.
      const bool may_be_left_out = weight.error > 0 && std::abs(weight.value) <= weight.error;
      if (may_be_left_out && !std::isfinite(only.value)) only = anything();
      sum.add_product(weight, only);
    });
    result.data[i] = call.is("nearest") ? only : sum.result();
  });
  return {result};
}

// ---- Grids ----

void draw_grid(NodeDraw& d) {
  const Shape shape = d.subject(4, 4, Fill::kAny, is_filled);
  d.beside({shape[0], d.pick(1, 9), d.pick(1, 12), 2}, 50);
  d.attrs = {{"interpolation_mode", d.pick(0, 2)},
             {"padding_mode", d.pick(0, 2)},
             {"align_corners", d.chance(50)}};
}

/// A position put back into the image, by its border or by reflection.
double put_back(double p, double extent, std::int64_t padding, bool corners) {
  if (padding == 2) {
    const double least = corners ? 0 : -0.5, span = corners ? extent - 1 : extent;
    if (span == 0) return 0;
    p = std::abs(p - least);
    const double turns = std::floor(p / span), rest = p - turns * span;
    p = std::fmod(turns, 2) == 0 ? rest + least : span - rest + least;
  }
  return padding == 0 ? p : std::clamp(p, 0.0, extent - 1);
}

Results grid_sample(const Call& call) {
  const Values& x = call.tensor("input");
  const Values& grid = call.tensor("grid");
  const std::int64_t mode = call.integer("interpolation_mode"),
                     padding = call.integer("padding_mode");
  const bool corners = call.boolean("align_corners"), cubic = mode == 2;
  Values result = make_values({x.shape[0], x.shape[1], grid.extent(1), grid.extent(2)}, x.dtype);
  for_each_place(result.shape, [&](std::size_t i, const Shape& place) {
    Taps taps[2];
    bool is_open = false;
    for (std::int64_t k = 0; k < 2; ++k) {  // rows first; the grid has columns first
      const auto extent = static_cast<double>(x.extent(2 + k));
      const Bounded g = grid.at({place[0], place[2], place[3], 1 - k});
      if (!(std::abs(g.value * extent) + g.error <= Rounding::now().most)) is_open = true;
      const double position =
          corners ? (g.value + 1) / 2 * (extent - 1) : ((g.value + 1) * extent - 1) / 2;
      const double error =
          g.error * extent / 2 + 6 * Rounding::now().unit * (std::abs(g.value) + 2) * extent;
      const double inside = cubic ? position : put_back(position, extent, padding, corners);
      if (mode == 1) {
        is_open = is_open || std::abs(std::abs(inside - std::floor(inside)) - 0.5) <= error;
        taps[k] = {{static_cast<std::int64_t>(std::nearbyint(inside)), number(1)}};
      } else if (std::isfinite(inside)) {
        taps[k] = taps_at({inside, error}, cubic);
      }
      for (Tap& tap : taps[k]) {
        if (cubic)
          tap.place = static_cast<std::int64_t>(
              std::nearbyint(put_back(static_cast<double>(tap.place), extent, padding, corners)));
      }
    }
    Sum sum;
    for (const Tap& row : taps[0]) {
      for (const Tap& column : taps[1]) {
        const bool is_inside = row.place >= 0 && row.place < x.extent(2) && column.place >= 0 &&
                               column.place < x.extent(3);
        if (is_inside)
          sum.add_product(row.weight * column.weight,
                          x.at({place[0], place[1], row.place, column.place}));
      }
    }
    result.data[i] = is_open ? anything() : sum.result();
  });
  return {result};
}

const OpRow kRows[] = {
    {"upsample_nearest1d upsample_nearest2d upsample_nearest3d _upsample_nearest_exact1d "
     "_upsample_nearest_exact2d _upsample_nearest_exact3d",
     draw_upsample, upsample, OpRow::Rounds::kNothing},
    {"upsample_linear1d upsample_bilinear2d upsample_trilinear3d upsample_bicubic2d", draw_upsample,
     upsample},
    {"grid_sampler grid_sampler_2d", draw_grid, grid_sample}};

}  // namespace

std::span<const OpRow> sampling_rows() { return kRows; }

}  // namespace npu::test
