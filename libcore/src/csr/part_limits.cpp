// SPDX-License-Identifier: Apache-2.0
// What parts may weigh, and moves that make parts keep to it which were found under other rules:
// by a partitioner that knows one weight of a node, for example.
//
// refine_parts moves nodes to parts that they have edges to. Where that is not enough, a node goes
// to any part with room, and the refinement is done again from there. A part that has too many
// in-edges may be one of few nodes, and all others be full of nodes: then weights are relieved one
// after another, each by nodes that have much of it and little of the others, so that less is out
// of balance after every round. The best round is kept. O(nodes log nodes + entries) for each
// round, of which there are a few.
#include "csr/part_limits.hpp"

#include <algorithm>
#include <utility>

#include "csr/graph_weights.hpp"
#include "npu/support/ids.hpp"

namespace npu {
namespace {

constexpr int kMostBalanceRounds = 12;
// One may make room for what the next one does.
constexpr int kMostIdleRounds = 2;

class PartBalancer {
 public:
  PartBalancer(const CsrGraph& graph, const PartLimits& limits, std::vector<std::int32_t>& part_of)
      : graph_(graph),
        limits_(limits),
        part_of_(part_of),
        weights_(index_of(std::int64_t{limits.part_count} * graph.node_weight_count), 0),
        members_(index_of(limits.part_count), 0),
        edges_to_(index_of(limits.part_count), 0) {
    for (std::int32_t v = 0; v < graph.node_count(); ++v) add(v, part_of[index_of(v)], 1);
    const double nodes = std::max(graph.node_count(), 1);
    for (const std::int64_t sum : weight_sums(graph)) {
      means_.push_back(static_cast<double>(sum) / nodes);
    }
    mean_degree_ = static_cast<double>(graph.entry_count()) / nodes;
  }

  // The largest share of its limits that a part takes: above 1, something is too heavy.
  double worst() const {
    double largest = 0;
    for (std::int32_t part = 0; part < limits_.part_count; ++part) {
      for (std::int32_t c = 0; c < graph_.node_weight_count; ++c) {
        largest = std::max(largest, share(weight_of(part, c), c));
      }
    }
    return largest;
  }

  // Relieves every part in one weight after another. What gets too heavy by it in another weight is
  // relieved there, by nodes that have little of the first.
  void run() {
    for (std::int32_t c = graph_.node_weight_count - 1; c >= 0; --c) {
      for (const std::int32_t v : by_price(c)) {
        if (!is_over(part_of_[index_of(v)], c) || members_[index_of(part_of_[index_of(v)])] == 1) {
          continue;
        }
        const std::int32_t to = best_part(v, c);
        if (to < 0) continue;
        add(v, part_of_[index_of(v)], -1);
        add(v, to, 1);
        part_of_[index_of(v)] = to;
      }
    }
  }

 private:
  std::int64_t weight_of(std::int32_t part, std::int32_t which) const {
    return weights_[index_of(std::int64_t{part} * graph_.node_weight_count + which)];
  }
  bool is_over(std::int32_t part, std::int32_t which) const {
    return weight_of(part, which) > limits_.most[index_of(which)];
  }

  double share(std::int64_t weight, std::int32_t which) const {
    return static_cast<double>(weight) /
           static_cast<double>(std::max<std::int64_t>(limits_.most[index_of(which)], 1));
  }

  void add(std::int32_t node, std::int32_t part, int sign) {
    members_[index_of(part)] += sign;
    for (std::int32_t c = 0; c < graph_.node_weight_count; ++c) {
      weights_[index_of(std::int64_t{part} * graph_.node_weight_count + c)] +=
          sign * node_weight(graph_, node, c);
    }
  }

  // The nodes of parts that are too heavy, those first that lose the fewest edges for their weight.
  // What a node has of other weights counts as so many edges, as a mean node has.
  std::vector<std::int32_t> by_price(std::int32_t which) const {
    struct Offer {
      double price = 0;
      std::int32_t node = 0;
    };
    std::vector<Offer> offers;
    for (std::int32_t v = 0; v < graph_.node_count(); ++v) {
      const std::int32_t own = part_of_[index_of(v)];
      const std::int64_t weight = node_weight(graph_, v, which);
      if (weight == 0 || !is_over(own, which)) continue;
      std::int64_t inside = 0;
      for (std::int64_t e = graph_.offsets[index_of(v)]; e < graph_.offsets[index_of(v) + 1]; ++e) {
        if (part_of_[index_of(graph_.neighbors[index_of(e)])] == own) {
          inside += edge_weight(graph_, e);
        }
      }
      double lost = static_cast<double>(inside);
      for (std::int32_t c = 0; c < graph_.node_weight_count; ++c) {
        if (c == which || means_[index_of(c)] == 0) continue;
        lost += mean_degree_ * static_cast<double>(node_weight(graph_, v, c)) / means_[index_of(c)];
      }
      offers.push_back({lost / static_cast<double>(weight), v});
    }
    std::sort(offers.begin(), offers.end(), [](const Offer& a, const Offer& b) {
      return a.price != b.price ? a.price < b.price : a.node < b.node;
    });
    std::vector<std::int32_t> nodes;
    nodes.reserve(offers.size());
    for (const Offer& offer : offers) nodes.push_back(offer.node);
    return nodes;
  }

