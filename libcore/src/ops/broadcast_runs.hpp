// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "npu/tensor/tensor.hpp"

namespace npu {

/// How a tensor of shape [repeat, outer, inner_repeat, inner] reads one of shape [1, outer, 1,
/// inner].
struct BroadcastRuns {
  std::int64_t repeat = 1;
  std::int64_t outer = 1;
  std::int64_t inner_repeat = 1;
  std::int64_t inner = 1;

  friend bool operator==(const BroadcastRuns&, const BroadcastRuns&) = default;
};

/// The runs of a tensor that is broadcast to `whole`, both row-major; nothing if its shape does not
/// fit, or if more than two runs of dimensions are broadcast. A tensor of the same shape is one
/// run.
std::optional<BroadcastRuns> broadcast_runs(const Shape& whole, const Shape& part);

/// The same for tensors with their channels, dimension 1, last.
std::optional<BroadcastRuns> broadcast_runs_of_channels(const Shape& whole, const Shape& part);

/// Whether there are runs in each order that tensors of this rank lie in.
bool has_broadcast_runs(const Shape& whole, const Shape& part);

}  // namespace npu
