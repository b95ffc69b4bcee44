// SPDX-License-Identifier: Apache-2.0
// The edges between ranks, pair by pair: collected in one pass over the graph and then put in order
// one pair after another, so that only the edges of one pair are held twice.
#include "gnn/exchange/rank_cut.hpp"

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

void for_each_part_cut(const CsrGraph& in_edges, const std::vector<std::int32_t>& part_of,
                       std::int32_t part_count,
                       const std::function<void(std::int32_t part, const CutEdges&)>& action) {
  std::vector<std::vector<std::int32_t>> members(index_of(part_count));
  for (std::int32_t v = 0; v < in_edges.node_count(); ++v) {
    members[index_of(part_of[index_of(v)])].push_back(v);
  }
  for (std::int32_t part = 0; part < part_count; ++part) {
    std::vector<std::pair<std::int32_t, std::int32_t>> edges;
    for (const std::int32_t v : members[index_of(part)]) {
      for (const std::int32_t u : in_edges.row(v)) {
        if (part_of[index_of(u)] != part) edges.emplace_back(u, v);
      }
    }
    if (!edges.empty()) action(part, CutEdges::of(std::move(edges)));
  }
}

std::vector<CrossingRow> fewest_rows(const CutEdges& cut) {
  const LeastExchange least = least_exchange(cut, 1, 1);
  std::vector<CrossingRow> rows;
  for (const LeastExchange::Amount& entry : least.amounts) {
    const auto& [source, target] = cut.edges[entry.edge];
    rows.push_back({cut.sources[index_of(source)], cut.targets[index_of(target)],
                    least.features[index_of(source)] == 0});
  }
  return rows;
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
