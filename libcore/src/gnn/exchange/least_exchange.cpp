// SPDX-License-Identifier: Apache-2.0
// The least that has to cross from one rank to another.
//
// The edges between two ranks form a bipartite graph. For every edge either the features of its
// source cross or the sum, over all edges from that rank, for its target: a vertex cover. The
// cheapest one is a minimum cut between a source that every sending node hangs from and a sink that
// every receiving node leads to, with the edges between them uncuttable, and the flow of the same
// value is the proof (König 1931 where all rows cost the same). The cost is that of the flow.
#include "gnn/exchange/least_exchange.hpp"

#include <algorithm>

#include "flow/min_cut.hpp"
#include "npu/support/error.hpp"
#include "npu/support/ids.hpp"

namespace npu::gnn {
namespace {

// The flow numbers both directions of all arcs with 32 bits.
constexpr std::size_t kMostArcs = std::size_t{1} << 30;

std::vector<std::int32_t> distinct(std::vector<std::int32_t> nodes) {
  std::sort(nodes.begin(), nodes.end());
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  nodes.shrink_to_fit();
  return nodes;
}

std::int32_t place_in(const std::vector<std::int32_t>& nodes, std::int32_t node) {
  return static_cast<std::int32_t>(std::lower_bound(nodes.begin(), nodes.end(), node) -
                                   nodes.begin());
}

}  // namespace

CutEdges CutEdges::of(std::vector<std::pair<std::int32_t, std::int32_t>> node_pairs) {
  std::sort(node_pairs.begin(), node_pairs.end());
  node_pairs.erase(std::unique(node_pairs.begin(), node_pairs.end()), node_pairs.end());
  CutEdges cut;
  for (const auto& [source, target] : node_pairs) {
    if (cut.sources.empty() || cut.sources.back() != source) cut.sources.push_back(source);
    cut.targets.push_back(target);
  }
  cut.targets = distinct(std::move(cut.targets));
  std::int32_t s = 0;
  for (auto& [source, target] : node_pairs) {
    while (cut.sources[index_of(s)] != source) ++s;
    source = s;
    target = place_in(cut.targets, target);
  }
  cut.edges = std::move(node_pairs);
  return cut;
}

LeastExchange least_exchange(const CutEdges& cut, std::int64_t feature_cost,
                             std::int64_t sum_cost) {
  const std::size_t sources = cut.sources.size();
  const std::size_t targets = cut.targets.size();
  if (sources + targets + cut.edges.size() > kMostArcs / 2) {
    throw Error(ErrorCode::kUnsupported,
                std::to_string(cut.edges.size()) + " edges between two ranks, at most " +
                    std::to_string(kMostArcs / 2) + " can be covered: give --exchange features");
  }
  CutNetwork network(sources + targets);
  network.reserve(sources + targets, cut.edges.size());
  const auto vertex = [](std::size_t index) { return static_cast<CutNetwork::Vertex>(index); };
  for (std::size_t s = 0; s < sources; ++s) network.add_source_capacity(vertex(s), feature_cost);
  for (std::size_t t = 0; t < targets; ++t) {
    network.add_sink_capacity(vertex(sources + t), sum_cost);
  }
  for (const auto& [source, target] : cut.edges) {
    network.add_arc(source, vertex(sources + index_of(target)), kInfiniteCapacity);
  }
  // The cut nearest to the source: as many features as a cheapest cover can have.
  const MinCut found = solve_min_cut(network);
  LeastExchange exchange;
  exchange.cost = found.value;
  exchange.features.resize(sources);
  exchange.sums.resize(targets);
  for (std::size_t s = 0; s < sources; ++s) exchange.features[s] = found.source_side[s] == 0;
  for (std::size_t t = 0; t < targets; ++t) exchange.sums[t] = found.source_side[sources + t] != 0;
  for (std::size_t e = 0; e < cut.edges.size(); ++e) {
    if (found.arc_flow[e] > 0) exchange.amounts.push_back({e, found.arc_flow[e]});
  }
  return exchange;
}

std::string check_exchange(const CutEdges& cut, std::int64_t feature_cost, std::int64_t sum_cost,
                           const LeastExchange& exchange) {
  if (exchange.features.size() != cut.sources.size() ||
      exchange.sums.size() != cut.targets.size()) {
    return "the exchange is of other edges";
  }
  for (const auto& [source, target] : cut.edges) {
    if (exchange.features[index_of(source)] == 0 && exchange.sums[index_of(target)] == 0) {
      return "nothing crosses for the edge from node " +
             std::to_string(cut.sources[index_of(source)]) + " to node " +
             std::to_string(cut.targets[index_of(target)]);
    }
  }
  std::vector<std::int64_t> left_at_source(cut.sources.size(), feature_cost);
  std::vector<std::int64_t> left_at_target(cut.targets.size(), sum_cost);
  std::int64_t proven = 0;
  for (const LeastExchange::Amount& entry : exchange.amounts) {
    if (entry.edge >= cut.edges.size() || entry.amount < 1) return "an amount is of no edge";
    const auto& [source, target] = cut.edges[entry.edge];
    std::int64_t& at_source = left_at_source[index_of(source)];
    std::int64_t& at_target = left_at_target[index_of(target)];
    if (entry.amount > at_source || entry.amount > at_target) {
      const bool is_source = entry.amount > at_source;
      return "the proof counts node " +
             std::to_string(is_source ? cut.sources[index_of(source)]
                                      : cut.targets[index_of(target)]) +
             " more than once";
    }
    at_source -= entry.amount;
    at_target -= entry.amount;
    proven += entry.amount;
  }
  const std::int64_t cost =
      feature_cost * std::count(exchange.features.begin(), exchange.features.end(), 1) +
      sum_cost * std::count(exchange.sums.begin(), exchange.sums.end(), 1);
  if (cost != exchange.cost || proven != cost) {
    return "the rows cost " + std::to_string(cost) + ", the proof is for " + std::to_string(proven);
  }
  return {};
}

}  // namespace npu::gnn
