// SPDX-License-Identifier: Apache-2.0
// Reads one process's share of a graph and makes it undirected together with the other processes.
//
// Rows of the binary form are in-edges, so a process sees the edges that enter its nodes, and has
// to be told of those that leave them: for every edge from a node of another process that process
// gets the pair of source and target. Loops and parallel edges are dropped before, and the rest
// merged by sorting each row.
//
// The processes may see different files under one name. Before they exchange anything they compare
// the numbers of nodes and edges and where each of them begins, on which sizes and owners depend;
// what they get from others is checked against that.
//
// O(share log degree) time. Memory: 8 bytes for each pair that is sent or received, then 12 for
// each entry of the share while rows are merged, and 8 after; of the file, only the own rows are
// touched, and the places where rows of other processes begin.
#include "gnn/graph/graph_share.hpp"

#include <unistd.h>

#include <algorithm>
#include <memory>
#include <numeric>

#include "gnn/graph/binary_graph.hpp"
#include "npu/support/error.hpp"
#include "npu/support/file_io.hpp"
#include "npu/support/ids.hpp"

namespace npu::gnn {
namespace {

struct Pair {
  std::int32_t source = 0;
  std::int32_t target = 0;
};
static_assert(sizeof(Pair) == 8);

class ShareReader {
 public:
  ShareReader(const std::string& path, const Transport& processes)
      : processes_(processes), rank_(processes.rank()) {
    do_together(&processes, [&] {
      rows_ = std::make_unique<GraphRows>(std::make_shared<const MappedFile>(path));
      find_bounds();
    });
    compare(path);
    do_together(&processes, [&] { count_pairs(); });
  }

  GraphShare read(const GraphReadOptions& options) {
    exchange();
    GraphShare share;
    std::vector<std::int64_t> sums;
    do_together(&processes_, [&] {
      check_pairs();
      merge(share);
      share.weights = count_in_edges(share, options);
      sums = {share.offsets.back(),
              std::accumulate(share.weights.begin(), share.weights.end(), std::int64_t{0})};
    });
    processes_.sum(sums);
    share.all_nodes = rows_->node_count();
    share.all_entries = sums[0];
    share.all_in_edges = sums[1];
    const std::int64_t mean = std::max<std::int64_t>(1, sums[1] / share.all_nodes);
    share.all_weights = mean * share.all_nodes + sums[1];
    for (std::int64_t& weight : share.weights) weight += mean;
    return share;
  }

 private:
  std::int32_t size() const { return processes_.size(); }
  std::int32_t begin_of(std::int32_t rank) const { return bounds_[index_of(rank)]; }
  std::int32_t own_begin() const { return begin_of(rank_); }
  std::int32_t own_end() const { return begin_of(rank_ + 1); }

  std::int32_t owner_of(std::int32_t node) const {
    const auto after = std::upper_bound(bounds_.begin(), bounds_.end(), node);
    return static_cast<std::int32_t>(after - bounds_.begin()) - 1;
  }

  // Each rank begins where nodes and edges before it are its share of all. Rows that are not sound
  // are found later, by the rank that owns them.
  void find_bounds() {
    const std::int32_t nodes = rows_->node_count();
    const std::int64_t all = rows_->entry_count() + nodes;
    bounds_.assign(1, 0);
    for (std::int32_t rank = 1; rank < size(); ++rank) {
      const std::int64_t before = all / size() * rank + all % size() * rank / size();
      std::int32_t low = bounds_.back();
      std::int32_t high = nodes;
      while (low < high) {
        const std::int32_t middle = low + (high - low) / 2;
        if (rows_->row_begin(middle) < before - middle) {
          low = middle + 1;
        } else {
          high = middle;
        }
      }
      bounds_.push_back(low);
    }
    bounds_.push_back(nodes);
  }

  // What has to be the same in all processes, as one number from 0 on.
  std::int64_t digest() const {
    std::uint64_t hash = 14695981039346656037U;  // FNV-1a, over numbers
    const auto add = [&](std::int64_t number) {
      hash = (hash ^ static_cast<std::uint64_t>(number)) * 1099511628211U;
    };
    add(rows_->entry_count());
    for (const std::int32_t node : bounds_) add(node);
    return static_cast<std::int64_t>(hash >> 2);
  }

  void compare(const std::string& path) const {
    const std::int64_t own = digest();
    const std::int64_t least = processes_.smallest(own);
    const std::int64_t most = -processes_.smallest(-own);
    do_together(&processes_, [&] {
      if (least == most) return;
      throw Error(ErrorCode::kParse,
                  "the processes read different graphs: this one has " +
                      std::to_string(rows_->node_count()) + " nodes and " +
                      std::to_string(rows_->entry_count()) + " edges",
                  {.file = path});
    });
  }

  // Calls `visit(source, target)` for each edge into an own node, parallel ones once, without
  // loops.
  template <typename Visit>
  void for_each_in_edge(const Visit& visit) const {
    for (std::int32_t v = own_begin(); v < own_end(); ++v) {
      std::int32_t previous = -1;
      for (const std::int32_t u : rows_->row(v)) {
        if (u != v && u != previous) visit(u, v);
        previous = u;
      }
    }
  }

  // counts_: pairs from each rank, in rows, to each other.
  void count_pairs() {
    counts_.assign(index_of(std::int64_t{size()} * size()), 0);
    std::int64_t* const own = counts_.data() + index_of(std::int64_t{rank_} * size());
    for_each_in_edge([&](std::int32_t u, std::int32_t /*v*/) { ++own[owner_of(u)]; });
    own[rank_] = 0;
  }

