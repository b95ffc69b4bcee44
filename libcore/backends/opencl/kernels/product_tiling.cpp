// SPDX-License-Identifier: Apache-2.0
// Of a short list of tilings the rule takes the one whose estimate is least: the larger of what the
// arithmetic needs on all units of the device and of what one unit needs for the tiles it gets, one
// step after the other. Large products take large tiles, whose items have many sums for each value
// they read; small ones take small tiles, and slices of their summands, so that no unit is idle.
// O(length of the list).
#include "kernels/product_tiling.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace npu::opencl {
namespace {

// The first ones have 64 work items, which each device has.
constexpr std::array<Tiling, 21> kGpuTilings = {
    {{16, 16, 16, 8, 8, 1},    {16, 32, 16, 8, 8, 1},    {32, 32, 16, 8, 8, 1},
     {64, 64, 16, 8, 8, 1},    {16, 16, 16, 8, 8, 4},    {16, 16, 16, 8, 8, 8},
     {16, 32, 16, 8, 8, 4},    {16, 32, 16, 8, 8, 8},    {32, 32, 16, 8, 8, 4},
     {32, 32, 16, 8, 8, 8},    {32, 64, 16, 8, 16, 1},   {32, 64, 16, 8, 16, 4},
     {64, 32, 16, 16, 8, 4},   {64, 64, 16, 8, 8, 2},    {64, 64, 16, 16, 16, 1},
     {64, 64, 16, 16, 16, 2},  {128, 64, 16, 16, 8, 1},  {64, 128, 16, 8, 16, 1},
     {128, 64, 16, 16, 16, 1}, {64, 128, 16, 16, 16, 1}, {128, 128, 8, 16, 16, 1}}};

constexpr std::array<Tiling, 6> kCpuTilings = {{{4, 32, 64, 1, 1},
                                                {4, 64, 64, 1, 1},
                                                {8, 16, 64, 1, 1},
                                                {8, 64, 64, 1, 1},
                                                {16, 32, 64, 1, 1},
                                                {8, 32, 128, 1, 1}}};

double rounds(std::int64_t extent, std::int64_t size) {
  return static_cast<double>((std::max<std::int64_t>(extent, 1) + size - 1) / size);
}

std::int64_t value_bytes(const ProductSpec& spec) {
  return static_cast<std::int64_t>(dtype_size(spec.dtype) < 4 ? 4 : dtype_size(spec.dtype));
}

std::int64_t tile_bytes(const ProductSpec& spec, const Tiling& t) {
  const std::int64_t padding = t.items() == 1 ? 0 : 2 * kTilePadding;
  return (t.m + t.n + padding) * t.k * t.slices * value_bytes(spec);
}

/// Whether a device computes a product in such tiles.
bool fits(const Machine& machine, const ProductSpec& spec, const Tiling& t) {
  constexpr std::int64_t kTableBytes = 16;      // of the parts of a summand
  constexpr std::int64_t kMostPrivate = 65536;  // bytes of an array that an item has to itself
  const std::int64_t items = t.items() * t.slices;
  if (t.m % t.items_m != 0 || t.n % t.items_n != 0 || items > machine.max_group) return false;
  if ((t.slices & (t.slices - 1)) != 0) return false;
  const std::int64_t sums = t.rows() * t.columns() * value_bytes(spec);
  if (items == 1) return sums + tile_bytes(spec, t) <= kMostPrivate;
  // Half of the slices leave their sums where the tiles were, which may be of half the size.
  const std::int64_t room =
      tile_bytes(spec, t) / (spec.dtype == DType::kFloat16 && machine.has_float16 ? 2 : 1);
  const bool has_room_for_sums = t.slices / 2 * t.m * t.n * value_bytes(spec) <= room;
  return t.items() > 1 && has_room_for_sums && sums <= kMostPrivate &&
         tile_bytes(spec, t) + kTableBytes * t.k * t.slices <= machine.local_bytes;
}

/// Steps of one lane of a unit, of which a unit of today's devices has about 128.
double estimate(const Machine& machine, const ProductSpec& spec, const Tiling& t) {
  constexpr double kLanes = 128;
  constexpr double kMostItems = 1024;       // of a unit at the same time, by their registers
  constexpr double kBusyItems = 320;        // that keep its lanes busy
  constexpr double kMostTiles = 4 * 49152;  // bytes of local memory of a unit
  constexpr double kStepLatency = 1200;     // a tile from memory, and two barriers
  constexpr double kResult = 30;            // its place, the ops behind it, and a store
  const auto units = static_cast<double>(std::max<std::int64_t>(machine.compute_units, 1));
  const double groups = rounds(spec.m, t.m) * rounds(spec.n, t.n) *
                        static_cast<double>(std::max<std::int64_t>(spec.batch, 1));
  const auto items = static_cast<double>(t.items() * t.slices);
  // An item reads rows + columns values for rows * columns products.
  const auto sums = static_cast<double>(t.rows() * t.columns());
  const double reads = static_cast<double>(t.rows() + t.columns()) / 2;
  const double products = static_cast<double>(t.k) * (sums + reads + 2) * items / kLanes;
  const double loads =
      static_cast<double>((t.m * 8 + t.n * (spec.parts ? 20 : 12)) * t.k * t.slices) / kLanes;
  const double of_unit = std::ceil(groups / units);
  const double room = std::max(
      1.0, std::min(kMostItems / items, kMostTiles / static_cast<double>(tile_bytes(spec, t))));
  const double together = std::min(of_unit, room);
  const double idle = std::max(1.0, kBusyItems / (items * together));
  const double step = std::max((products + loads) * together * idle, kStepLatency);
  const double results = kResult * static_cast<double>(t.m * t.n) / kLanes * together;
  return of_unit / together * (rounds(spec.k, t.k * t.slices) * step + results);
}

Tiling choose_tiling(const Machine& machine, const ProductSpec& spec) {
  if (machine.is_cpu) {
    const std::int64_t m = spec.m >= 8 ? 8 : std::max<std::int64_t>(spec.m, 1);
    return {m, 32, 64, 1, 1};
  }
  Tiling best = kGpuTilings.front();
  double least = std::numeric_limits<double>::infinity();
  for (const Tiling& each : kGpuTilings) {
    if (!fits(machine, spec, each)) continue;
    const double time = estimate(machine, spec, each);
    if (time >= least) continue;
    least = time;
    best = each;
  }
  return best;
}

/// As tables of tuning have them; a sixth number only where there are slices.
std::vector<std::int64_t> sizes_of(const Tiling& t) {
  std::vector<std::int64_t> sizes{t.m, t.n, t.k, t.items_m, t.items_n};
  if (t.slices != 1) sizes.push_back(t.slices);
  return sizes;
}

}  // namespace

