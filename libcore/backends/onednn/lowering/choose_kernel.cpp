// SPDX-License-Identifier: Apache-2.0
// Which kernel computes a convolution or a product with constant weights: for each candidate the
// reason why it cannot, or an estimate in cycles; the cheapest is taken.
//
// The estimates count multiply-adds of vectors and the time that weights take from memory, of which
// Winograd's larger tiles need more. Their factors are rounded from measurements of the kernels on
// layers of common networks with AVX-512; vectors of AVX2 are half as long. Results do not depend
// on them. Where Strassen's step is worth its sums is measured, too: they take a share of the time
// that falls with the columns, with k and with the rows. O(filters of a kernel's size).
//
// Winograd's filters enlarge rounding errors, larger tiles more. Errors of convolutions one behind
// the other add up as squares do, so each may have its part of what all of them together may; a
// filter whose estimate is above that is refused, and a smaller tile taken.
#include "lowering/choose_kernel.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <type_traits>

#include "kernels/footprint.hpp"

namespace npu::onednn {

namespace {

constexpr std::int64_t kBlock = 16;    // channels and features are multiples of this
constexpr std::int64_t kVector = 8;    // floats of AVX2
constexpr double kMultiplyCost = 1.1;  // cycles for a vector that should take one
// Implicit GEMM, whose tiles are cut where rows end; and oneDNN with dilation and no AVX-512, where
// it has only a product of matrices whose left one it copies (im2col).
constexpr double kImplicitCost = 1.15;
constexpr double kCopiedCost = 2.0;
constexpr double kStridedCost = 1.4;  // its kernels of several taps with a stride, without AVX-512
// Groups that do not fill vectors, whose inputs are permuted first; and oneDNN, which multiplies
// them as matrices of their own.
constexpr double kGroupedCost = 1.5;
constexpr double kPermuteCost = 3.0;
constexpr double kSmallGroupCost = 10.0;
constexpr double kThreads = 2.0;  // a few: what is chosen must not depend on their number
constexpr double kWeightBytesPerCycle = 8.0;  // of all threads together
constexpr double kMaxWinogradShare = 0.9;     // what is gained has to be worth the rounding
constexpr double kMaxRounding = 256.0;        // of all convolutions, in 2^-24: 2^-16 in all
// A smaller tile rounds less: it is taken where it costs the whole sub-IR no more than this.
constexpr double kFreeShare = 1e-3;
// Products of our own with weights of 16 bits, beside oneDNN's pointwise convolutions, and with
// AVX-512 beside its products, of float32.
constexpr double kNarrowCost = 1.1;
constexpr double kCopyCycles = 40.0;  // for a vector of channels of a pixel
constexpr double kStrassenShare = 7.0 / 8.0;
constexpr std::int64_t kMinRows = 32;  // fewer are bound by the weights' way from memory
constexpr std::int64_t kMinStrassenInner = 512;
constexpr std::int64_t kMinStrassenColumns = 256;
constexpr std::int64_t kMinNormInner = 256;
constexpr std::int64_t kMaxNormRows = 1024;

constexpr const char* kOneDnn = "onednn";
constexpr const char* kNoAvx2 = "it needs AVX2, AVX-512 or NEON";

/// By the definition: multiply-adds of vectors, and weights from memory.
double direct_cycles(double multiplications, double weight_bytes, std::int64_t lanes) {
  return multiplications / static_cast<double>(lanes) * kMultiplyCost / kThreads +
         weight_bytes / kWeightBytesPerCycle;
}

/// Of kernels of our own.
template <typename Product>
double weight_bytes(const Product& product) {
  return static_cast<double>(product.inner * product.columns) *
         static_cast<double>(dtype_size(product.weight_type));
}

double direct_cycles(const PackedGemm& gemm, std::int64_t lanes, double cost = 1.0) {
  return direct_cycles(static_cast<double>(gemm.images * gemm.rows) *
                           static_cast<double>(gemm.inner * gemm.columns) * cost,
                       weight_bytes(gemm), lanes);
}

double direct_cycles(const PackedGemm& gemm) { return direct_cycles(gemm, lanes_of(gemm.isa)); }

/// The same by oneDNN, whose weights are floats.
double primitive_cycles(PackedGemm gemm) {
  gemm.weight_type = DType::kFloat32;
  return direct_cycles(gemm);
}

double direct_cycles(const ConvolutionShape& shape, const Machine& machine) {
  double weights = 1.0;
  for (const std::int64_t extent : shape.weight) weights *= static_cast<double>(extent);
  double positions = static_cast<double>(shape.target[0]);
  for (std::size_t i = 2; i < shape.target.size(); ++i) {
    positions *= static_cast<double>(shape.target[i]);
  }
  return direct_cycles(positions * weights, weights * sizeof(float), machine.lanes());
}

/// What groups cost oneDNN: it has kernels for those of vectors of AVX2, with AVX-512, too, and
/// multiplies others one by one.
double group_cost(const ConvolutionShape& shape, std::int64_t lanes) {
  const std::int64_t inputs = shape.weight[1];
  const std::int64_t outputs = shape.weight[0] / shape.groups;
  if (shape.groups == 1 || (inputs == 1 && outputs == 1)) return 1.0;
  const bool fills = lanes >= kVector && inputs % kVector == 0 && outputs % kVector == 0;
  return fills ? 1.0 : kSmallGroupCost;
}

/// What a stride costs oneDNN.
double stride_cost(const ConvolutionShape& shape, const Machine& machine) {
  const bool has_taps = std::any_of(shape.weight.begin() + 2, shape.weight.end(),
                                    [](std::int64_t extent) { return extent > 1; });
  const bool is_slow = machine.isa != VectorIsa::kAvx512 && has_taps && shape.groups == 1 &&
                       !all_are(shape.spatial.stride, 1);
  return is_slow ? kStridedCost : 1.0;
}

/// The same by oneDNN.
double primitive_cycles(const ConvolutionShape& shape, const Machine& machine) {
  const bool copies = machine.isa != VectorIsa::kAvx512 && !all_are(shape.spatial.dilation, 1);
  return direct_cycles(shape, machine) * (copies ? kCopiedCost : 1.0) *
         stride_cost(shape, machine) * group_cost(shape, machine.lanes());
}

/// The part of the pairs of a tap and a result, along a dimension, that read no padding.
double live_share(const ConvolutionShape& shape, std::size_t i) {
  const std::int64_t taps = shape.weight[i + 2];
  std::int64_t live = 0;
  for (std::int64_t tap = 0; tap < taps; ++tap) {
    const std::int64_t shift = tap * shape.spatial.dilation[i] - shape.spatial.pad_begin[i];
    const std::int64_t begin = std::max<std::int64_t>(0, -shift);
    const std::int64_t end = std::min(shape.target[i + 2], shape.source[i + 2] - shift);
    live += std::max<std::int64_t>(0, end - begin);
  }
  return static_cast<double>(live) / static_cast<double>(taps * shape.target[i + 2]);
}

double winograd_cycles(const Winograd& call) {
  const double products = static_cast<double>(call.filter.products());
  const auto lanes = static_cast<double>(lanes_of(call.isa));
  const double sources = static_cast<double>(call.source_channels) / lanes;
  const double targets = static_cast<double>(call.target_channels) / lanes;
  const bool is_flat = call.filter.taps[0] == 1 || call.filter.taps[1] == 1;
  const double per_tile = products * (sources * targets * lanes * kMultiplyCost +
                                      sources * (is_flat ? 4.5 : 7.0) + targets * 5.0);
  const std::int64_t weights =
      call.filter.all_weights() * call.source_channels * call.target_channels;
  return static_cast<double>(call.tiles()) * per_tile / kThreads +
         static_cast<double>(weights) * sizeof(float) / kWeightBytesPerCycle;
}

/// Strassen's step takes an eighth of the multiplications away.
double strassen_cycles(const PackedGemm& gemm) {
  return direct_cycles(kStrassenShare * static_cast<double>(gemm.images * gemm.rows) *
                           static_cast<double>(gemm.inner * gemm.columns),
                       weight_bytes(gemm), lanes_of(gemm.isa));
}

/// One run over the weights is all there is to a few rows.
double gemv_cycles(const Gemv& call) {
  return direct_cycles(0.0, weight_bytes(call), lanes_of(call.isa));
}

std::string at_least(const char* what, std::int64_t least, std::int64_t found) {
  return "it needs " + std::to_string(least) + " " + what + ", found " + std::to_string(found);
}

/// What any of our own kernels with ordered weights asks of a convolution; empty if nothing.
std::string ordered_refusal(const ConvolutionShape& shape, const Machine& machine) {
  if (!machine.has_avx2()) return kNoAvx2;
  if (shape.type != DType::kFloat32) return "it computes in float32 only";
  if (shape.is_pinned) return "npu-align keeps the node row-major";
  return shape.has_constant_weight ? "" : "the weight is not constant";
}

/// What those ask that have no groups.
std::string common_refusal(const ConvolutionShape& shape, const Machine& machine) {
  if (auto refusal = ordered_refusal(shape, machine); !refusal.empty()) return refusal;
  if (shape.groups != 1) return "the convolution has groups";
  if (shape.weight[0] % kBlock != 0 || shape.weight[1] % kBlock != 0) {
    return "the channels are no multiples of 16";
  }
  return "";
}

std::string winograd_refusal(const ConvolutionShape& shape, const Machine& machine) {
  if (auto refusal = common_refusal(shape, machine); !refusal.empty()) return refusal;
  if (shape.weight.size() != 4) {
    return "it convolves in two dimensions, or in three with taps in time or space alone";
  }
  if (!all_are(shape.spatial.stride, 1)) {
    // Whether oneDNN is slower there, too, has not been measured.
    if (machine.isa == VectorIsa::kAvx512) return "the stride is not 1";
    if (!all_are(shape.spatial.stride, 2)) return "the strides are neither 1 nor 2";
  }
  if (!all_are(shape.spatial.dilation, 1) && !splits_into_phases(shape)) {
    return "the convolution has dilation, of which its extents or its padding are no multiples";
  }
  return "";
}

/// "F(4 x 4, 3 x 3) rounds by 43 units of 2^-24, 36 are allowed".
std::string rounding_refusal(const Winograd::Filter& filter, double rounding, double allowed) {
  std::array<char, 128> text{};
  std::snprintf(text.data(), text.size(),
                "F(%d x %d, %d x %d) rounds by %.0f units of 2^-24, %.0f are allowed",
                static_cast<int>(filter.tile[0]), static_cast<int>(filter.tile[1]),
                static_cast<int>(filter.taps[0]), static_cast<int>(filter.taps[1]), rounding,
                allowed);
  return text.data();
}

/// The time to bring pixels of a convolution with dilation together and apart again.
double phase_copy_cycles(const ConvolutionShape& shape, std::int64_t lanes) {
  if (all_are(shape.spatial.dilation, 1)) return 0.0;
  double vectors = 0.0;
  for (const Shape& each : {shape.source, shape.target}) {
    double elements = 1.0;
    for (const std::int64_t extent : each) elements *= static_cast<double>(extent);
    vectors += elements / static_cast<double>(lanes);
  }
  return vectors * kCopyCycles / kThreads;
}

/// Whether a filter is to be taken in place of `other`: it is faster, unless that takes only `free`
/// cycles more and rounds less; or it is slower by less and rounds less itself.
bool is_better(double cycles, double rounding, const Candidate& other, double free) {
  const bool rounds_less = rounding < *other.rounding;
  return rounds_less ? cycles <= *other.cycles + free : cycles + free < *other.cycles;
}

/// The filter with the least cycles of those that round little enough, or one that rounds less at
/// next to no cost.
Candidate winograd_candidate(const ConvolutionShape& call, const Machine& machine) {
  const ConvolutionShape shape = in_two_dimensions(call).value_or(call);
  Candidate result{Winograd::kName, {}, {}, winograd_refusal(shape, machine)};
  if (!result.refusal.empty()) return result;
  Winograd kernel;
  kernel.isa = machine.isa;
  kernel.batch = shape.source[0];
  if (call.source[0] != 0) kernel.frames = shape.source[0] / call.source[0];
  kernel.source_channels = shape.weight[1];
  kernel.target_channels = shape.weight[0];
  for (std::size_t i = 0; i < 2; ++i) {
    const std::int64_t dilation = shape.spatial.dilation[i];
    kernel.batch *= dilation;
    kernel.source_extent[i] = shape.source[i + 2] / dilation;
    kernel.target_extent[i] = shape.target[i + 2] / dilation;
    kernel.pad[i] = shape.spatial.pad_begin[i] / dilation;
  }
  kernel.threads = machine.threads;
  const double copies = phase_copy_cycles(shape, machine.lanes());
  const double allowed = kMaxRounding / std::sqrt(static_cast<double>(shape.depth));
  const double free = kFreeShare * direct_cycles(shape.sub_ir_flops / 2.0, 0.0, machine.lanes());
  for (const Winograd::Filter& filter :
       winograd_filters(shape.weight[2], shape.weight[3], shape.spatial.stride[0])) {
    kernel.filter = filter;
    const double rounding = kernel.rounding();
    if (rounding > allowed) {
      result.refusal = rounding_refusal(filter, rounding, allowed);
      continue;
    }
    const double cycles = winograd_cycles(kernel) + copies;
    if (result.cycles && !is_better(cycles, rounding, result, free)) continue;
    result.cycles = cycles;
    result.rounding = rounding;
    result.kernel = kernel;
  }
  if (result.cycles) result.refusal.clear();
  if (!result.cycles && result.refusal.empty()) {
    result.refusal = "it has no filter of " + std::to_string(shape.weight[2]) + " by " +
                     std::to_string(shape.weight[3]) + " with stride " +
                     std::to_string(shape.spatial.stride[0]);
  } else if (result.cycles) {
    const double share =
        *result.cycles / (direct_cycles(shape, machine) * stride_cost(shape, machine));
    if (share >= kMaxWinogradShare) {
      std::array<char, 96> text{};
      std::snprintf(text.data(), text.size(),
                    "its estimate is %.2f of the definition's, which is not worth the rounding",
                    share);
      result.refusal = text.data();
      result.cycles.reset();
    }
  }
  return result;
}

std::string implicit_gemm_refusal(const ConvolutionShape& shape, const Machine& machine) {
  if (auto refusal = common_refusal(shape, machine); !refusal.empty()) return refusal;
  if (shape.weight.size() > 4) return "it convolves in one or two dimensions only";
  if (!all_are(shape.spatial.stride, 1)) return "the stride is not 1";
  if (all_are(shape.spatial.dilation, 1)) return "the convolution has no dilation";
  const std::int64_t panel = 2 * machine.lanes();
  if (shape.weight[0] % panel != 0) {
    return "the target channels are no multiple of " + std::to_string(panel);
  }
  return "";
}

/// What kernels in two dimensions have of a shape; one dimension is the last of two.
template <typename Kernel>
void set_geometry(Kernel& kernel, const ConvolutionShape& shape) {
  const std::size_t rank = shape.weight.size() - 2;
  for (std::size_t i = 0; i < rank; ++i) {
    const std::size_t to = 2 - rank + i;
    kernel.source_extent[to] = shape.source[i + 2];
    kernel.target_extent[to] = shape.target[i + 2];
    kernel.taps[to] = shape.weight[i + 2];
    if constexpr (requires { kernel.stride; }) kernel.stride[to] = shape.spatial.stride[i];
    kernel.dilation[to] = shape.spatial.dilation[i];
    kernel.pad[to] = shape.spatial.pad_begin[i];
  }
}

Candidate implicit_gemm_candidate(const ConvolutionShape& shape, const Machine& machine) {
  Candidate result{ImplicitGemm::kName, {}, {}, implicit_gemm_refusal(shape, machine)};
  if (!result.refusal.empty()) return result;
  ImplicitGemm kernel;
  kernel.isa = machine.isa;
  kernel.threads = machine.threads;
  kernel.batch = shape.source[0];
  kernel.source_channels = shape.weight[1];
  kernel.target_channels = shape.weight[0];
  set_geometry(kernel, shape);
  double cost = kImplicitCost;
  for (std::size_t i = 0; i + 2 < shape.weight.size(); ++i) cost *= live_share(shape, i);
  result.cycles = direct_cycles(shape, machine) * cost;
  result.kernel = kernel;
  return result;
}

std::string grouped_refusal(const ConvolutionShape& shape, const Machine& machine) {
  if (shape.groups == 1) return "the convolution has no groups";
  if (auto refusal = ordered_refusal(shape, machine); !refusal.empty()) return refusal;
  if (shape.weight.size() > 4) return "it convolves in one or two dimensions only";
  if (shape.weight[1] == 1 && shape.weight[0] == shape.groups) {
    return "the convolution is depthwise";
  }
  const std::int64_t lanes = machine.lanes();
  if (shape.source[1] % lanes != 0 || shape.target[1] % lanes != 0) {
    return "the channels are no multiples of " + std::to_string(lanes);
  }
  return "";
}

Candidate grouped_candidate(const ConvolutionShape& shape, const Machine& machine) {
  Candidate result{GroupedConvolution::kName, {}, {}, grouped_refusal(shape, machine)};
  if (!result.refusal.empty()) return result;
  GroupedConvolution kernel;
  kernel.isa = machine.isa;
  kernel.threads = machine.threads;
  kernel.batch = shape.source[0];
  kernel.groups = shape.groups;
  kernel.source_channels = shape.source[1];
  kernel.target_channels = shape.target[1];
  set_geometry(kernel, shape);
  const auto taps = static_cast<double>(kernel.all_taps());
  result.cycles = direct_cycles(shape, machine) * (kGroupedCost + kPermuteCost / taps);
  result.kernel = kernel;
  return result;
}

std::string strassen_refusal(const PackedGemm& gemm, const Machine& machine) {
  if (!machine.has_avx2()) return kNoAvx2;
  if (gemm.rows < kMinRows) return at_least("rows or pixels", kMinRows, gemm.rows);
  if (gemm.inner < kMinStrassenInner) {
    return at_least("source features", kMinStrassenInner, gemm.inner);
  }
  if (gemm.columns < kMinStrassenColumns) {
    return at_least("target features", kMinStrassenColumns, gemm.columns);
  }
  if (!suits_strassen(gemm)) {
    return "the features are no multiples of 32 (source) and 64 (target)";
  }
  return "";
}

Candidate strassen_candidate(PackedGemm gemm, std::string refusal) {
  Candidate result{PackedGemm::kStrassenName, {}, {}, std::move(refusal)};
  if (!result.refusal.empty()) return result;
  gemm.use_strassen = true;
  result.cycles = strassen_cycles(gemm);
  result.kernel = gemm;
  return result;
}

/// Why a product by the definition does not take such features; empty if it does.
std::string features_refusal(const PackedGemm& gemm) {
  if (gemm.inner % kBlock == 0 && gemm.columns % kBlock == 0) return "";
  return "the features are no multiples of 16";
}

/// By the definition with weights of float32: oneDNN's products without AVX-512 are its GEMM, which
/// takes as long, but orders the weights in every run and needs the same threads for the same bits,
/// so that a busy neighbour holds it up.
std::optional<Candidate> float32_candidate(const PackedGemm& gemm, const Machine& machine) {
  if (gemm.weight_type != DType::kFloat32 || machine.isa == VectorIsa::kAvx512) return std::nullopt;
  Candidate result{PackedGemm::kName, {}, {}, machine.has_avx2() ? "" : kNoAvx2};
  if (result.refusal.empty()) result.refusal = features_refusal(gemm);
  if (!result.refusal.empty()) return result;
  result.cycles = direct_cycles(gemm);
  result.kernel = gemm;
  return result;
}

/// By the definition with weights of 16 bits, which oneDNN's products do not read; in float16 where
/// the CPU computes in it. `cost`: beside what else there is.
std::optional<Candidate> narrow_candidate(const PackedGemm& gemm, const std::string& refusal,
                                          const Machine& machine, double cost) {
  if (gemm.weight_type == DType::kFloat32) return std::nullopt;
  const bool in_float16 = machine.multiplies_float16 && gemm.weight_type == DType::kFloat16;
  Candidate result{in_float16 ? HalfGemm::kName : PackedGemm::kName, {}, {}, refusal};
  if (result.refusal.empty()) result.refusal = features_refusal(gemm);
  if (!result.refusal.empty()) return result;
  if (!in_float16) {
    result.cycles = direct_cycles(gemm, lanes_of(gemm.isa), cost);
    result.kernel = gemm;
    return result;
  }
  result.cycles = direct_cycles(gemm, 2 * lanes_of(gemm.isa));  // which has twice the multiply-adds
  result.kernel = HalfGemm{.images = gemm.images,
                           .rows = gemm.rows,
                           .inner = gemm.inner,
                           .columns = gemm.columns,
                           .source = gemm.source,
                           .target = gemm.target,
                           .has_bias = false,
                           .epilogue = {},
                           .threads = gemm.threads,
                           .isa = gemm.isa};
  return result;
}

Candidate gemv_candidate(const Gemv& gemv, std::string refusal) {
  Candidate result{Gemv::kName, {}, {}, std::move(refusal)};
  if (result.refusal.empty() && gemv.rows > Gemv::kMaxRows) {
    result.refusal = "it takes " + std::to_string(Gemv::kMaxRows) + " rows at most, found " +
                     std::to_string(gemv.rows);
  }
  if (!result.refusal.empty()) return result;
  result.cycles = gemv_cycles(gemv);
  result.kernel = gemv;
  return result;
}

/// What a kernel of our own says to its numbers.
std::string number_refusal(const Candidate::Kernel& kernel) {
  return std::visit(
      [](const auto& each) -> std::string {
        if constexpr (std::is_same_v<decltype(each), const std::monostate&>)
          return {};
        else
          return kernel_refusal(each);
      },
      kernel);
}

/// Kernels of our own that do not take their numbers, or do not do an epilogue, are no candidates.
void ask_kernels(std::vector<Candidate>& candidates, const Epilogue& epilogue) {
  const std::string no_epilogue = operand_kernel_refusal(epilogue);
  for (Candidate& each : candidates) {
    if (!each.is_own() || !each.cycles) continue;
    std::string refusal = number_refusal(each.kernel);
    if (refusal.empty()) refusal = no_epilogue;
    if (refusal.empty()) continue;
    each.cycles.reset();
    each.refusal = std::move(refusal);
  }
}

/// The cheapest first, then those that cost more, then those that are none.
std::vector<Candidate> sorted(std::vector<Candidate> candidates) {
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const Candidate& a, const Candidate& b) {
                     if (!a.cycles || !b.cycles) return a.cycles.has_value() && !b.cycles;
                     return *a.cycles < *b.cycles;
                   });
  return candidates;
}

}  // namespace

