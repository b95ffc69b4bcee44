// SPDX-License-Identifier: Apache-2.0
// Which kernel computes a convolution with constant weights: for each candidate the reason why it
// cannot, or an estimate in cycles. Estimates count multiply-adds of vectors and the time that
// weights take from memory, of which Winograd's larger tiles need more. O(filters of a kernel's
// size).
//
// Winograd's filters enlarge rounding errors, larger tiles more. Errors of convolutions one behind
// the other add up as squares do, so each may have its part of what all of them together may; a
// filter whose estimate is above that is refused, and a smaller tile taken.
#include "lowering/convolution/choose_convolution.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <utility>

#include "kernels/convolution/grouped_convolution.hpp"
#include "kernels/convolution/implicit_gemm.hpp"
#include "kernels/convolution/winograd.hpp"
#include "lowering/product/choose_product.hpp"

namespace npu::onednn {

namespace {

constexpr std::int64_t kVector = 8;        // floats of AVX2
constexpr double kMaxWinogradShare = 0.9;  // what is gained has to be worth the rounding
constexpr double kMaxRounding = 256.0;     // of all convolutions, in 2^-24: 2^-16 in all
// A smaller tile rounds less: it is taken where it costs the whole sub-IR no more than this.
constexpr double kFreeShare = 1e-3;

/// By the definition.
double convolution_cycles(const ConvolutionShape& shape, const Machine& machine) {
  double weights = 1.0;
  for (const std::int64_t extent : shape.weight) weights *= static_cast<double>(extent);
  double positions = static_cast<double>(shape.target[0]);
  for (std::size_t i = 2; i < shape.target.size(); ++i) {
    positions *= static_cast<double>(shape.target[i]);
  }
  return direct_cycles(positions * weights, weights * sizeof(float), machine.lanes(),
                       machine.rates());
}

/// What groups cost oneDNN: it has kernels for those of vectors of AVX2, with AVX-512, too, and
/// multiplies others one by one.
double group_cost(const ConvolutionShape& shape, const Machine& machine) {
  const std::int64_t inputs = shape.weight[1];
  const std::int64_t outputs = shape.weight[0] / shape.groups;
  if (shape.groups == 1 || (inputs == 1 && outputs == 1)) return 1.0;
  const bool fills = machine.lanes() >= kVector && inputs % kVector == 0 && outputs % kVector == 0;
  return fills ? 1.0 : machine.rates().small_group;
}

/// What a stride costs oneDNN.
double stride_cost(const ConvolutionShape& shape, const Machine& machine) {
  const bool has_taps = std::any_of(shape.weight.begin() + 2, shape.weight.end(),
                                    [](std::int64_t extent) { return extent > 1; });
  const bool is_slow = has_taps && shape.groups == 1 && !all_are(shape.spatial.stride, 1);
  return is_slow ? machine.rates().strided : 1.0;
}

/// The same by oneDNN.
double primitive_cycles(const ConvolutionShape& shape, const Machine& machine) {
  const bool has_dilation = !all_are(shape.spatial.dilation, 1);
  return convolution_cycles(shape, machine) * (has_dilation ? machine.rates().copied : 1.0) *
         stride_cost(shape, machine) * group_cost(shape, machine);
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

double winograd_cycles(const Winograd& call, const CpuRates& rates) {
  const double products = static_cast<double>(call.filter.products());
  const auto lanes = static_cast<double>(lanes_of(call.isa));
  const double sources = static_cast<double>(call.source_channels) / lanes;
  const double targets = static_cast<double>(call.target_channels) / lanes;
  const bool is_flat = call.filter.taps[0] == 1 || call.filter.taps[1] == 1;
  const double source = is_flat ? rates.transform_flat_source : rates.transform_source;
  const double per_tile = products * (sources * targets * lanes * rates.multiply +
                                      sources * source + targets * rates.transform_result);
  const std::int64_t weights =
      call.filter.all_weights() * call.source_channels * call.target_channels;
  return static_cast<double>(call.tiles()) * per_tile / kThreads +
         static_cast<double>(weights) * sizeof(float) / rates.weight_bytes;
}

/// What any of our kernels with ordered weights asks of a convolution; empty if nothing.
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
  if (shape.weight[0] % kFeatureStep != 0 || shape.weight[1] % kFeatureStep != 0) {
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
    if (!machine.rates().has_strided_winograd) return "the stride is not 1";
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
double phase_copy_cycles(const ConvolutionShape& shape, const Machine& machine) {
  if (all_are(shape.spatial.dilation, 1)) return 0.0;
  double vectors = 0.0;
  for (const Shape& each : {shape.source, shape.target}) {
    double elements = 1.0;
    for (const std::int64_t extent : each) elements *= static_cast<double>(extent);
    vectors += elements / static_cast<double>(machine.lanes());
  }
  return vectors * machine.rates().copy_phase / kThreads;
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
  const double copies = phase_copy_cycles(shape, machine);
  const double allowed = kMaxRounding / std::sqrt(static_cast<double>(shape.depth));
  const double free =
      kFreeShare * direct_cycles(shape.sub_ir_flops / 2.0, 0.0, machine.lanes(), machine.rates());
  for (const Winograd::Filter& filter :
       winograd_filters(shape.weight[2], shape.weight[3], shape.spatial.stride[0])) {
    kernel.filter = filter;
    const double rounding = kernel.rounding();
    if (rounding > allowed) {
      result.refusal = rounding_refusal(filter, rounding, allowed);
      continue;
    }
    const double cycles = winograd_cycles(kernel, machine.rates()) + copies;
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
        *result.cycles / (convolution_cycles(shape, machine) * stride_cost(shape, machine));
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
  double cost = machine.rates().implicit;
  for (std::size_t i = 0; i + 2 < shape.weight.size(); ++i) cost *= live_share(shape, i);
  result.cycles = convolution_cycles(shape, machine) * cost;
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
  result.cycles = convolution_cycles(shape, machine) *
                  (machine.rates().grouped + machine.rates().permute / taps);
  result.kernel = kernel;
  return result;
}

}  // namespace

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
  for (Candidate& each : pointwise_candidates(gemm, refusal, machine)) {
    candidates.push_back(std::move(each));
  }
  candidates.push_back({kOneDnn, {}, primitive_cycles(shape, machine), ""});
  return ranked(std::move(candidates), epilogue);
}

}  // namespace npu::onednn
