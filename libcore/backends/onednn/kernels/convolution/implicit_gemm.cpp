// SPDX-License-Identifier: Apache-2.0
// A convolution as one product of matrices for each tap (implicit GEMM; Chetlur et al., cuDNN:
// Efficient Primitives for Deep Learning, 2014): with stride 1 the pixels that a tap reads for
// neighbouring results are neighbours, too, so that the micro-kernel reads the source where it
// lies. A tap is multiplied for those results only for which it reads the source and not the
// padding around: with a dilation close to the extent that is a small part of them.
//
// A piece of work is up to 192 results of two vectors of target channels. Their sums stay in the
// L1, as does the part of a tap's weights that they are multiplied with. How results are cut does
// not depend on the number of threads, nor how they are rounded.
//
// O(results * taps that do not read padding * channels in * channels out / lanes) multiply-adds of
// vectors; memory for each thread O(192 * lanes).
#include "kernels/convolution/implicit_gemm.hpp"

#include <algorithm>

#include "kernels/base/footprint_builder.hpp"
#include "kernels/base/gemm_micro_kernel.hpp"
#include "kernels/base/range.hpp"
#include "kernels/base/share_work.hpp"
#include "kernels/base/simd.hpp"

namespace npu::onednn {

namespace {

constexpr std::int64_t kMostPixels = 192;
constexpr std::int64_t kWeightsInL1 = 4096;  // floats: 16 KiB
constexpr std::int64_t kPadding = 16;        // a line between threads

/// How results of an image are cut into pieces.
struct Cuts {
  std::int64_t down;
  std::int64_t across;
};

Cuts cuts_of(const ImplicitGemm& call) {
  const std::int64_t across = ceil_div(call.target_extent[1], kMostPixels);
  const std::int64_t rows =
      std::max<std::int64_t>(1, kMostPixels / ceil_div(call.target_extent[1], across));
  return {ceil_div(call.target_extent[0], rows), across};
}

/// A rectangle of results of an image, for one panel of target channels.
struct Piece {
  const ImplicitGemm* call;
  const ImplicitGemm::Operands* operands;
  float* sums;  ///< [rows, width, panel]
  std::int64_t image;
  std::int64_t panel;
  Range y;
  Range x;
  std::int64_t width() const { return x.end - x.begin; }
};

/// Results of `all` for which a tap reads the source; its first result reads `shift`.
Range live(const Range& all, std::int64_t shift, std::int64_t extent) {
  return {std::max(all.begin, -shift), std::min(all.end, extent - shift)};
}

/// A part of a tap's weights, and the source that it is multiplied with.
struct Run {
  const float* source;  ///< of the channels' first block, as if the first result read pixel 0
  const float* weight;
  std::int64_t blocks;
};

/// sums[pixel, panel] += source pixels * weights, for `count` pixels side by side.
template <typename V>
NPU_INLINE void multiply(const Piece& piece, const Run& run, std::int64_t from, std::int64_t count,
                         std::int64_t to) {
  constexpr std::int64_t kLanes = kLanesOf<V>;
  constexpr std::int64_t kPanel = 2 * kLanes;
  const ImplicitGemm& call = *piece.call;
  const std::int64_t plane = call.source_extent[0] * call.source_extent[1] * kLanes;
  const std::int64_t length = run.blocks * kLanes;
  const std::int64_t tiles = ceil_div(count, kTileRowsOf<V>);
  for (std::int64_t tile = 0; tile < tiles; ++tile) {
    const Range pixels = part_of(count, tile, tiles);
    const auto rows = static_cast<std::size_t>(pixels.end - pixels.begin);
    // The weights behind are fetched by the first tiles, a line for each k.
    const std::int64_t fetched = tile * length * kLine;
    const float* ahead = run.weight + (fetched < length * kPanel ? length * kPanel + fetched : 0);
    kGemmMicroKernels<V, 2>[rows - 1]({run.source + (from + pixels.begin) * kLanes, plane,
                                       run.blocks, run.weight, nullptr, nullptr, ahead,
                                       piece.sums + (to + pixels.begin) * kPanel, true});
  }
}

/// The part of a tap that `run` says, for all results that it is there for.
template <typename V>
NPU_INLINE void add_run(const Piece& piece, const Run& run, const Range& y, const Range& x,
                        const std::int64_t (&shift)[2]) {
  const ImplicitGemm& call = *piece.call;
  const std::int64_t source_width = call.source_extent[1];
  const std::int64_t width = piece.width();
  const std::int64_t count = x.end - x.begin;
  const std::int64_t from = (y.begin + shift[0]) * source_width + x.begin + shift[1];
  const std::int64_t to = (y.begin - piece.y.begin) * width + x.begin - piece.x.begin;
  if (count == width && count == source_width) {  // rows are consecutive
    return multiply<V>(piece, run, from, (y.end - y.begin) * count, to);
  }
  for (std::int64_t row = 0; row < y.end - y.begin; ++row) {
    multiply<V>(piece, run, from + row * source_width, count, to + row * width);
  }
}

template <typename V>
NPU_INLINE void add_tap(const Piece& piece, std::int64_t tap) {
  constexpr std::int64_t kLanes = kLanesOf<V>;
  constexpr std::int64_t kPanel = 2 * kLanes;
  const ImplicitGemm& call = *piece.call;
  const std::int64_t shift[2]{tap / call.taps[1] * call.dilation[0] - call.pad[0],
                              tap % call.taps[1] * call.dilation[1] - call.pad[1]};
  const Range y = live(piece.y, shift[0], call.source_extent[0]);
  const Range x = live(piece.x, shift[1], call.source_extent[1]);
  if (y.begin >= y.end || x.begin >= x.end) return;
  const std::int64_t plane = call.source_extent[0] * call.source_extent[1] * kLanes;
  const std::int64_t blocks = call.source_channels / kLanes;
  const float* source = piece.operands->source + piece.image * blocks * plane;
  const float* weight = piece.operands->weight +
                        (piece.panel * call.all_taps() + tap) * call.source_channels * kPanel;
  const std::int64_t runs = ceil_div(call.source_channels * kPanel, kWeightsInL1);
  for (std::int64_t i = 0; i < runs; ++i) {
    const Range part = part_of(blocks, i, runs);
    add_run<V>(
        piece,
        {source + part.begin * plane, weight + part.begin * kLanes * kPanel, part.end - part.begin},
        y, x, shift);
  }
}

/// Bias, epilogue and the way to the target.
template <typename V>
NPU_INLINE void store_results(const Piece& piece) {
  constexpr std::int64_t kLanes = kLanesOf<V>;
  const ImplicitGemm& call = *piece.call;
  const ImplicitGemm::Operands& operands = *piece.operands;
  const std::int64_t groups = call.target_channels / kLanes;
  for (std::int64_t vector = 0; vector < 2; ++vector) {
    const std::int64_t group = 2 * piece.panel + vector;
    const V bias = call.has_bias ? load_vector<V>(operands.bias + group * kLanes) : V{};
    float* sums = piece.sums + vector * kLanes;
    for (std::int64_t y = piece.y.begin; y < piece.y.end; ++y, sums += piece.width() * 2 * kLanes) {
      const std::int64_t row =
          ((piece.image * groups + group) * call.target_extent[0] + y) * call.target_extent[1];
      store_with_steps(call.epilogue, operands.epilogue.data(), sums, 2 * kLanes, bias,
                       piece.width(), operands.target, (row + piece.x.begin) * kLanes);
    }
  }
}

template <typename V>
NPU_INLINE void run_piece(const Piece& piece) {
  std::fill_n(piece.sums, (piece.y.end - piece.y.begin) * piece.width() * piece.call->panel(),
              0.0F);
  for (std::int64_t tap = 0; tap < piece.call->all_taps(); ++tap) add_tap<V>(piece, tap);
  store_results<V>(piece);
}

NPU_TARGET_AVX2 void run_avx2(const Piece& piece) { run_piece<NarrowFloats>(piece); }
NPU_TARGET_AVX512 void run_avx512(const Piece& piece) { run_piece<Float16>(piece); }

}  // namespace

StridedCopy ImplicitGemm::weight_order() const {
  StridedCopy order{
      sizeof(float),
      {target_channels / panel(), all_taps(), source_channels, panel()},
      {panel() * source_channels * all_taps(), 1, all_taps(), source_channels * all_taps()},
      {all_taps() * source_channels * panel(), source_channels * panel(), panel(), 1}};
  order.simplify();
  return order;
}

std::size_t ImplicitGemm::scratch_bytes() const {
  return static_cast<std::size_t>((kMostPixels * panel() + kPadding) * threads) * sizeof(float);
}

ImplicitGemm::Operands ImplicitGemm::bind(Addresses addresses) const {
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

void ImplicitGemm::run(const Operands& operands) const {
  const auto body = isa == VectorIsa::kAvx512 ? run_avx512 : run_avx2;
  const Cuts cuts = cuts_of(*this);
  const std::int64_t panels = target_channels / panel();
  const std::int64_t rectangles = cuts.down * cuts.across;
  share_pieces(batch * panels * rectangles, threads, [&](std::int64_t piece, int thread) {
    const std::int64_t rectangle = piece % rectangles;
    body({this, &operands, operands.scratch + thread * (kMostPixels * panel() + kPadding),
          piece / rectangles / panels, piece / rectangles % panels,
          part_of(target_extent[0], rectangle / cuts.across, cuts.down),
          part_of(target_extent[1], rectangle % cuts.across, cuts.across)});
  });
}

Footprint footprint(const ImplicitGemm& kernel) {
  require_isa(kernel.isa, VectorIsa::kAvx2);
  require(kernel.source_channels > 0 && kernel.source_channels % 16 == 0,
          "'source_channels' is no multiple of 16");
  require(kernel.target_channels > 0 && kernel.target_channels % kernel.panel() == 0,
          "'target_channels' does not fill panels");
  Count source = at_least_one(kernel.batch, "batch") * kernel.source_channels;
  Count target = Count{kernel.batch} * kernel.target_channels;
  Count weights = Count{kernel.source_channels} * kernel.target_channels;
  for (int i = 0; i < 2; ++i) {
    source = source * at_least_one(kernel.source_extent[i], "source_extent");
    target = target * at_least_one(kernel.target_extent[i], "target_extent");
    weights = weights * at_least_one(kernel.taps[i], "taps");
    static_cast<void>(Count{kernel.taps[i]} * at_least_one(kernel.dilation[i], "dilation") +
                      Count{kernel.pad[i]} + Count{kernel.target_extent[i]});
  }
  FootprintBuilder builder;
  builder.read(source)
      .read(weights)
      .read_if(kernel.has_bias, kernel.target_channels)
      .read_epilogue(kernel.epilogue, target)
      .write(target);
  return builder.with_scratch(kernel, Count{1 << 13} * kFloat);
}

}  // namespace npu::onednn
