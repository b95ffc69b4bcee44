// SPDX-License-Identifier: Apache-2.0
// Resampling to another size by nearest, linear and cubic interpolation: which elements an element
// of the result is made of is known when a program is compiled. Positions are computed in float32
// and in PyTorch's order, since a rounding decides between two neighbours. O(extents of the
// result).
#include <algorithm>
#include <array>
#include <cmath>

#include "lowering/engine/channel_layout.hpp"
#include "lowering/sampling/sampling.hpp"
#include "ops/op_name.hpp"

namespace npu::onednn {

namespace {

enum class Interpolation : std::uint8_t { kNearest, kNearestExact, kLinear, kCubic };

struct ResampledSize {
  std::vector<std::int64_t> extents;
  std::vector<double> scales;  ///< 0 for those that the sizes give
};

/// Positions are float32, which counts no further.
constexpr std::int64_t kMostPositions = std::int64_t{1} << 24;

Interpolation interpolation_of(std::string_view op_type) {
  if (op_type.find("nearest_exact") != std::string_view::npos) return Interpolation::kNearestExact;
  if (op_type.find("nearest") != std::string_view::npos) return Interpolation::kNearest;
  return op_type.find("cubic") != std::string_view::npos ? Interpolation::kCubic
                                                         : Interpolation::kLinear;
}

/// Of a .vec overload: a size, or one factor for each dimension.
ResampledSize size_by_list(const Lowering& lowering, const BoundNode& node, const Shape& input) {
  const std::size_t count = input.size() - 2;
  ResampledSize result;
  result.scales.assign(count, 0.0);
  if (!node.is_none("output_size")) {
    result.extents = spatial_argument(lowering, node, "output_size", count, 1);
    return result;
  }
  const BoundArgument* factors = node.find("scale_factors");
  if (node.is_none("scale_factors") || !factors->value.is_array() ||
      factors->value.size() != count) {
    lowering.invalid("argument 'scale_factors': expected " + std::to_string(count) + " numbers");
  }
  for (std::size_t i = 0; i < count; ++i) {
    const auto number = json_number(factors->value[i]);
    if (!number || !(*number > 0)) {
      lowering.invalid("argument 'scale_factors': a positive number is needed");
    }
    result.scales[i] = *number;
    const double extent = static_cast<double>(input[i + 2]) * result.scales[i];
    if (!(extent >= 1.0) || extent > static_cast<double>(kMostPositions)) {
      lowering.refuse("scale_factors", "the size is not in 1.." + number_text(kMostPositions));
    }
    result.extents.push_back(static_cast<std::int64_t>(extent));
  }
  return result;
}

ResampledSize read_size(const Lowering& lowering, const BoundNode& node, const Shape& input) {
  const std::size_t count = input.size() - 2;
  if (node.node().op_type.ends_with(".vec")) return size_by_list(lowering, node, input);
  ResampledSize result;
  result.extents = spatial_argument(lowering, node, "output_size", count, 1);
  result.scales.assign(count, 0.0);
  constexpr std::array<std::string_view, 3> kNames{"scales_d", "scales_h", "scales_w"};
  for (std::size_t i = 0; i < count; ++i) {
    const std::string_view name = count == 1 ? "scales" : kNames[3 - count + i];
    // As in PyTorch, one that is not positive stands for none.
    if (!node.is_none(name) && node.number(name) > 0) result.scales[i] = node.number(name);
  }
  return result;
}

/// How far a step of one element of the result goes in the source.
float step_of(std::int64_t input, std::int64_t output, double scale, bool align_corners) {
  if (align_corners) {
    return output > 1 ? static_cast<float>(input - 1) / static_cast<float>(output - 1) : 0.0F;
  }
  return scale > 0 ? static_cast<float>(1.0 / scale)
                   : static_cast<float>(input) / static_cast<float>(output);
}

/// A position that a float32 holds as an index.
std::int64_t index_at(float position, std::int64_t extent) {
  return static_cast<std::int64_t>(
      std::clamp(std::floor(position), 0.0F, static_cast<float>(extent - 1)));
}

/// Cubic convolution with A = -0.75 (Keys 1981): the factors of the four elements around.
std::array<float, 4> cubic_weights(float t) {
  constexpr float kA = -0.75F;
  const auto near = [](float x) { return ((kA + 2.0F) * x - (kA + 3.0F)) * x * x + 1.0F; };
  const auto far = [](float x) { return ((kA * x - 5.0F * kA) * x + 8.0F * kA) * x - 4.0F * kA; };
  return {far(t + 1.0F), near(t), near(1.0F - t), far(2.0F - t)};
}

/// What element `at` of the result is made of.
void add_taps(std::vector<Tap>& taps, Interpolation how, float step, bool align_corners,
              std::int64_t at, std::int64_t extent) {
  const auto place = static_cast<float>(at);
  if (how == Interpolation::kNearest || how == Interpolation::kNearestExact) {
    const float shift = how == Interpolation::kNearest ? 0.0F : 0.5F;
    taps.push_back({index_at((place + shift) * step, extent), 1.0F});
    return;
  }
  float position = align_corners ? step * place : step * (place + 0.5F) - 0.5F;
  if (how == Interpolation::kLinear) {
    position = std::max(position, 0.0F);
    const std::int64_t index = index_at(position, extent);
    const float weight = std::clamp(position - static_cast<float>(index), 0.0F, 1.0F);
    taps.push_back({index, 1.0F - weight});
    taps.push_back({std::min(index + 1, extent - 1), weight});
    return;
  }
  const float below = std::floor(position);
  const auto weights = cubic_weights(position - below);
  for (int i = 0; i < 4; ++i) {
    taps.push_back({index_at(below + static_cast<float>(i - 1), extent),
                    weights[static_cast<std::size_t>(i)]});
  }
}

std::int64_t taps_of(Interpolation how) {
  if (how == Interpolation::kCubic) return 4;
  return how == Interpolation::kLinear ? 2 : 1;
}

Resample resample_of(const Lowering& lowering, const BoundNode& node, const Shape& input,
                     const ResampledSize& size) {
  const Interpolation how = interpolation_of(node.node().op_type);
  const bool align_corners = node.find("align_corners") != nullptr && node.boolean("align_corners");
  Resample call;
  for (std::size_t i = 0; i < size.extents.size(); ++i) {
    const std::size_t at = 3 - size.extents.size() + i;
    const std::int64_t from = input[i + 2];
    const std::int64_t to = size.extents[i];
    if (from > kMostPositions || to > kMostPositions) {
      lowering.refuse("output_size",
                      "an extent above " + number_text(kMostPositions) + " is not supported");
    }
    const float step = step_of(from, to, size.scales[i], align_corners);
    call.extents[at] = from;
    call.width[at] = taps_of(how);
    call.taps[at].clear();
    // PyTorch takes a single channel for the last dimension of its memory, for which nearest
    // neighbours of the same and of twice the size do not follow the scale.
    const bool is_exact = how == Interpolation::kNearest && input[1] == 1 && input.size() > 3 &&
                          (to == from || to == 2 * from);
    for (std::int64_t j = 0; j < to; ++j) {
      if (is_exact) {
        call.taps[at].push_back({j * from / to, 1.0F});
      } else if (from == to && how == Interpolation::kLinear) {  // a copy, whatever the scale is
        call.taps[at].insert(call.taps[at].end(), {{j, 1.0F}, {j, 0.0F}});
      } else {
        add_taps(call.taps[at], how, step, align_corners, j, from);
      }
    }
  }
  return call;
}

bool is_graph_output(const Lowering& lowering, TensorId tensor) {
  const auto& outputs = lowering.graph().graph_outputs();
  return std::find(outputs.begin(), outputs.end(), tensor) != outputs.end();
}

}  // namespace

ResampleCall read_resample(Lowering& lowering, const BoundNode& node) {
  const std::string_view name = node.node().op_type.ends_with(".vec") ? "input" : "self";
  ResampleCall call;
  call.input = tensor_argument(lowering, node, name);
  lowering.require_float(name, call.input);
  const Shape& shape = lowering.shape(call.input);
  const auto rank = static_cast<std::size_t>(spatial_rank(node.node().op_type)) + 2;
  if (shape.size() != rank) {
    lowering.refuse(name,
                    "rank " + std::to_string(shape.size()) + " is not " + std::to_string(rank));
  }
  const ResampledSize size = read_size(lowering, node, shape);
  call.output = {shape[0], shape[1]};
  call.output.insert(call.output.end(), size.extents.begin(), size.extents.end());
  lowering.check_result(node.node().outputs.front(), call.output, lowering.dtype(call.input));
  call.kernel = resample_of(lowering, node, shape, size);
  return call;
}

void lower_resample(Lowering& lowering, const GroupContext& context, const BoundNode& node) {
  auto [input, output, call] = read_resample(lowering, node);
  const Shape& shape = lowering.shape(input);
  Value source = lowering.operand(input, context.compute_type);
  if (call.is_copy()) {
    return lowering.define_computed(context, lowering.result(), output, lowering.dtype(input),
                                    source);
  }
  Layout layout = plain_layout(output, source.type);
  call.planes = shape[0] * shape[1];
  // Channels stay in blocks, unless the host reads the result: the source is the smaller one.
  const auto space = channel_layout(source.layout);
  if (space && space->lanes == lowering.machine().lanes() && !is_strided(source.layout) &&
      !is_graph_output(lowering, lowering.result())) {
    layout = lowering.blocked(output, source.type);
    call.planes = space->outer * space->groups;
    call.lanes = space->lanes;
  } else {
    source = lowering.plain(source);
  }
  call.type = source.type;
  call.threads = lowering.machine().threads;
  const Value target = lowering.temporary(source.type, layout);
  lowering.add_kernel({source}, target, std::move(call));
  lowering.define_computed(context, lowering.result(), output, lowering.dtype(input), target);
}

}  // namespace npu::onednn