bool suits_strassen(const PackedGemm& gemm) {
  return gemm.rows >= kMinRows && gemm.inner % (2 * kBlock) == 0 &&
         gemm.columns % (4 * kBlock) == 0 && gemm.inner >= kMinStrassenInner &&
         gemm.columns >= kMinStrassenColumns;
}

bool suits_norm(const PackedGemm& gemm, const Machine& machine) {
  return machine.has_avx2() && gemm.inner % kBlock == 0 && gemm.columns % kBlock == 0 &&
         (gemm.inner >= kMinNormInner || gemm.rows <= kMaxNormRows);
}

PackedGemm pointwise_gemm(const Shape& target, std::int64_t source_channels,
                          const Machine& machine) {
  const std::int64_t lanes = machine.lanes();
  PackedGemm gemm;
  gemm.isa = machine.isa;
  gemm.weight_type = machine.weight_type;
  gemm.threads = machine.threads;
  gemm.images = target[0];
  for (std::size_t i = 2; i < target.size(); ++i) gemm.rows *= target[i];
  gemm.inner = source_channels;
  gemm.columns = target[1];
  gemm.source = {gemm.rows * gemm.inner, lanes, gemm.rows * lanes};
  gemm.target = {gemm.rows * gemm.columns, lanes, gemm.rows * lanes};
  return gemm;
}