  // The largest share of its limits that a part would take with a node more.
  double load_with(std::int32_t part, std::int32_t node) const {
    double largest = 0;
    for (std::int32_t c = 0; c < graph_.node_weight_count; ++c) {
      // A weight that the node does not have keeps no part from taking it.
      const std::int64_t weight = node_weight(graph_, node, c);
      if (weight > 0) largest = std::max(largest, share(weight_of(part, c) + weight, c));
    }
    return largest;
  }

  // A part with room for the node, or at least with room in one weight; below 0 if there is none.
  std::int32_t best_part(std::int32_t node, std::int32_t which) {
    const std::int64_t begin = graph_.offsets[index_of(node)];
    const std::int64_t end = graph_.offsets[index_of(node) + 1];
    const auto part_at = [&](std::int64_t e) {
      return part_of_[index_of(graph_.neighbors[index_of(e)])];
    };
    for (std::int64_t e = begin; e < end; ++e) {
      edges_to_[index_of(part_at(e))] += edge_weight(graph_, e);
    }
    std::int32_t best = -1;
    double best_load = 0;
    for (std::int32_t part = 0; part < limits_.part_count; ++part) {
      if (part == part_of_[index_of(node)]) continue;
      if (share(weight_of(part, which) + node_weight(graph_, node, which), which) > 1) continue;
      const double load = load_with(part, node);
      if (best >= 0 && !is_better(part, load, best, best_load)) continue;
      best = part;
      best_load = load;
    }
    for (std::int64_t e = begin; e < end; ++e) edges_to_[index_of(part_at(e))] = 0;
    return best;
  }

  // With room in all weights before without, then by edges, then by load.
  bool is_better(std::int32_t part, double load, std::int32_t than, double than_load) const {
    if ((load > 1) != (than_load > 1)) return than_load > 1;
    const std::int64_t edges = edges_to_[index_of(part)];
    const std::int64_t than_edges = edges_to_[index_of(than)];
    if (load <= 1 && edges != than_edges) return edges > than_edges;
    return load < than_load;
  }

  const CsrGraph& graph_;
  const PartLimits& limits_;
  std::vector<std::int32_t>& part_of_;
  std::vector<std::int64_t> weights_;   // by part and weight
  std::vector<std::int64_t> members_;   // by part
  std::vector<std::int64_t> edges_to_;  // by part: weight of the edges of the node at hand
  std::vector<double> means_;           // of a node, by weight
  double mean_degree_ = 0;
};

}  // namespace

PartLimits part_limits(const CsrGraph& graph, const MetisOptions& options) {
  PartLimits limits{options.part_count, weight_sums(graph)};
  for (std::size_t c = 0; c < limits.most.size(); ++c) {
    const double goal = options.max_imbalance[std::min(c, options.max_imbalance.size() - 1)] *
                        static_cast<double>(limits.most[c]) /
                        static_cast<double>(options.part_count);
    const std::int64_t sum = limits.most[c];
    // Below the mean, rounded up, nothing has room.
    limits.most[c] = std::max(sum / options.part_count + (sum % options.part_count > 0 ? 1 : 0),
                              goal < 9e18 ? static_cast<std::int64_t>(goal) : INT64_MAX);
  }
  return limits;
}

int balance_parts(const CsrGraph& graph, const PartLimits& limits,
                  std::vector<std::int32_t>& part_of, std::size_t threads) {
  std::vector<std::int32_t> best;
  double best_worst = 0;
  int idle = 0;
  int round = 0;
  for (;; ++round) {
    refine_parts(graph, limits, part_of, threads);
    PartBalancer balancer(graph, limits, part_of);
    const double worst = balancer.worst();
    if (worst <= 1) return round;
    if (best.empty() || worst < best_worst) {
      best = part_of;
      best_worst = worst;
      idle = 0;
    } else {
      ++idle;
    }
    if (round == kMostBalanceRounds || idle == kMostIdleRounds) break;
    balancer.run();
  }
  part_of = std::move(best);
  return round;
}

}  // namespace npu
