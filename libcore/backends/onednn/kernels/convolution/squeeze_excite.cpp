// SPDX-License-Identifier: Apache-2.0
// One team of threads for all four steps, each with its part of the channels: what a thread has
// summed up lies in its cache when it comes back to scale it. Threads wait for one another twice
// for each image. Every number is computed by one thread in one order, whatever their number.
// O(channels * (spatial + hidden) / lanes) vectors.
#include "kernels/convolution/squeeze_excite.hpp"

#include "kernels/base/exponentials.hpp"
#include "kernels/base/footprint_builder.hpp"
#include "kernels/base/share_work.hpp"

namespace npu::onednn {

namespace {

constexpr std::int64_t kParallelElements = 16384;

/// A step of one image for some blocks of channels, or some hidden units.
struct Part {
  enum class Step : std::uint8_t { kMean, kHidden, kScale };
  const SqueezeExcite* call;
  const std::byte* source;
  const float* hidden_weight;
  const float* hidden_bias;
  const float* gate_weight;
  const float* gate_bias;
  std::byte* target;
  float* means;
  float* hidden;
  Step step;
  std::int64_t first;
  std::int64_t last;
};

/// The mean of a block of channels whose sums overflow float32: parts of the elements are added.
/// What is infinite or NaN in the source stays so.
template <typename V, typename T>
[[gnu::always_inline]] inline V mean_of_large(const T* from, std::int64_t spatial,
                                              std::int64_t step, float factor) {
  V sum{};
  for (std::int64_t i = 0; i < spatial; ++i) sum += load_as_floats<V>(from + i * step) * factor;
  return sum;
}

template <typename V, typename T>
[[gnu::always_inline]] inline void compute_means(const Part& part) {
  constexpr std::int64_t kLanes = sizeof(V) / sizeof(float);
  const std::int64_t spatial = part.call->spatial;
  const std::int64_t step = part.call->pixel_step();
  const float factor = 1.0F / static_cast<float>(spatial);
  for (std::int64_t group = part.first; group < part.last; ++group) {
    const T* from = static_cast<const T*>(static_cast<const void*>(part.source)) +
                    group * part.call->group_step();
    V sums[4]{};
    std::int64_t i = 0;
    for (; i + 4 <= spatial; i += 4) {
#pragma GCC unroll 4
      for (int j = 0; j < 4; ++j) sums[j] += load_as_floats<V>(from + (i + j) * step);
    }
    for (; i < spatial; ++i) sums[0] += load_as_floats<V>(from + i * step);
    V mean = ((sums[0] + sums[1]) + (sums[2] + sums[3])) * factor;
    // An infinity or NaN less itself is NaN, all else 0.
    if (sum_of_elements(mean - mean) != 0.0F) mean = mean_of_large<V>(from, spatial, step, factor);
    store_vector(part.means + group * kLanes, mean);
  }
}

template <typename V>
[[gnu::always_inline]] inline void compute_hidden(const Part& part) {
  constexpr std::int64_t kLanes = sizeof(V) / sizeof(float);
  const std::int64_t channels = part.call->channels;
  for (std::int64_t unit = part.first; unit < part.last; ++unit) {
    const float* weight = part.hidden_weight + unit * channels;
    V sum{};
    for (std::int64_t c = 0; c < channels; c += kLanes) {
      sum += load_vector<V>(weight + c) * load_vector<V>(part.means + c);
    }
    float total = part.call->has_hidden_bias ? part.hidden_bias[unit] : 0.0F;
    for (std::int64_t i = 0; i < kLanes; ++i) total += sum[i];
    part.hidden[unit] = apply_step<sizeof(V) == 64>(part.call->activation, V{} + total)[0];
  }
}

template <typename V, typename T>
[[gnu::always_inline]] inline void scale_channels(const Part& part) {
  constexpr std::int64_t kLanes = sizeof(V) / sizeof(float);
  const SqueezeExcite& call = *part.call;
  const std::int64_t step = call.pixel_step();
  for (std::int64_t group = part.first; group < part.last; ++group) {
    const float* weight = part.gate_weight + group * call.hidden * kLanes;
    V sums[4]{};
    if (call.has_gate_bias) sums[0] = load_vector<V>(part.gate_bias + group * kLanes);
    std::int64_t unit = 0;
    for (; unit + 4 <= call.hidden; unit += 4) {
#pragma GCC unroll 4
      for (int j = 0; j < 4; ++j) {
        sums[j] += part.hidden[unit + j] * load_vector<V>(weight + (unit + j) * kLanes);
      }
    }
    for (; unit < call.hidden; ++unit) {
      sums[0] += part.hidden[unit] * load_vector<V>(weight + unit * kLanes);
    }
    const V sum = (sums[0] + sums[1]) + (sums[2] + sums[3]);
    constexpr bool kAvx512 = sizeof(V) == 64;
    const V gate =
        call.hard_gate ? hard_sigmoid_vector<kAvx512>(sum) : sigmoid_vector<kAvx512>(sum);
    const std::int64_t begin = group * call.group_step();
    const T* from = static_cast<const T*>(static_cast<const void*>(part.source)) + begin;
    T* to = static_cast<T*>(static_cast<void*>(part.target)) + begin;
    for (std::int64_t i = 0; i < call.spatial; ++i) {
      store_floats<V>(to + i * step, load_as_floats<V>(from + i * step) * gate);
    }
  }
}

template <typename V>
[[gnu::always_inline]] inline void run_part(const Part& part) {
  const bool is_float = part.call->type == DType::kFloat32;
  switch (part.step) {
    case Part::Step::kMean:
      is_float ? compute_means<V, float>(part) : compute_means<V, std::uint16_t>(part);
      break;
    case Part::Step::kHidden:
      compute_hidden<V>(part);
      break;
    case Part::Step::kScale:
      is_float ? scale_channels<V, float>(part) : scale_channels<V, std::uint16_t>(part);
  }
}

void run_anywhere(const Part& part) { run_part<NarrowFloats>(part); }
NPU_TARGET_AVX2 void run_avx2(const Part& part) { run_part<NarrowFloats>(part); }
NPU_TARGET_AVX512 void run_avx512(const Part& part) { run_part<Float16>(part); }

}  // namespace

bool SqueezeExcite::supports(std::int64_t lanes, VectorIsa isa) noexcept {
  return lanes == lanes_of(isa);
}

std::size_t SqueezeExcite::scratch_bytes() const {
  return static_cast<std::size_t>(channels + hidden) * sizeof(float);
}

GateWeights::Operands GateWeights::bind(Addresses addresses) {
  OperandReader in(addresses);
  return {in.next<const float>(), in.next<float>()};
}

void GateWeights::run(const Operands& operands) const {
  for (std::int64_t channel = 0; channel < channels; ++channel) {
    float* to = operands.target + channel / lanes * hidden * lanes + channel % lanes;
    for (std::int64_t unit = 0; unit < hidden; ++unit) {
      to[unit * lanes] = operands.source[channel * hidden + unit];
    }
  }
}

SqueezeExcite::Operands SqueezeExcite::bind(Addresses addresses) const {
  OperandReader in(addresses);
  return {in.next<const std::byte>(),
          in.next<const float>(),
          in.next<const float>(),
          in.next_if<const float>(has_hidden_bias),
          in.next_if<const float>(has_gate_bias),
          in.next<std::byte>(),
          in.next<float>()};
}

void SqueezeExcite::run(const Operands& operands) const {
  const auto body = for_isa(isa, run_anywhere, run_avx2, run_avx512);
  const std::int64_t groups = channels / lanes;
  const std::int64_t image_bytes = channels * spatial * static_cast<std::int64_t>(dtype_size(type));
  const int team = channels * spatial >= kParallelElements ? threads : 1;
  for (std::int64_t image = 0; image < batch; ++image) {
    const auto run_step = [&](Part::Step step, std::int64_t count) {
      const std::int64_t pieces = std::min<std::int64_t>(count, std::int64_t{2} * team);
      share_pieces(pieces, team, [&](std::int64_t piece, int) {
        body({this, operands.source + image * image_bytes, operands.hidden_weight,
              operands.hidden_bias, operands.gate_weight, operands.gate_bias,
              operands.target + image * image_bytes, operands.scratch, operands.scratch + channels,
              step, count * piece / pieces, count * (piece + 1) / pieces});
      });
    };
    run_step(Part::Step::kMean, groups);
    run_step(Part::Step::kHidden, hidden);
    run_step(Part::Step::kScale, groups);
  }
}

Footprint footprint(const SqueezeExcite& kernel) {
  require(is_float(kernel.type), "'type' is no float type");
  require(SqueezeExcite::supports(kernel.lanes, kernel.isa), "'lanes' are not those of 'isa'");
  require(kernel.channels > 0 && kernel.channels % kernel.lanes == 0,
          "'channels' does not fill blocks");
  require_no_operands({kernel.activation});
  const Count channels = kernel.channels;
  const Count hidden = at_least_one(kernel.hidden, "hidden");
  const Count elements =
      at_least_one(kernel.batch, "batch") * channels * at_least_one(kernel.spatial, "spatial");
  FootprintBuilder builder;
  builder.read(elements, size_of(kernel.type), true)
      .read(hidden * channels)
      .read(hidden * channels)
      .read_if(kernel.has_hidden_bias, hidden)
      .read_if(kernel.has_gate_bias, channels)
      .write(elements, size_of(kernel.type));
  return builder.with_scratch(kernel, (channels + hidden) * kFloat);
}

Footprint footprint(const GateWeights& kernel) {
  const Count channels = at_least_one(kernel.channels, "channels");
  const Count lanes = at_least_one(kernel.lanes, "lanes");
  const Count hidden = at_least_one(kernel.hidden, "hidden");
  return FootprintBuilder()
      .read(channels * hidden)
      .write(Count{ceil_div(channels.value(), lanes.value())} * lanes * hidden)
      .done();
}

}  // namespace npu::onednn
