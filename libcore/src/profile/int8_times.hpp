// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "profile/profile_model.hpp"

namespace npu {

/// The model in int8, by options.ranges. Throws Error for ranges of another model, and for a model
/// that is fused or partitioned.
Graph quantized_copy(const Graph& graph, const ProfileModelOptions& options,
                     Diagnostics& diagnostics);

/// Measures that and conversions between float32 and integers, on each device, and fills in the
/// table's `int8` and `conversions`.
void add_int8_times(const Graph& graph, const Graph& int8, const ProfileModelOptions& options,
                    const ProgressCallback& progress, Diagnostics& diagnostics, NodeTable& table);

}  // namespace npu