std::int64_t vector_width(DType dtype, std::int64_t count) {
  std::int64_t width = dtype_size(dtype) == 8 ? 2 : 4;
  while (count % width != 0) width /= 2;
  return width;
}

Tunable tunable_of(const Machine& machine, const ProductSpec& spec) {
  Tunable tunable;
  tunable.key = "product " + std::string(dtype_name(spec.dtype)) + " b" + text_of(spec.batch) +
                " m" + text_of(spec.m) + " n" + text_of(spec.n) + " k" + text_of(spec.k) + " " +
                (spec.left_is_transposed ? "t" : "n") + (spec.right_is_transposed ? "t" : "n");
  tunable.candidates.push_back(sizes_of(choose_tiling(machine, spec)));
  const auto add = [&](const Tiling& each) {
    const std::vector<std::int64_t> sizes = sizes_of(each);
    const bool is_new = std::ranges::find(tunable.candidates, sizes) == tunable.candidates.end();
    // A tile of more than twice the rows would mostly be empty, as would slices without summands.
    const bool is_filled = each.m < 2 * std::max<std::int64_t>(spec.m, 1) &&
                           (each.slices == 1 || each.k * each.slices <= spec.k);
    if (is_new && is_filled && fits(machine, spec, each)) tunable.candidates.push_back(sizes);
  };
  if (machine.is_cpu) {
    std::ranges::for_each(kCpuTilings, add);
  } else {
    std::ranges::for_each(kGpuTilings, add);
  }
  return tunable;
}

Tiling tiling_of(const Machine& machine, const ProductSpec& spec, const Tunable& tunable) {
  const auto* sizes = tuned_sizes(machine, tunable.key);
  if (sizes == nullptr) return choose_tiling(machine, spec);
  const auto is_size = [](std::int64_t size) { return size >= 1 && size <= 4096; };
  const bool is_list = sizes->size() == 5 || sizes->size() == 6;
  if (!is_list || !std::ranges::all_of(*sizes, is_size)) refuse_tuning(tunable.key, *sizes);
  const std::vector<std::int64_t>& s = *sizes;
  const Tiling tiling{s[0], s[1], s[2], s[3], s[4], s.size() == 6 ? s[5] : 1};
  if (!fits(machine, spec, tiling)) refuse_tuning(tunable.key, s);
  return tiling;
}

}  // namespace npu::opencl
