// SPDX-License-Identifier: Apache-2.0
// Measures sizes of tiles and work groups.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "abi/boundary.hpp"
#include "npu/ir/graph.hpp"

namespace npu::opencl {

/// The fastest sizes of each kernel of the graph that `machine` has no measured ones of; they are
/// added to it. `progress` is told how many kernels are measured. Kernels that the device has no
/// memory or no clock for are left out.
std::map<std::string, std::vector<std::int64_t>> measure_sizes(
    npu_device& device, const Graph& graph, Machine& machine,
    const std::function<void(std::size_t done, std::size_t total)>& progress);

}  // namespace npu::opencl
