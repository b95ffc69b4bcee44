// SPDX-License-Identifier: Apache-2.0
// A convolution whose groups have fewer channels than a vector, or do not end where vectors do.
//
// A vector holds target channels of one or several groups. Input k of them lies in other lanes of
// other vectors, so the rows of the source that a row of results reads are first written to planes,
// one for each k, with every input in the lane of its result and zeros around. What is left is a
// depthwise convolution for each plane, whose sums stay in registers. Planes hold the rows of a
// tile of results as a ring, so that a row is written once for all rows that read it, and are cut
// into columns that stay in the L1. An input is permuted, never multiplied with zero: what other
// groups hold does not matter.
//
// A piece of work is a band of rows of a vector of target channels of an image.
// O(results * inputs of a group * taps / lanes) multiply-adds of vectors and a permutation for
// every vector of a plane; memory for each thread O(planes).
#include "kernels/convolution/grouped_convolution.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "kernels/base/footprint_builder.hpp"
#include "kernels/base/range.hpp"
#include "kernels/base/share_work.hpp"
#include "kernels/base/simd.hpp"

namespace npu::onednn {

namespace {

constexpr std::int64_t kRun = 14;             // results of a row at a time
constexpr std::int64_t kPlaneFloats = 5120;   // 20 KiB of the L1, if columns are not narrower
constexpr std::int64_t kPiecesPerThread = 8;  // fewer are uneven
constexpr std::int64_t kPadding = 16;         // a line between threads

/// Rows, or columns, that so many results read.
std::int64_t span_of(const GroupedConvolution& call, int dimension, std::int64_t results) {
  return (results - 1) * call.stride[dimension] +
         (call.taps[dimension] - 1) * call.dilation[dimension] + 1;
}

/// Tiles that a row of results is cut into.
std::int64_t tiles_of(const GroupedConvolution& call) {
  const std::int64_t width = call.target_extent[1];
  const std::int64_t rows = call.inputs() * span_of(call, 0, 1) * lanes_of(call.isa);
  const std::int64_t room = kPlaneFloats / rows - span_of(call, 1, 1);
  const std::int64_t fitting = room < 0 ? 0 : room / call.stride[1] + 1;
  return ceil_div(width, std::clamp(fitting, std::min(kRun, width), width));
}

/// Bands that the rows of results are cut into.
std::int64_t bands_of(const GroupedConvolution& call) {
  const std::int64_t pieces = call.batch * call.target_channels / lanes_of(call.isa);
  const std::int64_t wanted = ceil_div(kPiecesPerThread * call.threads, pieces);
  const std::int64_t least_rows = ceil_div(2 * span_of(call, 0, 1), call.stride[0]);
  return std::clamp<std::int64_t>(call.target_extent[0] / least_rows, 1, wanted);
}

/// Of the scratch memory of a thread, in floats.
struct Sizes {
  std::int64_t planes;
  std::int64_t row;    ///< of results
  std::int64_t lanes;  ///< where inputs lie
  std::int64_t all() const { return planes + row + lanes + kPadding; }
};

Sizes sizes_of(const GroupedConvolution& call) {
  const std::int64_t lanes = lanes_of(call.isa);
  const std::int64_t width = ceil_div(call.target_extent[1], tiles_of(call));
  const std::int64_t plane = span_of(call, 0, 1) * span_of(call, 1, width) * lanes;
  return {call.inputs() * plane, width * lanes, 2 * call.inputs() * lanes};
}

struct Piece {
  const GroupedConvolution* call;
  const GroupedConvolution::Operands* operands;
  float* planes;        ///< [inputs, rows of a ring, line, lanes]
  float* row;           ///< of results: [width of a tile, lanes]
  std::int32_t* lanes;  ///< [inputs, 2, lanes]: the lane that an input comes from, and its block
  std::int64_t image;
  std::int64_t block;  ///< of target channels
  Range y;
};

/// The columns of results of a tile, and what its planes hold of the source.
struct Tile {
  Range x;
  std::int64_t line;   ///< vectors of a row of a plane
  std::int64_t first;  ///< column of the source that is a plane's first, or below 0
};

/// value[lanes[i]] in lane i. `kInQuarters`: of the same four lanes, which takes AVX2 less time.
template <bool kInQuarters, typename V>
NPU_INLINE V permuted(V value, typename IntegersOf<V>::Type lanes) {
#if defined(__clang__)
  V result;
  for (std::int64_t i = 0; i < kLanesOf<V>; ++i) result[i] = value[lanes[i]];
  return result;
#else
#if NPU_HAS_X86
  if constexpr (kInQuarters && sizeof(V) == sizeof(Float8)) {
    return __builtin_ia32_vpermilvarps256(value, lanes);  // reads the lowest two bits
  } else
#endif
  {
    return __builtin_shuffle(value, lanes);
  }
#endif
}

template <typename V>
NPU_INLINE typename IntegersOf<V>::Type load_lanes(const std::int32_t* from) {
  typename IntegersOf<V>::Type result;
  std::memcpy(&result, from, sizeof result);
  return result;
}

/// Where the inputs of this piece's results lie.
template <typename V>
NPU_INLINE void find_lanes(const Piece& piece) {
  constexpr std::int64_t kLanes = kLanesOf<V>;
  const GroupedConvolution& call = *piece.call;
  const std::int64_t outputs = call.target_channels / call.groups;
  for (std::int64_t k = 0; k < call.inputs(); ++k) {
    std::int32_t* lanes = piece.lanes + k * 2 * kLanes;
    for (std::int64_t lane = 0; lane < kLanes; ++lane) {
      const std::int64_t group = (piece.block * kLanes + lane) / outputs;
      const std::int64_t channel = group * call.inputs() + k;
      lanes[lane] = static_cast<std::int32_t>(channel % kLanes);
      lanes[kLanes + lane] = static_cast<std::int32_t>(channel / kLanes);
    }
  }
}

template <typename V>
NPU_INLINE void fill_zeros(float* to, std::int64_t vectors) {
  for (std::int64_t i = 0; i < vectors; ++i) store_vector(to + i * kLanesOf<V>, V{});
}

/// Whether every result's input is one of the same four lanes of one vector.
template <typename V>
NPU_INLINE bool stays_in_quarters(const std::int32_t* lanes) {
  constexpr std::int64_t kLanes = kLanesOf<V>;
  bool stays = true;
  for (std::int32_t i = 0; i < kLanes; ++i) {
    stays = stays && lanes[i] / 4 == i / 4 && lanes[kLanes + i] == lanes[kLanes];
  }
  return stays;
}

/// `count` vectors of a row of a plane.
template <typename V>
NPU_INLINE void permute_row(const Piece& piece, const std::int32_t* lanes, std::int64_t row,
                            std::int64_t column, std::int64_t count, float* to) {
  constexpr std::int64_t kLanes = kLanesOf<V>;
  const GroupedConvolution& call = *piece.call;
  const std::int64_t blocks = call.source_channels / kLanes;
  const std::int64_t plane = call.source_extent[0] * call.source_extent[1] * kLanes;
  const auto from_lane = load_lanes<V>(lanes);
  const auto from_block = load_lanes<V>(lanes + kLanes);
  const std::int32_t first = lanes[kLanes];
  const std::int32_t last = lanes[2 * kLanes - 1];
  const float* from = piece.operands->source + (piece.image * blocks + first) * plane +
                      (row * call.source_extent[1] + column) * kLanes;
  if (stays_in_quarters<V>(lanes)) {
    for (std::int64_t x = 0; x < count; ++x, from += kLanes, to += kLanes) {
      store_vector(to, permuted<true>(load_vector<V>(from), from_lane));
    }
    return;
  }
  for (std::int64_t x = 0; x < count; ++x, from += kLanes, to += kLanes) {
    V value = permuted<false>(load_vector<V>(from), from_lane);
    for (std::int32_t block = first + 1; block <= last; ++block) {
      const V next = permuted<false>(load_vector<V>(from + (block - first) * plane), from_lane);
      value = from_block == block ? next : value;
    }
    store_vector(to, value);
  }
}

/// Brings a row of the source, which may lie outside, into its place in every plane.
template <typename V>
NPU_INLINE void fill_row(const Piece& piece, const Tile& tile, std::int64_t row) {
  constexpr std::int64_t kLanes = kLanesOf<V>;
  const GroupedConvolution& call = *piece.call;
  const std::int64_t ring = span_of(call, 0, 1);
  const std::int64_t slot = (row + call.pad[0]) % ring;
  const bool is_inside = row >= 0 && row < call.source_extent[0];
  const std::int64_t left =
      is_inside ? std::clamp<std::int64_t>(-tile.first, 0, tile.line) : tile.line;
  const std::int64_t right = std::clamp(call.source_extent[1] - tile.first, left, tile.line);
  for (std::int64_t k = 0; k < call.inputs(); ++k) {
    float* to = piece.planes + (k * ring + slot) * tile.line * kLanes;
    fill_zeros<V>(to, left);
    permute_row<V>(piece, piece.lanes + k * 2 * kLanes, row, tile.first + left, right - left,
                   to + left * kLanes);
    fill_zeros<V>(to + right * kLanes, tile.line - right);
  }
}

/// Some results side by side.
struct Run {
  const float* planes;  ///< at the first result's column
  const float* weight;
  std::int64_t inputs;
  std::int64_t plane;  ///< floats from one k to the next
  std::int64_t line;   ///< from one row to the next
  std::int64_t ring;   ///< rows
  std::int64_t slot;   ///< of the first row
  const GroupedConvolution* call;
  float* to;
};

/// `kStride` 0: that of the call.
template <typename V, int kStride, int kCount>
NPU_INLINE void filter_run(const Run& run) {
  constexpr std::int64_t kLanes = kLanesOf<V>;
  const GroupedConvolution& call = *run.call;
  const std::int64_t step = (kStride == 0 ? call.stride[1] : kStride) * kLanes;
  const std::int64_t taps = call.taps[1];
  const std::int64_t between = call.dilation[1] * kLanes;
  const float* weight = run.weight;
  const float* plane = run.planes;
  V sums[kCount];
#pragma GCC unroll 16
  for (int i = 0; i < kCount; ++i) sums[i] = V{};
  for (std::int64_t k = 0; k < run.inputs; ++k, plane += run.plane) {
    std::int64_t slot = run.slot;
    for (std::int64_t row = 0; row < call.taps[0]; ++row) {
      const float* from = plane + slot * run.line;
#pragma GCC unroll 1
      for (std::int64_t tap = 0; tap < taps; ++tap, from += between, weight += kLanes) {
        const V factor = load_vector<V>(weight);
#pragma GCC unroll 16
        for (int i = 0; i < kCount; ++i) sums[i] += load_vector<V>(from + i * step) * factor;
      }
      slot += call.dilation[0];
      if (slot >= run.ring) slot -= run.ring;
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < kCount; ++i) store_vector(run.to + i * kLanes, sums[i]);
}

using Filter = void (*)(const Run&);
template <int kStride, int kCount>
NPU_TARGET_AVX512 void filter_avx512(const Run& run) {
  filter_run<Float16, kStride, kCount>(run);
}
template <int kStride, int kCount>
NPU_TARGET_AVX2 void filter_avx2(const Run& run) {
  filter_run<NarrowFloats, kStride, kCount>(run);
}
template <typename V, int kStride, int... kCount>
constexpr std::array<Filter, sizeof...(kCount)> filter_table(
    std::integer_sequence<int, kCount...> /*counts*/) {
  if constexpr (kIsWide<V>) {
    return {filter_avx512<kStride, kCount + 1>...};
  } else {
    return {filter_avx2<kStride, kCount + 1>...};
  }
}
constexpr std::make_integer_sequence<int, kRun> kCounts;
template <typename V>
constexpr std::array<Filter, kRun> kFilters[3]{
    filter_table<V, 0>(kCounts), filter_table<V, 1>(kCounts), filter_table<V, 2>(kCounts)};

/// The results of row `y` of a tile, whose planes are filled.
template <typename V>
NPU_INLINE void filter_row(const Piece& piece, const Tile& tile, std::int64_t y) {
  constexpr std::int64_t kLanes = kLanesOf<V>;
  const GroupedConvolution& call = *piece.call;
  const std::int64_t ring = span_of(call, 0, 1);
  const auto& filters = kFilters<V>[call.stride[1] > 2 ? 0 : call.stride[1]];
  Run run{piece.planes,
          piece.operands->weight + piece.block * call.inputs() * call.all_taps() * kLanes,
          call.inputs(),
          ring * tile.line * kLanes,
          tile.line * kLanes,
          ring,
          y * call.stride[0] % ring,
          &call,
          piece.row};
  const std::int64_t runs = ceil_div(tile.x.size(), kRun);
  for (std::int64_t i = 0; i < runs; ++i) {
    const Range part = part_of(tile.x.size(), i, runs);
    run.planes = piece.planes + part.begin * call.stride[1] * kLanes;
    run.to = piece.row + part.begin * kLanes;
    filters[static_cast<std::size_t>(part.size() - 1)](run);
  }
  const GroupedConvolution::Operands& operands = *piece.operands;
  const V bias = call.has_bias ? load_vector<V>(operands.bias + piece.block * kLanes) : V{};
  const std::int64_t blocks = call.target_channels / kLanes;
  const std::int64_t row =
      ((piece.image * blocks + piece.block) * call.target_extent[0] + y) * call.target_extent[1];
  store_with_steps(call.epilogue, operands.epilogue.data(), piece.row, kLanes, bias, tile.x.size(),
                   operands.target, (row + tile.x.begin) * kLanes);
}

template <typename V>
NPU_INLINE void run_piece(const Piece& piece) {
  const GroupedConvolution& call = *piece.call;
  find_lanes<V>(piece);
  const std::int64_t tiles = tiles_of(call);
  for (std::int64_t i = 0; i < tiles; ++i) {
    const Range x = part_of(call.target_extent[1], i, tiles);
    const Tile tile{x, span_of(call, 1, x.size()), x.begin * call.stride[1] - call.pad[1]};
    std::int64_t filled = piece.y.begin * call.stride[0] - call.pad[0];
    for (std::int64_t y = piece.y.begin; y < piece.y.end; ++y) {
      const std::int64_t top = y * call.stride[0] - call.pad[0];
      const std::int64_t bottom = top + span_of(call, 0, 1);
      for (filled = std::max(filled, top); filled < bottom; ++filled) {
        fill_row<V>(piece, tile, filled);
      }
      filter_row<V>(piece, tile, y);
    }
  }
}

NPU_TARGET_AVX2 void run_avx2(const Piece& piece) { run_piece<NarrowFloats>(piece); }
NPU_TARGET_AVX512 void run_avx512(const Piece& piece) { run_piece<Float16>(piece); }

}  // namespace

StridedCopy GroupedConvolution::weight_order() const {
  const std::int64_t lanes = lanes_of(isa);
  const std::int64_t inner = inputs() * all_taps();
  StridedCopy order{sizeof(float),
                    {target_channels / lanes, inner, lanes},
                    {lanes * inner, 1, inner},
                    {inner * lanes, lanes, 1}};
  order.simplify();
  return order;
}

std::size_t GroupedConvolution::scratch_bytes() const {
  return static_cast<std::size_t>(sizes_of(*this).all() * threads) * sizeof(float);
}

GroupedConvolution::Operands GroupedConvolution::bind(Addresses addresses) const {
  OperandReader in(addresses);
  Operands operands{};
  operands.source = in.next<const float>();
  operands.weight = in.next<const float>();
  operands.bias = in.next_if<const float>(has_bias);
  operands.epilogue = in.epilogue(epilogue);
  operands.target = in.next<float>();
  operands.scratch = in.next<float>();
  return operands;
}

void GroupedConvolution::run(const Operands& operands) const {
  const auto body = isa == VectorIsa::kAvx512 ? run_avx512 : run_avx2;
  const Sizes sizes = sizes_of(*this);
  const std::int64_t bands = bands_of(*this);
  const std::int64_t blocks = target_channels / lanes_of(isa);
  share_pieces(batch * blocks * bands, threads, [&](std::int64_t piece, int thread) {
    float* planes = operands.scratch + thread * sizes.all();
    float* row = planes + sizes.planes;
    void* lanes = row + sizes.row;
    body({this, &operands, planes, row, static_cast<std::int32_t*>(lanes), piece / bands / blocks,
          piece / bands % blocks, part_of(target_extent[0], piece % bands, bands)});
  });
}

Footprint footprint(const GroupedConvolution& kernel) {
  require_isa(kernel.isa, VectorIsa::kAvx2);
  const std::int64_t lanes = lanes_of(kernel.isa);
  const Count groups = at_least_one(kernel.groups, "groups");
  for (const std::int64_t channels : {kernel.source_channels, kernel.target_channels}) {
    require(channels > 0 && channels % lanes == 0 && channels % groups.value() == 0,
            "channels fill no vectors, or no groups");
  }
  Count source = at_least_one(kernel.batch, "batch") * kernel.source_channels;
  Count target = Count{kernel.batch} * kernel.target_channels;
  Count weights = Count{kernel.inputs()} * kernel.target_channels;
  Count planes = Count{kernel.inputs()} * lanes;
  for (int i = 0; i < 2; ++i) {
    const Count taps = at_least_one(kernel.taps[i], "taps");
    const Count extent = at_least_one(kernel.target_extent[i], "target_extent");
    source = source * at_least_one(kernel.source_extent[i], "source_extent");
    target = target * extent;
    weights = weights * taps;
    const Count span = extent * at_least_one(kernel.stride[i], "stride") +
                       taps * at_least_one(kernel.dilation[i], "dilation");
    static_cast<void>(span + Count{kernel.pad[i]});
    planes = planes * (i == 0 ? taps * kernel.dilation[i] : span);
  }
  FootprintBuilder builder;
  builder.read(source)
      .read(weights)
      .read_if(kernel.has_bias, kernel.target_channels)
      .read_epilogue(kernel.epilogue, target)
      .write(target);
  const Count rest = (Count{2} * kernel.inputs() + kernel.target_extent[1] + 2) * lanes;
  return builder.with_scratch(kernel, (planes + rest) * kFloat);
}

}  // namespace npu::onednn
