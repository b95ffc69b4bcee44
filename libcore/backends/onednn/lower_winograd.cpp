// SPDX-License-Identifier: Apache-2.0
// Which convolutions are computed by minimal filtering, and with which tiles.
//
// The estimate counts cycles of multiply-adds of vectors for products and transforms, and the time
// that weights take from memory, of which larger tiles need more. The factors are rounded from
// measurements of the kernels on layers of common networks; results do not depend on them.
#include <algorithm>

#include "convolution.hpp"
#include "npu/ir/graph.hpp"
#include "winograd.hpp"

namespace npu::onednn {

namespace {

constexpr double kVector = 16.0;
constexpr double kMultiplyCost = 1.1;  // cycles for a vector that should take one
constexpr double kThreads = 2.0;       // a few: what is chosen must not depend on their number
constexpr double kWeightBytesPerCycle = 8.0;  // of all threads together
constexpr std::size_t kMaximumOperands = 8;
constexpr double kGain = 0.9;  // what is gained has to be worth the rounding

/// Cycles for a convolution by its definition.
double direct_cycles(const Winograd& call) {
  const double taps = static_cast<double>(call.filter.taps[0] * call.filter.taps[1]);
  const double channels = static_cast<double>(call.source_channels * call.target_channels);
  const double results =
      static_cast<double>(call.batch * call.target_extent[0] * call.target_extent[1]);
  return results * taps * channels / kVector * kMultiplyCost / kThreads +
         taps * channels * sizeof(float) / kWeightBytesPerCycle;
}

double filter_cycles(const Winograd& call) {
  const double products = static_cast<double>(call.filter.products());
  const double sources = static_cast<double>(call.source_channels) / kVector;
  const double targets = static_cast<double>(call.target_channels) / kVector;
  const bool is_flat = call.filter.taps[0] == 1 || call.filter.taps[1] == 1;
  const double per_tile = products * (sources * targets * kVector * kMultiplyCost +
                                      sources * (is_flat ? 4.5 : 7.0) + targets * 5.0);
  return static_cast<double>(call.tiles()) * per_tile / kThreads +
         static_cast<double>(call.weight_floats() * sizeof(float)) / kWeightBytesPerCycle;
}

std::optional<Winograd> choose_filter(const Lowering& lowering, const ConvolutionCall& call) {
  const Shape weight = dimensions(call.weight.layout);
  if (!lowering.machine().wide_vectors || call.type != DType::kFloat32 || call.groups != 1 ||
      weight.size() != 4 || weight[0] % 16 != 0 || weight[1] % 16 != 0 ||
      !all_are(call.spatial.stride, 1) || !all_are(call.spatial.dilation, 1) ||
      !lowering.is_constant(call.weight) || is_pinned(lowering.node())) {
    return std::nullopt;
  }
  const Shape source = dimensions(call.source.layout);
  Winograd kernel;
  kernel.batch = source[0];
  kernel.source_channels = weight[1];
  kernel.target_channels = weight[0];
  for (std::size_t i = 0; i < 2; ++i) {
    kernel.source_extent[i] = source[i + 2];
    kernel.target_extent[i] = call.output[i + 2];
    kernel.pad[i] = call.spatial.pad_begin[i];
  }
  kernel.threads = lowering.machine().threads;
  std::optional<Winograd> best;
  double least = 0.0;
  for (const Winograd::Filter& filter : winograd_filters(weight[2], weight[3])) {
    kernel.filter = filter;
    if (!best) least = kGain * direct_cycles(kernel);
    const double cycles = filter_cycles(kernel);
    if (cycles >= least) continue;
    least = cycles;
    best = kernel;
  }
  return best;
}

}  // namespace

std::optional<Value> add_winograd(Lowering& lowering, const ConvolutionCall& call) {
  std::optional<Winograd> kernel = choose_filter(lowering, call);
  if (!kernel) return std::nullopt;
  // Laid out first: a sum must not overwrite the memory that the source is then read from.
  const Value source =
      lowering.in_layout(call.source, blocked_layout(dimensions(call.source.layout), call.type));
  const Layout layout = blocked_layout(call.output, call.type);
  const PostOps post = make_post_ops(lowering, layout, {source});
  const auto epilogue = epilogue_steps(post, layout);
  if (!epilogue || post.reads.size() > kMaximumOperands) return std::nullopt;
  kernel->epilogue = *epilogue;
  kernel->has_bias = call.bias.has_value();
  const Value weight = ordered_weights(
      lowering, call.weight, kernel->weight_floats(),
      [kernel = *kernel](const float* from, float* to) { kernel.transform_weights(from, to); });
  std::vector<Value> reads{source, weight};
  if (call.bias) reads.push_back(*call.bias);
  for (const PrimitiveOperand& operand : post.reads) reads.push_back(operand.value);
  const Value target = target_of(lowering, post, call.type, layout);
  const std::size_t first_operand = call.bias ? 3 : 2;
  const std::size_t last_operand = reads.size();
  lowering.add_kernel(
      reads, target,
      [kernel = *kernel, first_operand, last_operand](std::span<std::byte* const> operands) {
        const float* values[kMaximumOperands]{};
        for (std::size_t i = first_operand; i < last_operand; ++i) {
          values[i - first_operand] = floats(operands[i]);
        }
        kernel.run(floats(operands[0]), floats(operands[1]),
                   kernel.has_bias ? floats(operands[2]) : nullptr, values,
                   floats(operands[last_operand]), floats(operands[last_operand + 1]));
      },
      KernelKind::kCompute, kernel->scratch_bytes());
  return target;
}

}  // namespace npu::onednn