std::vector<Candidate> choose_convolution(const ConvolutionShape& shape, const Epilogue& epilogue,
                                          const Machine& machine) {
  std::vector<Candidate> candidates;
  candidates.push_back(winograd_candidate(shape, machine));
  candidates.push_back(implicit_gemm_candidate(shape, machine));
  candidates.push_back(grouped_candidate(shape, machine));
  const PackedGemm gemm = pointwise_gemm(shape.target, shape.weight[1], machine);
  std::string refusal = common_refusal(shape, machine);
  if (refusal.empty() && !is_pointwise(shape.weight, shape.spatial, shape.groups)) {
    refusal = "the convolution is not one of one by one";
  }
  // One pixel of each image: blocks of channels lie side by side.
  const Gemv gemv{.rows = gemm.images,
                  .inner = gemm.inner,
                  .columns = gemm.columns,
                  .source_row = gemm.inner,
                  .weight_type = machine.weight_type,
                  .threads = machine.threads,
                  .isa = machine.isa};
  candidates.push_back(gemv_candidate(
      gemv, refusal.empty() && gemm.rows != 1 ? "an image has more than one pixel" : refusal));
  candidates.push_back(
      strassen_candidate(gemm, refusal.empty() ? strassen_refusal(gemm, machine) : refusal));
  if (auto own = narrow_candidate(gemm, refusal, machine, kNarrowCost)) {
    candidates.push_back(*std::move(own));
  }
  candidates.push_back({kOneDnn, {}, primitive_cycles(shape, machine), ""});
  ask_kernels(candidates, epilogue);
  return sorted(std::move(candidates));
}

