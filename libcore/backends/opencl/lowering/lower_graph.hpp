// SPDX-License-Identifier: Apache-2.0
// From a sub-IR to a plan and the source of its kernels.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "emit/machine.hpp"
#include "lowering/plan.hpp"
#include "npu/ir/graph.hpp"

namespace npu::opencl {

struct LoweredGraph {
  Plan plan;
  std::string source;  ///< of all programs in a row
  std::string report;  ///< JSON, see npu-compile(1)
  /// By launch, what may be measured of it.
  std::vector<std::optional<Tunable>> tunables;
};

/// Throws Error that names the node which is not supported. `progress` is called with nodes done
/// and all.
LoweredGraph lower_graph(const Graph& graph, Machine machine,
                         const std::function<void(std::size_t, std::size_t)>& progress);

}  // namespace npu::opencl
