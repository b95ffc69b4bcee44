// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "epilogue_step.hpp"
#include "npu/tensor/dtype.hpp"

namespace npu::onednn {

/// Squeeze and excitation (Hu et al. 2018) of channels in blocks: the mean of each channel, a layer
/// with an activation, a layer with a sigmoid, and the product of the channel with that.
struct SqueezeExcite {
  DType type = DType::kFloat32;  ///< of source and target: float32 or bfloat16
  std::int64_t batch = 1;
  std::int64_t channels = 16;  ///< a multiple of lanes
  std::int64_t lanes = 16;     ///< of a block: 8 or 16
  std::int64_t spatial = 1;
  std::int64_t hidden = 1;
  EpilogueStep activation;  ///< of the hidden layer; without an operand
  bool hard_gate = false;   ///< clip(x / 6 + 1 / 2, 0, 1) for the sigmoid
  bool has_hidden_bias = false;
  bool has_gate_bias = false;
  int threads = 1;

  /// True if this CPU has vectors of so many lanes.
  static bool supports(std::int64_t lanes) noexcept;
  std::size_t scratch_bytes() const;
  /// Weights [channels, hidden] of the second layer as run reads them.
  void order_gate_weights(const float* weight, float* ordered) const;
  /// `hidden_weight` is [hidden, channels]; `target` may be `source`.
  void run(const std::byte* source, const float* hidden_weight, const float* hidden_bias,
           const float* gate_weight, const float* gate_bias, std::byte* target,
           float* scratch) const;
};

}  // namespace npu::onednn
