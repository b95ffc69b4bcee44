// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "device/device_instance.hpp"
#include "npu/compile/compiler.hpp"
#include "npu/ir/graph.hpp"
#include "npu/partition/partition_plan.hpp"
#include "npu/support/json.hpp"

namespace npu {

/// What a backend reports of a blob, with what it says of memory.
Json device_report(DeviceInstance& instance, const Blob& blob);

/// Adds the numbers that every report has, whatever the backend says.
void complete_report(Json& report, const Graph& graph, const Partition& partition,
                     std::int64_t predicted_kernels);

}  // namespace npu
