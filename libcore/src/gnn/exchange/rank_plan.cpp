// SPDX-License-Identifier: Apache-2.0
// Spreads the parts of a plan over ranks and finds the least that they have to tell each other.
//
// Every rank gets the parts below one node of the tree over all parts (part_tree.cpp). Between two
// ranks the cut edges are covered at the least cost (least_exchange.cpp); without sums every source
// of a cut edge crosses. All rows of a layer are equally long, whether features or sums, so one
// cover serves every layer. O(edges log edges), and one flow for each pair of ranks.
#include "gnn/exchange/rank_plan.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "gnn/exchange/least_exchange.hpp"
#include "gnn/exchange/part_tree.hpp"
#include "gnn/exchange/rank_cut.hpp"
#include "gnn/graph/halo.hpp"
#include "npu/support/error.hpp"
#include "npu/support/ids.hpp"
#include "support/checked.hpp"

namespace npu::gnn {
namespace {

// The edges between all pairs of parts are held in a table.
constexpr std::int32_t kMostParts = 1024;
constexpr std::int64_t kFloatBytes = 4;

RankPair pair_of(const CutEdges& cut, std::int32_t from, std::int32_t to, bool sums) {
  RankPair pair{.from = from,
                .to = to,
                .edges = static_cast<std::int64_t>(cut.edges.size()),
                .sources = static_cast<std::int64_t>(cut.sources.size()),
                .targets = static_cast<std::int64_t>(cut.targets.size())};
  pair.rows = pair.sources;
  if (!sums) return pair;
  pair.cover = fewest_rows(cut);
  pair.rows = static_cast<std::int64_t>(pair.cover.size());
  return pair;
}

void count_rank(const CsrGraph& in_edges, const std::vector<std::int32_t>& part_of,
                const std::vector<std::int32_t>& rank_of_part, std::vector<PlannedRank>& ranks) {
  for (std::int32_t v = 0; v < in_edges.node_count(); ++v) {
    PlannedRank& rank = ranks[index_of(rank_of_part[index_of(part_of[index_of(v)])])];
    ++rank.nodes;
    rank.edges += in_edges.degree(v);
  }
}

}  // namespace

std::int64_t RankPlan::rows() const noexcept {
  return std::accumulate(pairs.begin(), pairs.end(), std::int64_t{0},
                         [](std::int64_t sum, const RankPair& pair) { return sum + pair.rows; });
}

std::int64_t RankPlan::halo() const noexcept {
  return std::accumulate(pairs.begin(), pairs.end(), std::int64_t{0},
                         [](std::int64_t sum, const RankPair& pair) { return sum + pair.sources; });
}

std::int64_t RankPlan::bytes() const noexcept {
  const auto width = std::accumulate(row_bytes.begin(), row_bytes.end(), std::int64_t{0});
  return checked_multiply(rows(), width).value_or(std::numeric_limits<std::int64_t>::max());
}

std::vector<std::int32_t> RankPlan::part_order() const {
  std::vector<std::int32_t> order;
  for (const PlannedRank& rank : ranks) {
    order.insert(order.end(), rank.parts.begin(), rank.parts.end());
  }
  return order;
}

std::map<std::int64_t, std::size_t> RankPlan::ranks_of_parts() const {
  std::map<std::int64_t, std::size_t> rank_of;
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    for (const std::int32_t part : ranks[r].parts) rank_of[part] = r;
  }
  return rank_of;
}

double RankPlan::makespan_ms() const noexcept {
  double sum = 0;
  for (const double ms : exchange_ms) sum += ms;
  for (std::size_t l = 0; l < row_bytes.size(); ++l) {
    double longest = 0;
    for (const PlannedRank& rank : ranks) {
      if (l < rank.compute_ms.size()) longest = std::max(longest, rank.compute_ms[l]);
    }
    sum += longest;
  }
  return std::round(sum * 1e6) / 1e6;
}

std::vector<SumCount> count_sums(const CsrGraph& in_edges, const std::vector<std::int32_t>& part_of,
                                 const PartTree& tree,
                                 const std::vector<std::int32_t>& rank_of_part,
                                 std::size_t rank_count) {
  std::vector<SumCount> counts(rank_count);
  for (std::int32_t v = 0; v < in_edges.node_count(); ++v) {
    const std::int32_t part = part_of[index_of(v)];
    SumCount& count = counts[index_of(rank_of_part[index_of(part)])];
    std::uint64_t depths = 0;
    for (const std::int32_t u : in_edges.row(v)) {
      const std::int32_t other = part_of[index_of(u)];
      if (other == part) continue;
      ++count.edges;
      depths |= std::uint64_t{1} << tree.common_depth(tree.place(part), tree.place(other));
    }
    count.rows += std::popcount(depths);
  }
  return counts;
}

