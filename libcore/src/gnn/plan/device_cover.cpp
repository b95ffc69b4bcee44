// SPDX-License-Identifier: Apache-2.0
// The least that devices of one machine have to be told of other parts.
//
// Rows of nodes lie in the host's memory between layers, so that what a part on another device
// needs of all other parts comes from one place: the edges into the part are one bipartite graph,
// covered as those between two ranks are (least_exchange.cpp). A part that the host computes reads
// rows where they lie, and nothing crosses. O(edges log edges), and one flow for each part.
#include "gnn/plan/device_cover.hpp"

#include <algorithm>

#include "gnn/plan/least_exchange.hpp"
#include "gnn/plan/rank_cut.hpp"
#include "npu/support/ids.hpp"

namespace npu::gnn {

std::vector<PartCover> cover_parts(const CsrGraph& in_edges,
                                   const std::vector<std::int32_t>& part_of,
                                   std::int32_t part_count, bool is_max) {
  std::vector<PartCover> covers;
  for_each_part_cut(in_edges, part_of, part_count, [&](std::int32_t part, const CutEdges& cut) {
    PartCover cover{.part = part,
                    .edges = static_cast<std::int64_t>(cut.edges.size()),
                    .sources = static_cast<std::int64_t>(cut.sources.size()),
                    .targets = static_cast<std::int64_t>(cut.targets.size())};
    cover.cover = fewest_rows(cut);
    cover.rows = static_cast<std::int64_t>(cover.cover.size());
    if (cover.saved_rows(is_max) > 0) covers.push_back(std::move(cover));
  });
  return covers;
}

void set_saved_rows(const std::vector<PartCover>& covers, bool is_max,
                    std::vector<SubgraphSize>& sizes) {
  for (const PartCover& cover : covers) {
    for (SubgraphSize& size : sizes) {
      if (size.id == cover.part) size.saved = cover.saved_rows(is_max);
    }
  }
}

bool reads_other_parts(const LayerInfo& layer, std::int32_t first, std::int32_t last) {
  return std::any_of(layer.tensors.begin(), layer.tensors.end(), [&](const StageTensor& tensor) {
    return tensor.local_rows && tensor.node_bytes > 0 && tensor.producer < first &&
           std::any_of(tensor.consumers.begin(), tensor.consumers.end(), [&](std::int32_t stage) {
             return stage >= first && stage <= last && layer.stages[index_of(stage - 1)].local_rows;
           });
  });
}

std::vector<char> crossing_device_plans(const Plan& plan, const StagedModel& model) {
  std::vector<char> crosses;
  if (!plan.exchange) return crosses;
  for (const PlannedStages& stages : plan.device_plans) {
    if (index_of(stages.layer) > model.layers.size()) {  // nothing uses it
      crosses.push_back(0);
      continue;
    }
    const LayerInfo& layer = model.layers[index_of(stages.layer - 1)];
    const auto reads = [&](const PlannedSegment& segment) {
      return reads_other_parts(layer, segment.first, std::min(segment.last, layer.stage_count())) &&
             std::any_of(
                 segment.shares.begin(), segment.shares.end(),
                 [&](const PlannedShare& share) { return share.device != plan.exchange->host; });
    };
    crosses.push_back(std::any_of(stages.segments.begin(), stages.segments.end(), reads) ? 1 : 0);
  }
  return crosses;
}

std::vector<LayerCrossing> count_crossings(const Plan& plan, const StagedModel& model) {
  const std::vector<char> crosses = crossing_device_plans(plan, model);
  std::vector<LayerCrossing> layers;
  for (std::size_t l = 0; l < model.layers.size(); ++l) {
    layers.push_back({.layer = static_cast<std::int32_t>(l) + 1});
  }
  std::vector<const SubgraphSize*> size_of(index_of(plan.k), nullptr);
  for (const PlanSubgraph& subgraph : plan.subgraphs) {
    size_of.at(index_of(subgraph.size.id)) = &subgraph.size;
  }
  for (const PlanAssignment& assignment : plan.assignments) {
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
