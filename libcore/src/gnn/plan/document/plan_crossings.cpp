// SPDX-License-Identifier: Apache-2.0
// Which device plans have a device other than the host read rows of other parts, and what crosses
// for them. O(device plans * tensors of a layer + assignments).
#include "gnn/plan/document/plan_crossings.hpp"

#include <algorithm>

#include "npu/support/ids.hpp"

namespace npu::gnn {

std::vector<char> crossing_device_plans(const GnnPlan& plan, const StagedModel& model) {
  std::vector<char> crosses;
  if (!plan.choice.exchange) return crosses;
  for (const PlannedStages& stages : plan.choice.device_plans) {
    if (index_of(stages.layer) > model.layers.size()) {  // nothing uses it
      crosses.push_back(0);
      continue;
    }
    const LayerInfo& layer = model.layers[index_of(stages.layer - 1)];
    const auto reads = [&](const PlannedSegment& segment) {
      return layer.reads_other_parts(segment.first, std::min(segment.last, layer.stage_count())) &&
             std::any_of(segment.shares.begin(), segment.shares.end(),
                         [&](const PlannedShare& share) {
                           return share.device != plan.choice.exchange->host;
                         });
    };
    crosses.push_back(std::any_of(stages.segments.begin(), stages.segments.end(), reads) ? 1 : 0);
  }
  return crosses;
}

std::vector<LayerCrossing> count_crossings(const GnnPlan& plan, const StagedModel& model) {
  const std::vector<char> crosses = crossing_device_plans(plan, model);
  std::vector<LayerCrossing> layers;
  for (std::size_t l = 0; l < model.layers.size(); ++l) {
    layers.push_back({.layer = static_cast<std::int32_t>(l) + 1});
  }
  std::vector<const SubgraphSize*> size_of(index_of(plan.choice.k), nullptr);
  for (const PlanSubgraph& subgraph : plan.choice.subgraphs) {
    size_of.at(index_of(subgraph.size.id)) = &subgraph.size;
  }
  for (const PlanAssignment& assignment : plan.choice.assignments) {
    if (crosses.at(index_of(assignment.device_plan)) == 0) continue;
    const SubgraphSize& size = *size_of.at(index_of(assignment.subgraph));
    LayerCrossing& layer = layers.at(index_of(assignment.layer - 1));
    layer.rows += size.halo - size.saved;
    layer.halo += size.halo;
  }
  for (std::size_t l = 0; l < layers.size(); ++l) {
    layers[l].bytes = layers[l].rows * 4 * model.layers[l].input_features;
  }
  return layers;
}

}  // namespace npu::gnn
