// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "npu/ir/graph.hpp"
#include "npu/tensor/dtype.hpp"

namespace npu::onednn {

/// What a tensor of floats is dequantized from: (source - zero point) * scale.
struct Dequantization {
  NodeId node;
  TensorId source;
  DType type = DType::kUInt8;  ///< of the source
  double scale = 1.0;          ///< of all elements, unless `scales` is set
  std::int64_t zero_point = 0;
  std::optional<TensorId> scales{};  ///< one for each element of dimension `axis`
  std::optional<TensorId> zero_points{};
  std::int64_t axis = 0;

  /// One byte an element and one scale for all: what kernels on activations take.
  bool is_activation() const noexcept { return !scales && is_byte(type); }
};

}  // namespace npu::onednn
