// SPDX-License-Identifier: Apache-2.0
// From a sub-IR to a plan and the source of its kernels.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "emitter.hpp"
#include "plan.hpp"

namespace npu::opencl {

struct LoweredGraph {
  Plan plan;
  std::string source;  ///< of all programs, one behind the other
  std::string report;  ///< JSON, see npu-compile(1)
  /// By launch, what may be measured of it.
  std::vector<std::optional<Tunable>> tunables;
};

/// Throws Error that names the node which is not supported. `progress` is called with nodes done
/// and all.
LoweredGraph lower_graph(const Graph& graph, Machine machine,
                         const std::function<void(std::size_t, std::size_t)>& progress);

/// Scratch memory for tensors that live from one launch to another: offsets, so that no two that
/// live at once overlap.
struct ScratchTensor {
  std::uint64_t bytes = 0;
  std::size_t first = 0;  ///< launches that write and last read it
  std::size_t last = 0;
  std::uint64_t offset = 0;  ///< filled
};
/// Returns the bytes that are needed.
std::uint64_t plan_scratch(std::vector<ScratchTensor>& tensors);

}  // namespace npu::opencl