std::vector<Candidate> choose_product(const ProductShape& shape, const Epilogue& epilogue,
                                      const Machine& machine) {
  PackedGemm gemm;
  gemm.isa = machine.isa;
  gemm.rows = shape.rows;
  gemm.inner = shape.inner;
  gemm.columns = shape.columns;
  const std::int64_t lanes = machine.lanes();
  gemm.source = {0, shape.source_row, shape.source_block != 0 ? shape.source_block : lanes};
  gemm.target = {0, shape.columns, lanes};
  if (shape.blocked_target) gemm.target = {0, lanes, shape.rows * lanes};
  gemm.weight_type = machine.weight_type;
  gemm.threads = machine.threads;
  const Gemv gemv{.rows = shape.rows,
                  .inner = shape.inner,
                  .columns = shape.columns,
                  .source_row = shape.source_row,
                  .weight_type = machine.weight_type,
                  .threads = machine.threads,
                  .isa = machine.isa};
  const bool has_rows = shape.source_block == 0 && !shape.blocked_target;
  std::vector<Candidate> candidates{gemv_candidate(gemv, has_rows ? "" : "rows lie in blocks"),
                                    strassen_candidate(gemm, strassen_refusal(gemm, machine))};
  if (auto own = float32_candidate(gemm, machine)) candidates.push_back(*std::move(own));
  candidates.push_back({kOneDnn, {}, primitive_cycles(gemm), ""});
  const double cost = machine.has_avx512() ? kNarrowCost : 1.0;
  if (auto own = narrow_candidate(gemm, "", machine, cost)) candidates.push_back(*std::move(own));
  ask_kernels(candidates, epilogue);
  return sorted(std::move(candidates));
}

void refuse_first(std::vector<Candidate>& candidates, std::string reason) {
  candidates.front().cycles.reset();
  candidates.front().refusal = std::move(reason);
  candidates = sorted(std::move(candidates));
}

KernelChoice choice_of(const std::vector<Candidate>& candidates) {
  KernelChoice result;
  result.cycles = candidates.front().cycles;
  result.rounding = candidates.front().rounding;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const Candidate& each = candidates[i];
    if (!each.is_own()) result.primitive_cycles = each.cycles;
    if (i == 0) continue;
    result.rejected.push_back(
        {std::string(each.name),
         each.cycles ? "its estimate is " + std::to_string(std::llround(*each.cycles)) + " cycles"
                     : each.refusal});
  }
  return result;
}

}  // namespace npu::onednn