  void exchange() {
    processes_.sum(counts_);
    if (size() == 1) return;
    TransportPeers from;
    TransportPeers to;
    std::vector<Pair> out;
    do_together(&processes_, [&] {
      std::vector<std::int64_t> next(index_of(size()), 0);
      std::int64_t sent = 0;
      std::int64_t received = 0;
      for (std::int32_t rank = 0; rank < size(); ++rank) {
        next[index_of(rank)] = sent;
        sent += add_peer(to, rank, rank_, rank);
        received += add_peer(from, rank, rank, rank_);
      }
      out.resize(index_of(sent));
      in_.resize(index_of(received));
      for_each_in_edge([&](std::int32_t u, std::int32_t v) {
        const std::int32_t owner = owner_of(u);
        if (owner != rank_) out[index_of(next[index_of(owner)]++)] = {u, v};
      });
    });
    processes_.connect(from, to);
    processes_.start(out.data(), in_.data(), sizeof(Pair));
    processes_.finish();
  }

  // A rank with the pairs that go from one process to another, if there are any; how many.
  std::int64_t add_peer(TransportPeers& peers, std::int32_t peer, std::int32_t from,
                        std::int32_t to) const {
    const std::int64_t count = counts_[index_of(std::int64_t{from} * size() + to)];
    if (count > 0) {
      peers.ranks.push_back(peer);
      peers.rows.push_back(count);
    }
    return count;
  }

  // Edges from own nodes to those of others.
  void check_pairs() const {
    const std::int32_t nodes = rows_->node_count();
    for (const Pair& pair : in_) {
      const bool is_of_other = pair.target < own_begin() || pair.target >= own_end();
      if (pair.source >= own_begin() && pair.source < own_end() && is_of_other &&
          pair.target >= 0 && pair.target < nodes) {
        continue;
      }
      throw Error(ErrorCode::kParse,
                  "another process tells of an edge from node " + std::to_string(pair.source) +
                      " to node " + std::to_string(pair.target) +
                      ", expected one that leaves nodes " + std::to_string(own_begin()) + " to " +
                      std::to_string(own_end() - 1));
    }
  }

  // Calls `visit(node, neighbor)` for both ends of each edge as far as they are own nodes.
  template <typename Visit>
  void for_each_entry(const Visit& visit) const {
    for_each_in_edge([&](std::int32_t u, std::int32_t v) {
      visit(v - own_begin(), u);
      if (u >= own_begin() && u < own_end()) visit(u - own_begin(), v);
    });
    for (const Pair& pair : in_) visit(pair.source - own_begin(), pair.target);
  }

  void merge(GraphShare& share) {
    share.first = own_begin();
    const std::size_t nodes = index_of(own_end() - own_begin());
    std::vector<std::int64_t> begin(nodes + 1, 0);
    for_each_entry([&](std::int32_t row, std::int32_t) { ++begin[index_of(row) + 1]; });
    std::partial_sum(begin.begin(), begin.end(), begin.begin());
    std::vector<std::int32_t> entries(index_of(begin.back()));
    std::vector<std::int64_t> next(begin.begin(), begin.end() - 1);
    for_each_entry([&](std::int32_t row, std::int32_t neighbor) {
      entries[index_of(next[index_of(row)]++)] = neighbor;
    });
    in_ = {};
    // Where a row begins and ends after what occurs twice is gone.
    std::int64_t kept = 0;
    share.offsets.reserve(nodes + 1);
    for (std::size_t row = 0; row < nodes; ++row) {
      const auto first = entries.begin() + begin[row];
      const auto last = entries.begin() + begin[row + 1];
      std::sort(first, last);
      kept = std::copy(first, std::unique(first, last), entries.begin() + kept) - entries.begin();
      share.offsets.push_back(kept);
    }
    share.neighbors.assign(entries.begin(), entries.begin() + kept);
  }

  // Of each own node: those of the file, and those that the options add.
  std::vector<std::int64_t> count_in_edges(const GraphShare& share,
                                           const GraphReadOptions& options) const {
    std::vector<std::int64_t> counts(index_of(share.node_count()), 0);
    for (std::int32_t row = 0; row < share.node_count(); ++row) {
      const std::int32_t node = own_begin() + row;
      counts[index_of(row)] = rows_->degree(node);
      if (options.one_loop) {
        const auto sources = rows_->row(node);
        counts[index_of(row)] += 1 - std::count(sources.begin(), sources.end(), node);
      }
      if (options.undirected) {
        counts[index_of(row)] += share.offsets[index_of(row) + 1] - share.offsets[index_of(row)];
      }
    }
    if (options.undirected) {
      for_each_in_edge([&](std::int32_t, std::int32_t v) { --counts[index_of(v - own_begin())]; });
    }
    return counts;
  }

  const Transport& processes_;
  std::int32_t rank_;
  std::unique_ptr<GraphRows> rows_;
  std::vector<std::int32_t> bounds_;  // the first node of each rank, and the number of nodes
  std::vector<std::int64_t> counts_;
  std::vector<Pair> in_;
};

}  // namespace

npu_graph_share GraphShare::view() const noexcept {
  return {node_count(), offsets.data(), neighbors.data(), weights.data(),
          all_nodes,    all_entries,    all_weights};
}

bool has_shares(const std::string& path) {
  const bool is_there = path == "-" || ::access(path.c_str(), F_OK) == 0;
  if (is_there && !is_regular_file(path)) return false;
  const MappedFile file(path);
  return is_binary_graph({reinterpret_cast<const char*>(file.data()), file.size()});
}

GraphShare read_graph_share(const std::string& path, const GraphReadOptions& options,
                            const Transport& processes) {
  return ShareReader(path, processes).read(options);
}

}  // namespace npu::gnn
