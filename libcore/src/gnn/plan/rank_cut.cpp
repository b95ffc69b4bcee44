// SPDX-License-Identifier: Apache-2.0
// The edges between ranks, pair by pair: collected in one pass over the graph and then put in order
// one pair after another, so that only the edges of one pair are held twice.
#include "gnn/plan/rank_cut.hpp"

#include <algorithm>
#include <utility>

#include "npu/support/ids.hpp"
#include "npu/support/json.hpp"

namespace npu::gnn {

void for_each_cut(
    const CsrGraph& in_edges, const std::vector<std::int32_t>& part_of,
    const std::vector<std::int32_t>& rank_of_part, std::int32_t rank_count,
    const std::function<void(std::int32_t from, std::int32_t to, const CutEdges&)>& action) {
  const std::size_t ranks = index_of(rank_count);
  std::vector<std::vector<std::pair<std::int32_t, std::int32_t>>> edges(ranks * ranks);
  const auto rank_of = [&](std::int32_t node) {
    return index_of(rank_of_part[index_of(part_of[index_of(node)])]);
  };
  for (std::int32_t v = 0; v < in_edges.node_count(); ++v) {
    const std::size_t to = rank_of(v);
    for (const std::int32_t u : in_edges.row(v)) {
      if (const std::size_t from = rank_of(u); from != to) {
        edges[from * ranks + to].emplace_back(u, v);
      }
    }
  }
  for (std::size_t i = 0; i < edges.size(); ++i) {
    if (edges[i].empty()) continue;
    const CutEdges cut = CutEdges::of(std::exchange(edges[i], {}));
    action(static_cast<std::int32_t>(i / ranks), static_cast<std::int32_t>(i % ranks), cut);
  }
}

namespace {

bool reads_edges(const StageInfo& stage) {
  const Json& inputs = stage.ir.at("graph_inputs");
  return std::any_of(inputs.begin(), inputs.end(),
                     [](const Json& input) { return input.at("name") == kEdgeInput; });
}

}  // namespace

RowWidths row_widths(const StagedModel& model) {
  RowWidths widths;
  for (const LayerInfo& layer : model.layers) {
    widths.features.push_back(layer.input_features);
    widths.reads_edges.push_back(
        std::any_of(layer.stages.begin(), layer.stages.end(), reads_edges) ? 1 : 0);
  }
  widths.features.push_back(model.layers.back().output_features);
  return widths;
}

}  // namespace npu::gnn