std::vector<double> predicted_exchange_ms(const RankPlan& plan) {
  std::vector<double> times;
  for (const std::int64_t row_bytes : plan.row_bytes) {
    if (row_bytes == 0) {
      times.push_back(0);
      continue;
    }
    std::vector<double> sending_ms(plan.ranks.size(), 0);
    std::vector<double> receiving_ms(plan.ranks.size(), 0);
    for (const RankPair& pair : plan.pairs) {
      const RankLink& link = pair.link ? *pair.link : *plan.link;
      const double bytes = static_cast<double>(pair.rows) * static_cast<double>(row_bytes);
      const double ms =
          link.latency_us / 1e3 + bytes / static_cast<double>(link.bytes_per_second) * 1e3;
      sending_ms[index_of(pair.from)] += ms;
      receiving_ms[index_of(pair.to)] += ms;
    }
    double longest = 0;
    for (std::size_t r = 0; r < plan.ranks.size(); ++r) {
      longest = std::max({longest, sending_ms[r], receiving_ms[r]});
    }
    times.push_back(std::round(longest * 1e6) / 1e6);
  }
  return times;
}

std::vector<PartRows> part_rows(const CsrGraph& in_edges, const std::vector<std::int32_t>& part_of,
                                const PartTree& tree, bool sums) {
  const auto count = static_cast<std::int32_t>(tree.root().size());
  std::vector<std::int32_t> identity(index_of(count));
  std::iota(identity.begin(), identity.end(), 0);
  std::vector<SumCount> others;
  if (sums) others = count_sums(in_edges, part_of, tree, identity, index_of(count));
  std::vector<PartRows> rows;
  for (const SubgraphSize& size : subgraph_sizes(in_edges, part_of, count)) {
    // A row of zeros stands for what is in a sum already.
    rows.push_back({size.owned(), sums ? others[rows.size()].rows + 1 : size.halo});
  }
  return rows;
}

namespace {

// Buffers for rows that are read, of some megabytes, come on top.
std::int64_t streamed_floats(const PlannedRank& rank, const std::vector<PartRows>& parts,
                             std::int64_t in, std::int64_t out) {
  std::int64_t most = 0;
  for (const std::int32_t part : rank.parts) {
    const auto& [owned, others] = parts[index_of(part)];
    // Sums are added up beside the rows of the part.
    most = std::max(most, (owned + others) * (in + out) + others * in);
  }
  return most + (rank.rows_in + rank.rows_out) * in;
}

}  // namespace

namespace {

// Offsets of rows, for each edge its source in the part and among the rows of the rank; for each
// row of a part its number in the rank, and what else is known of rows; how sums add up.
std::int64_t graph_bytes(const RankPlan& plan, std::size_t r, const SumCount& sums,
                         const std::vector<PartRows>& parts) {
  constexpr std::int64_t kEdgeBytes = 8;
  constexpr std::int64_t kRowBytes = 16;
  constexpr std::int64_t kSumBytes = 16;
  constexpr std::int64_t kTermBytes = 8;
  const PlannedRank& rank = plan.ranks[r];
  std::int64_t bytes = 8 * (rank.nodes + 1) + kEdgeBytes * rank.edges;
  for (const std::int32_t part : rank.parts) {
    const auto& [owned, others] = parts[index_of(part)];
    bytes += kRowBytes * (owned + others);
  }
  if (!plan.sums) return bytes;
  bytes += kSumBytes * (sums.rows + rank.rows_out) + kTermBytes * sums.edges;
  for (const RankPair& pair : plan.pairs) {
    if (index_of(pair.from) == r) bytes += kTermBytes * pair.edges;
  }
  return bytes;
}

}  // namespace

void predict_memory(const RowWidths& widths, const std::vector<SumCount>& sums,
                    const std::vector<PartRows>& parts, RankPlan& plan) {
  for (std::size_t r = 0; r < plan.ranks.size(); ++r) {
    PlannedRank& rank = plan.ranks[r];
    // Sums take the place of halo rows; one more row of zeros stands for what is in a sum already.
    const std::int64_t rows = rank.nodes + (plan.sums ? sums[r].rows + 1 : rank.rows_in);
    std::int64_t most = 0;
    std::int64_t streamed = 0;
    for (std::size_t l = 0; l + 1 < widths.features.size(); ++l) {
      const std::int64_t between = rows * (widths.features[l] + widths.features[l + 1]);
      const std::int64_t crossing = (rank.rows_in + rank.rows_out) * widths.row_bytes(l);
      most = std::max(most, kFloatBytes * between + crossing);
      streamed = std::max(streamed, kFloatBytes * streamed_floats(rank, parts, widths.features[l],
                                                                  widths.features[l + 1]));
    }
    const std::int64_t graph = graph_bytes(plan, r, sums[r], parts);
    rank.memory_bytes = graph + most;
    rank.streamed_bytes = graph + streamed;
  }
}

