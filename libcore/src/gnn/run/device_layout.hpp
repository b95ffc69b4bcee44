// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "csr/csr_graph.hpp"
#include "gnn/exchange/rank_layout.hpp"
#include "gnn/model/staged_model.hpp"
#include "gnn/plan/document/plan_document.hpp"

namespace npu::gnn {

/// What a plan for one process lets cross between its devices.
struct DeviceLayout {
  /// Of one rank that owns all nodes, each at its own row: `local` are the sums that cross, behind
  /// which lies a row of zeros, and `parts` those that have a cover; the others are empty.
  RankLayout rows;
  std::vector<std::int64_t> row_bytes;  ///< by layer; 0: nothing crosses
  std::vector<float> factors;           ///< of nodes in sums; empty: 1
  float neutral_degree = 0;             ///< EdgeSums::neutral_degree
  std::vector<char> crosses;            ///< crossing_device_plans
};

/// Throws Error kInvalidGraph if the model has no such sums, if the plan's covers do not cover the
/// edges of the graph, or if a part is not as large as the plan says; `file` is the plan's.
/// O(nodes + edges).
DeviceLayout lay_out_devices(const GnnPlan& plan, const StagedModel& model,
                             const CsrGraph& in_edges, const std::vector<std::int32_t>& part_of,
                             const std::string& file);

}  // namespace npu::gnn
