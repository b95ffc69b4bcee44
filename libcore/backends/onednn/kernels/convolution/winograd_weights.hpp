// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "kernels/base/fields.hpp"
#include "kernels/base/footprint.hpp"
#include "kernels/base/footprint_builder.hpp"
#include "kernels/base/operands.hpp"
#include "kernels/convolution/winograd.hpp"

namespace npu::onednn {

/// Weights [target channels, source channels, taps..], transformed: weight_floats() of them.
struct WinogradWeights {
  static constexpr std::string_view kName = "winograd-weights";
  Winograd winograd;

  struct Operands {
    const float* source;
    float* target;
  };
  static Operands bind(Addresses addresses);
  void run(const Operands& operands) const;
};

NPU_FIELDS(WinogradWeights, winograd);
Footprint footprint(const WinogradWeights& kernel);

namespace winograd {
/// weight_floats(): transformed weights, those of the definition, and what was found out about
/// them. Throws Error kInvalidGraph for a filter or channels that there are no kernels for.
Count checked_weights(const Winograd& kernel);
}  // namespace winograd

}  // namespace npu::onednn