namespace {

void check_limit(const RankPlan& plan) {
  for (std::size_t r = 0; r < plan.ranks.size(); ++r) {
    if (!plan.streams(r) || plan.ranks[r].streamed_bytes <= plan.memory_limit) continue;
    throw Error(ErrorCode::kInfeasible,
                "rank " + std::to_string(r) + " of " + std::to_string(plan.ranks.size()) +
                    " has to hold " + std::to_string(plan.ranks[r].streamed_bytes) +
                    " bytes even if it streams its rows, --rank-memory allows " +
                    std::to_string(plan.memory_limit) + ": give more --ranks or --parts");
  }
}

}  // namespace

RankPlan plan_ranks(const CsrGraph& in_edges, const std::vector<std::int32_t>& part_of,
                    std::int32_t part_count, const RowWidths& widths, const RankRequest& request) {
  if (request.rank_count > part_count) {
    throw Error(ErrorCode::kUsage, std::to_string(request.rank_count) + " ranks for " +
                                       std::to_string(part_count) + " parts; use --ranks " +
                                       std::to_string(part_count) + " or fewer");
  }
  if (request.links && request.links->rank_count < request.rank_count) {
    throw Error(ErrorCode::kInvalidGraph,
                "the links are of " + std::to_string(request.links->rank_count) +
                    " ranks, fewer than " + std::to_string(request.rank_count) +
                    ": measure as many by mpirun -n " + std::to_string(request.rank_count) +
                    " npu-profile --links FILE");
  }
  if (part_count > kMostParts) {
    throw Error(ErrorCode::kUnsupported, std::to_string(part_count) + " parts, at most " +
                                             std::to_string(kMostParts) +
                                             " can be spread over ranks");
  }
  std::vector<std::int32_t> order(index_of(part_count));
  std::iota(order.begin(), order.end(), 0);
  if (!request.in_order) order = order_parts(in_edges, part_of, part_count);
  const PartTree tree(order);
  std::vector<std::int64_t> weights(order.size(), 0);
  for (std::int32_t v = 0; v < in_edges.node_count(); ++v) {
    weights[index_of(tree.place(part_of[index_of(v)]))] += 1 + in_edges.degree(v);
  }
  RankPlan plan;
  plan.sums = request.sums;
  plan.features_because = request.features_because;
  for (std::size_t l = 0; l + 1 < widths.features.size(); ++l) {
    plan.row_bytes.push_back(widths.row_bytes(l));
  }
  std::vector<std::int32_t> rank_of_part(order.size(), 0);
  for (const PartTree::Node& node : split_tree(tree, weights, request.rank_count)) {
    const auto rank = static_cast<std::int32_t>(plan.ranks.size());
    plan.ranks.emplace_back().parts.assign(order.begin() + node.begin, order.begin() + node.end);
    for (const std::int32_t part : plan.ranks.back().parts) rank_of_part[index_of(part)] = rank;
  }
  count_rank(in_edges, part_of, rank_of_part, plan.ranks);
  for_each_cut(in_edges, part_of, rank_of_part, request.rank_count,
               [&](std::int32_t from, std::int32_t to, const CutEdges& cut) {
                 plan.pairs.push_back(pair_of(cut, from, to, plan.sums));
                 plan.ranks[index_of(from)].rows_out += plan.pairs.back().rows;
                 plan.ranks[index_of(to)].rows_in += plan.pairs.back().rows;
               });
  predict_memory(widths, count_sums(in_edges, part_of, tree, rank_of_part, plan.ranks.size()),
                 part_rows(in_edges, part_of, tree, plan.sums), plan);
  plan.memory_limit = request.memory_limit;
  check_limit(plan);
  plan.link = request.link;
  if (request.links) {
    for (RankPair& pair : plan.pairs) pair.link = request.links->at(pair.from, pair.to);
  }
  if (plan.knows_links()) plan.exchange_ms = predicted_exchange_ms(plan);
  return plan;
}

}  // namespace npu::gnn
