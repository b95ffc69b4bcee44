// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "npu/ir/graph.hpp"
#include "npu/target/target.hpp"

namespace npu::align {

/// What npu.partition says of channel_norms, to be taken off and added again around a change of the
/// graph: members, borders, FLOPs and bytes of partitions, and the metrics that count or time them.
class PlanUpdate {
 public:
  /// Before the change.
  explicit PlanUpdate(const Graph& graph);

  /// After it. `joined`: new nodes and the partitions that they run in.
  void finish(Graph& graph, const std::unordered_map<std::string, std::int64_t>& joined);

 private:
  void account(const Graph& graph, int sign);

  std::optional<Target> target_;
  std::map<std::string, double> us_;           // metric, nanoseconds
  std::map<std::string, std::int64_t> nodes_;  // metric
};

}  // namespace npu::align
