// SPDX-License-Identifier: Apache-2.0
// Greedy refinement of parts under several balance constraints, as METIS has it (Karypis and Kumar,
// SC 1998), in two steps: which nodes would gain by a move is found for all of them on any number
// of threads; then they move in the order of their gains, each where it is best off by then. So the
// result depends on the graph alone.
//
// A round looks at the nodes beside those that the last one moved, in the first one at all:
// O(nodes + entries) there, and O(entries of the nodes it looks at) in each further one.
#include "csr/multilevel/refine_parts.hpp"

#include <algorithm>

#include "csr/graph_weights.hpp"
#include "csr/multilevel/pieces.hpp"
#include "csr/multilevel/weight_table.hpp"

namespace npu {
namespace {

constexpr int kMostRounds = 10;

struct Move {
  std::int32_t node = 0;
  std::int32_t to = -1;  // below 0: it stays
  std::int64_t gain = 0;
};

class PartRefiner {
 public:
  PartRefiner(const CsrGraph& graph, const PartLimits& limits, std::vector<std::int32_t>& part_of,
              std::size_t threads)
      : graph_(graph),
        limits_(limits),
        part_of_(part_of),
        threads_(threads),
        weights_(index_of(std::int64_t{limits.part_count} * graph.node_weight_count), 0),
        members_(index_of(limits.part_count), 0),
        is_listed_(part_of.size(), 0) {
    for (std::int32_t v = 0; v < graph.node_count(); ++v) add(v, part_of[index_of(v)], 1);
  }

  void run() {
    std::vector<std::int32_t> nodes(part_of_.size());
    for (std::size_t v = 0; v < nodes.size(); ++v) nodes[v] = static_cast<std::int32_t>(v);
    relieve_parts(nodes);
    for (int round = 0; round < kMostRounds && !nodes.empty(); ++round) {
      std::vector<Move> moves = wanted_moves(nodes, false);
      sort_by_gain(moves);
      nodes.clear();
      for (const Move& move : moves) {
        const Move now = best_move(move.node, false, table_);
        if (now.to < 0) continue;
        apply(now);
        list_neighbors(now.node, nodes);
      }
      for (const std::int32_t v : nodes) is_listed_[index_of(v)] = 0;
      std::sort(nodes.begin(), nodes.end());
    }
  }

 private:
  std::int64_t& weight_of(std::int32_t part, std::int32_t which) {
    return weights_[index_of(std::int64_t{part} * graph_.node_weight_count + which)];
  }
  std::int64_t weight_of(std::int32_t part, std::int32_t which) const {
    return weights_[index_of(std::int64_t{part} * graph_.node_weight_count + which)];
  }

  void add(std::int32_t node, std::int32_t part, int sign) {
    members_[index_of(part)] += sign;
    for (std::int32_t c = 0; c < graph_.node_weight_count; ++c) {
      weight_of(part, c) += sign * node_weight(graph_, node, c);
    }
  }

  void apply(const Move& move) {
    add(move.node, part_of_[index_of(move.node)], -1);
    add(move.node, move.to, 1);
    part_of_[index_of(move.node)] = move.to;
  }

  bool has_room(std::int32_t part, std::int32_t node) const {
    for (std::int32_t c = 0; c < graph_.node_weight_count; ++c) {
      if (weight_of(part, c) + node_weight(graph_, node, c) > limits_.most[index_of(c)]) {
        return false;
      }
    }
    return true;
  }

  // Whether the node's part is too heavy, and less so without it.
  bool relieves(std::int32_t node) const {
    const std::int32_t part = part_of_[index_of(node)];
    for (std::int32_t c = 0; c < graph_.node_weight_count; ++c) {
      if (weight_of(part, c) > limits_.most[index_of(c)] && node_weight(graph_, node, c) > 0) {
        return true;
      }
    }
    return false;
  }

  // The largest share of its limits that a part takes, with a node more.
  double load(std::int32_t part, std::int32_t node, bool with) const {
    double largest = 0;
    for (std::int32_t c = 0; c < graph_.node_weight_count; ++c) {
      const std::int64_t most = std::max<std::int64_t>(limits_.most[index_of(c)], 1);
      const std::int64_t sum = weight_of(part, c) + (with ? node_weight(graph_, node, c) : 0);
      largest = std::max(largest, static_cast<double>(sum) / static_cast<double>(most));
    }
    return largest;
  }

