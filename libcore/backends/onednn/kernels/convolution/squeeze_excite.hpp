// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "kernels/base/fields.hpp"
#include "kernels/base/footprint.hpp"
#include "kernels/base/operands.hpp"
#include "npu/tensor/dtype.hpp"

namespace npu::onednn {

/// Squeeze and excitation (Hu et al. 2018) of channels in blocks, or last: the mean of each
/// channel, a layer with an activation, a layer with a sigmoid, and the product of the channel with
/// that.
struct SqueezeExcite {
  static constexpr std::string_view kName = "squeeze-excite";
  DType type = DType::kFloat32;  ///< of source and target: float32 or bfloat16
  std::int64_t batch = 1;
  std::int64_t channels = 16;  ///< a multiple of lanes
  std::int64_t lanes = 16;     ///< of a block: lanes_of(isa)
  bool channels_last = false;  ///< all channels of a pixel lie together, not a block's alone
  std::int64_t spatial = 1;
  std::int64_t hidden = 1;
  EpilogueStep activation;  ///< of the hidden layer; without an operand
  bool hard_gate = false;   ///< clip(x / 6 + 1 / 2, 0, 1) for the sigmoid
  bool has_hidden_bias = false;
  bool has_gate_bias = false;
  int threads = 1;
  VectorIsa isa = VectorIsa::kAny;

  /// True if the instruction set's vectors have so many lanes.
  static bool supports(std::int64_t lanes, VectorIsa isa) noexcept;
  /// From a pixel of a block of channels to the next, and from the first of a block to that of the
  /// next, in elements.
  std::int64_t pixel_step() const noexcept { return channels_last ? channels : lanes; }
  std::int64_t group_step() const noexcept { return channels_last ? lanes : spatial * lanes; }
  std::size_t scratch_bytes() const;

  struct Operands {
    const std::byte* source;
    const float* hidden_weight;  ///< [hidden, channels]
    const float* gate_weight;    ///< as GateWeights makes them
    const float* hidden_bias;    ///< null without, as the next
    const float* gate_bias;
    std::byte* target;  ///< may be the source
    float* scratch;
  };
  Operands bind(Addresses addresses) const;
  void run(const Operands& operands) const;
};

/// Weights [channels, hidden] of the second layer as SqueezeExcite reads them.
struct GateWeights {
  static constexpr std::string_view kName = "gate-weights";
  std::int64_t channels = 16;
  std::int64_t lanes = 16;
  std::int64_t hidden = 1;

  struct Operands {
    const float* source;
    float* target;
  };
  static Operands bind(Addresses addresses);
  void run(const Operands& operands) const;
};

NPU_FIELDS(SqueezeExcite, type, batch, channels, lanes, channels_last, spatial, hidden, activation,
           hard_gate, has_hidden_bias, has_gate_bias, isa);
NPU_FIELDS(GateWeights, channels, lanes, hidden);
Footprint footprint(const SqueezeExcite& kernel);
Footprint footprint(const GateWeights& kernel);

}  // namespace npu::onednn
