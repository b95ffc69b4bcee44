// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "kernels/sampling/pooling.hpp"
#include "kernels/sampling/resample.hpp"
#include "lowering/engine/node_arguments.hpp"

namespace npu::onednn {

/// What an average pooling averages.
struct AverageWindows {
  Shape input;                               ///< [N, C, spatial..]
  Shape output;                              ///< likewise
  std::vector<std::vector<Window>> windows;  ///< by spatial dimension and position
  std::int64_t divisor = 0;                  ///< 0: that of each window
};
AverageWindows read_average(Lowering& lowering, const BoundNode& node);
/// The mean over all dimensions behind the channels, which stay as dimensions of 1; nothing if
/// oneDNN has no pooling of that rank, or none that is fast for images in rows.
std::optional<Value> add_plane_mean(Lowering& lowering, const Value& value);

/// A resampling by its arguments. The kernel knows neither planes nor type.
struct ResampleCall {
  TensorId input;
  Shape output;
  Resample kernel;
};
ResampleCall read_resample(Lowering& lowering, const BoundNode& node);

void lower_adaptive_average_pool(Lowering& lowering, const GroupContext& context,
                                 const BoundNode& node);
void lower_average_pool(Lowering& lowering, const GroupContext& context, const BoundNode& node);
void lower_grid_sample(Lowering& lowering, const GroupContext& context, const BoundNode& node);
void lower_max_pool(Lowering& lowering, const GroupContext& context, const BoundNode& node);
void lower_resample(Lowering& lowering, const GroupContext& context, const BoundNode& node);

}  // namespace npu::onednn