  // Where a node is best off. `leave`: it has to go to another part, at any price.
  Move best_move(std::int32_t node, bool leave, WeightTable& table) const {
    const std::int32_t own = part_of_[index_of(node)];
    Move best{node, -1, 0};
    if (members_[index_of(own)] == 1) return best;
    table.reset(std::min<std::int64_t>(graph_.degree(node), limits_.part_count));
    std::int64_t inside = 0;
    for (std::int64_t e = graph_.offsets[index_of(node)]; e < graph_.offsets[index_of(node) + 1];
         ++e) {
      const std::int32_t part = part_of_[index_of(graph_.neighbors[index_of(e)])];
      if (part == own) {
        inside += edge_weight(graph_, e);
      } else {
        table.add(part, edge_weight(graph_, e));
      }
    }
    double best_load = leave ? 0 : load(own, node, false);
    for (std::size_t i = 0; i < table.size(); ++i) {
      const auto& [part, sum] = table.entry(i);
      const std::int64_t gain = sum - inside;
      const bool is_first = leave && best.to < 0;
      if ((gain < best.gain && !is_first) || !has_room(part, node)) continue;
      const double part_load = load(part, node, true);
      if (gain == best.gain && !is_first && part_load >= best_load) continue;
      best = {node, part, gain};
      best_load = part_load;
    }
    return best;
  }

  // The moves that nodes would make if no other did.
  std::vector<Move> wanted_moves(const std::vector<std::int32_t>& nodes, bool leave) const {
    std::vector<std::vector<Move>> pieces(piece_count(nodes.size()));
    in_pieces(nodes.size(), threads_, [&](std::size_t begin, std::size_t end) {
      WeightTable table;
      std::vector<Move>& moves = pieces[begin / kPieceSize];
      for (std::size_t i = begin; i < end; ++i) {
        if (const Move move = best_move(nodes[i], leave, table); move.to >= 0) {
          moves.push_back(move);
        }
      }
    });
    std::vector<Move> all;
    for (const auto& moves : pieces) all.insert(all.end(), moves.begin(), moves.end());
    return all;
  }

  static void sort_by_gain(std::vector<Move>& moves) {
    std::sort(moves.begin(), moves.end(), [](const Move& a, const Move& b) {
      return a.gain != b.gain ? a.gain > b.gain : a.node < b.node;
    });
  }

  // Makes parts that are too heavy lighter, with the moves that cost least.
  void relieve_parts(const std::vector<std::int32_t>& nodes) {
    std::vector<std::int32_t> inside;
    for (const std::int32_t v : nodes) {
      if (relieves(v)) inside.push_back(v);
    }
    std::vector<Move> moves = wanted_moves(inside, true);
    sort_by_gain(moves);
    for (const Move& move : moves) {
      if (!relieves(move.node)) continue;
      if (const Move now = best_move(move.node, true, table_); now.to >= 0) apply(now);
    }
  }

  void list_neighbors(std::int32_t node, std::vector<std::int32_t>& nodes) {
    const auto list = [&](std::int32_t v) {
      if (is_listed_[index_of(v)] != 0) return;
      is_listed_[index_of(v)] = 1;
      nodes.push_back(v);
    };
    list(node);
    for (const std::int32_t v : graph_.row(node)) list(v);
  }

  const CsrGraph& graph_;
  const PartLimits& limits_;
  std::vector<std::int32_t>& part_of_;
  std::size_t threads_;
  std::vector<std::int64_t> weights_;  // by part and weight
  std::vector<std::int64_t> members_;  // by part
  std::vector<char> is_listed_;        // by node: in the list of the next round
  WeightTable table_;
};

}  // namespace

void refine_parts(const CsrGraph& graph, const PartLimits& limits,
                  std::vector<std::int32_t>& part_of, std::size_t threads) {
  PartRefiner(graph, limits, part_of, threads).run();
}

}  // namespace npu
