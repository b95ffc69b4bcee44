// SPDX-License-Identifier: Apache-2.0
// Minimum cuts by Boost.Graph's maximum flow: the only file that includes it. (The strategy of
// npu-partition that places by cuts is partition/strategies/min_cut.cpp.)
//
// The network is laid out as adjacency arrays in which an arc and its reverse form a pair, so that
// an edge is an index and every property a plain array. Flow that can run from the source over one
// vertex to the sink is saturated first; a vertex then has at most one terminal arc, which halves
// the network. Boykov and Kolmogorov (PAMI 2004) search from both ends, which is nearly linear on
// networks whose terminals are everywhere, as those of placement and layout are: 40,000 ops with
// their helper vertices take about 40 ms. Boost's push-relabel is no faster there, and in
// Boost 1.74 some of its results fail its own check of a flow, so it is not used. Callers and tests
// can verify any result with check_min_cut. O(vertices^2 * arcs * value) in theory.
#include "flow/min_cut.hpp"

#include <boost/graph/boykov_kolmogorov_max_flow.hpp>
#include <boost/iterator/counting_iterator.hpp>
#include <boost/property_map/property_map.hpp>
#include <cassert>
#include <numeric>
#include <span>

#include "npu/support/error.hpp"
#include "npu/support/log.hpp"

namespace npu::flow_detail {

/// Arcs by tail; models the graph concept that Boost.Graph's maximum flows require.
struct ResidualGraph {
  std::vector<std::int32_t> offsets;  // by vertex, and one more
  std::vector<std::int32_t> tail;
  std::vector<std::int32_t> head;
};

}  // namespace npu::flow_detail

template <>
struct boost::graph_traits<npu::flow_detail::ResidualGraph> {
  struct traversal_category : virtual public boost::vertex_list_graph_tag,
                              virtual public boost::edge_list_graph_tag,
                              virtual public boost::incidence_graph_tag {};
  using vertex_descriptor = std::int32_t;
  using edge_descriptor = std::int32_t;
  using directed_category = boost::directed_tag;
  using edge_parallel_category = boost::allow_parallel_edge_tag;
  using vertex_iterator = boost::counting_iterator<std::int32_t>;
  using edge_iterator = boost::counting_iterator<std::int32_t>;
  using out_edge_iterator = boost::counting_iterator<std::int32_t>;
  using vertices_size_type = std::size_t;
  using edges_size_type = std::size_t;
  using degree_size_type = std::size_t;
  static vertex_descriptor null_vertex() { return -1; }
};

namespace npu {
namespace flow_detail {

using Iterator = boost::counting_iterator<std::int32_t>;

inline std::size_t num_vertices(const ResidualGraph& graph) { return graph.offsets.size() - 1; }
inline std::size_t num_edges(const ResidualGraph& graph) { return graph.head.size(); }
inline std::pair<Iterator, Iterator> vertices(const ResidualGraph& graph) {
  return {Iterator(0), Iterator(static_cast<std::int32_t>(num_vertices(graph)))};
}
inline std::pair<Iterator, Iterator> edges(const ResidualGraph& graph) {
  return {Iterator(0), Iterator(static_cast<std::int32_t>(num_edges(graph)))};
}
inline std::pair<Iterator, Iterator> out_edges(std::int32_t vertex, const ResidualGraph& graph) {
  const auto v = static_cast<std::size_t>(vertex);
  return {Iterator(graph.offsets[v]), Iterator(graph.offsets[v + 1])};
}
inline std::size_t out_degree(std::int32_t vertex, const ResidualGraph& graph) {
  const auto v = static_cast<std::size_t>(vertex);
  return static_cast<std::size_t>(graph.offsets[v + 1] - graph.offsets[v]);
}
inline std::int32_t source(std::int32_t edge, const ResidualGraph& graph) {
  return graph.tail[static_cast<std::size_t>(edge)];
}
inline std::int32_t target(std::int32_t edge, const ResidualGraph& graph) {
  return graph.head[static_cast<std::size_t>(edge)];
}

}  // namespace flow_detail

namespace {

using flow_detail::ResidualGraph;

constexpr std::int64_t kLargestSum = std::int64_t{1} << 62;

std::size_t index_of(std::int32_t value) { return static_cast<std::size_t>(value); }

/// Adds up finite capacities.
class Sum {
 public:
  void add(std::int64_t capacity) {
    if (capacity == kInfiniteCapacity) return;
    if (capacity > kLargestSum - value_) {
      throw Error(ErrorCode::kUnsupported, "the capacities of a cut do not fit in 62 bits");
    }
    value_ += capacity;
  }
  std::int64_t value() const noexcept { return value_; }

 private:
  std::int64_t value_ = 0;
};

std::int64_t add_capacity(std::int64_t a, std::int64_t b) {
  assert(a >= 0 && b >= 0);
  if (a == kInfiniteCapacity || b == kInfiniteCapacity) return kInfiniteCapacity;
  Sum sum;
  sum.add(a);
  sum.add(b);
  return sum.value();
}

Sum sum_of_capacities(const CutNetwork& network) {
  Sum sum;
  for (const CutNetwork::Arc& arc : network.arcs()) {
    sum.add(arc.capacity);
    sum.add(arc.reverse_capacity);
  }
  for (std::size_t v = 0; v < network.vertex_count(); ++v) {
    sum.add(network.source_capacity(static_cast<std::int32_t>(v)));
    sum.add(network.sink_capacity(static_cast<std::int32_t>(v)));
  }
  return sum;
}

/// The network between its vertices, a source and a sink, every arc beside its reverse.
class Solver {
 public:
  Solver(const CutNetwork& network, std::int64_t infinite)
      : network_(network), infinite_(infinite), vertices_(network.vertex_count()) {
    source_ = static_cast<std::int32_t>(vertices_);
    sink_ = source_ + 1;
    take_direct_paths();
    lay_out();
  }

  MinCut solve() {
    maximise();
    MinCut cut;
    read_flow(cut);
    find_source_side(cut);
    return cut;
  }

 private:
  // Saturates source -> vertex -> sink.
  void take_direct_paths() {
    direct_.resize(vertices_);
    for (std::size_t v = 0; v < vertices_; ++v) {
      direct_[v] = std::min(source_capacity(v), sink_capacity(v));
    }
  }

  std::int64_t finite(std::int64_t capacity) const {
    return capacity == kInfiniteCapacity ? infinite_ : capacity;
  }
  std::int64_t source_capacity(std::size_t v) const {
    return finite(network_.source_capacity(static_cast<std::int32_t>(v)));
  }
  std::int64_t sink_capacity(std::size_t v) const {
    return finite(network_.sink_capacity(static_cast<std::int32_t>(v)));
  }

  // Counting sort of the arcs by their tails.
  void lay_out() {
    const auto& arcs = network_.arcs();
    graph_.offsets.assign(vertices_ + 3, 0);
    const auto count = [&](std::int32_t from, std::int32_t to) {
      ++graph_.offsets[index_of(from) + 1];
      ++graph_.offsets[index_of(to) + 1];
    };
    for (const CutNetwork::Arc& arc : arcs) count(arc.from, arc.to);
    for (std::size_t v = 0; v < vertices_; ++v) {
      const auto vertex = static_cast<std::int32_t>(v);
      if (source_capacity(v) > direct_[v]) count(source_, vertex);
      if (sink_capacity(v) > direct_[v]) count(vertex, sink_);
    }
    std::partial_sum(graph_.offsets.begin(), graph_.offsets.end(), graph_.offsets.begin());
    const auto edges = index_of(graph_.offsets.back());
    graph_.tail.resize(edges);
    graph_.head.resize(edges);
    reverse_.resize(edges);
    capacity_.resize(edges);
    std::vector<std::int32_t> next(graph_.offsets.begin(), graph_.offsets.end() - 1);
    const auto add = [&](std::int32_t from, std::int32_t to, std::int64_t capacity,
                         std::int64_t back) {
      const std::int32_t forward = next[index_of(from)]++;
      const std::int32_t backward = next[index_of(to)]++;
      set_edge(forward, from, to, capacity, backward);
      set_edge(backward, to, from, back, forward);
      return forward;
    };
    edge_of_arc_.reserve(arcs.size());
    for (const CutNetwork::Arc& arc : arcs) {
      edge_of_arc_.push_back(
          add(arc.from, arc.to, finite(arc.capacity), finite(arc.reverse_capacity)));
    }
    terminal_edge_.assign(vertices_, -1);
    for (std::size_t v = 0; v < vertices_; ++v) {
      const auto vertex = static_cast<std::int32_t>(v);
      if (const std::int64_t rest = source_capacity(v) - direct_[v]; rest > 0) {
        terminal_edge_[v] = add(source_, vertex, rest, 0);
      }
      if (const std::int64_t rest = sink_capacity(v) - direct_[v]; rest > 0) {
        terminal_edge_[v] = add(vertex, sink_, rest, 0);
      }
    }
  }

  void set_edge(std::int32_t edge, std::int32_t from, std::int32_t to, std::int64_t capacity,
                std::int32_t reverse) {
    graph_.tail[index_of(edge)] = from;
    graph_.head[index_of(edge)] = to;
    capacity_[index_of(edge)] = capacity;
    reverse_[index_of(edge)] = reverse;
  }

  void maximise() {
    residual_ = capacity_;
    const boost::typed_identity_property_map<std::int32_t> identity;
    const auto map = [&](auto& values) {
      return boost::make_iterator_property_map(values.begin(), identity);
    };
    std::vector<std::int32_t> predecessor(vertices_ + 2, -1);
    std::vector<boost::default_color_type> colour(vertices_ + 2);
    std::vector<std::int64_t> distance(vertices_ + 2, 0);
    boost::boykov_kolmogorov_max_flow(graph_, map(capacity_), map(residual_), map(reverse_),
                                      map(predecessor), map(colour), map(distance), identity,
                                      source_, sink_);
  }

  void read_flow(MinCut& cut) const {
    cut.arc_flow.reserve(edge_of_arc_.size());
    for (const std::int32_t edge : edge_of_arc_) {
      cut.arc_flow.push_back(capacity_[index_of(edge)] - residual_[index_of(edge)]);
    }
    cut.source_flow = direct_;
    cut.sink_flow = direct_;
    for (std::size_t v = 0; v < vertices_; ++v) {
      if (terminal_edge_[v] < 0) continue;
      const std::size_t edge = index_of(terminal_edge_[v]);
      (graph_.tail[edge] == source_ ? cut.source_flow : cut.sink_flow)[v] +=
          capacity_[edge] - residual_[edge];
    }
    cut.value = std::accumulate(cut.source_flow.begin(), cut.source_flow.end(), std::int64_t{0});
  }

  // The vertices that the source still reaches.
  void find_source_side(MinCut& cut) const {
    std::vector<char> reached(vertices_ + 2, 0);
    std::vector<std::int32_t> queue{source_};
    reached[index_of(source_)] = 1;
    for (std::size_t i = 0; i < queue.size(); ++i) {
      const auto v = index_of(queue[i]);
      for (std::int32_t edge = graph_.offsets[v]; edge < graph_.offsets[v + 1]; ++edge) {
        const std::int32_t next = graph_.head[index_of(edge)];
        if (residual_[index_of(edge)] <= 0 || reached[index_of(next)] != 0) continue;
        reached[index_of(next)] = 1;
        queue.push_back(next);
      }
    }
    reached.resize(vertices_);
    cut.source_side = std::move(reached);
  }

  const CutNetwork& network_;
  std::int64_t infinite_;
  std::size_t vertices_;
  std::int32_t source_ = 0;
  std::int32_t sink_ = 0;
  ResidualGraph graph_;
  std::vector<std::int64_t> direct_;         // by vertex
  std::vector<std::int32_t> edge_of_arc_;    // by arc of the network
  std::vector<std::int32_t> terminal_edge_;  // by vertex, -1 if none is left
  std::vector<std::int32_t> reverse_;
  std::vector<std::int64_t> capacity_;
  std::vector<std::int64_t> residual_;
};

}  // namespace

CutNetwork::Vertex CutNetwork::add_vertex() {
  source_.push_back(0);
  sink_.push_back(0);
  return static_cast<Vertex>(source_.size() - 1);
}

void CutNetwork::reserve(std::size_t vertices, std::size_t arcs) {
  source_.reserve(vertices);
  sink_.reserve(vertices);
  arcs_.reserve(arcs);
}

std::size_t CutNetwork::add_arc(Vertex from, Vertex to, std::int64_t capacity,
                                std::int64_t reverse_capacity) {
  assert(index_of(from) < vertex_count() && index_of(to) < vertex_count());
  assert(capacity >= 0 && reverse_capacity >= 0);
  arcs_.push_back({from, to, capacity, reverse_capacity});
  return arcs_.size() - 1;
}

void CutNetwork::add_source_capacity(Vertex vertex, std::int64_t capacity) {
  auto& value = source_[index_of(vertex)];
  value = add_capacity(value, capacity);
}

void CutNetwork::add_sink_capacity(Vertex vertex, std::int64_t capacity) {
  auto& value = sink_[index_of(vertex)];
  value = add_capacity(value, capacity);
}

MinCut solve_min_cut(const CutNetwork& network) {
  // Larger than every cut without an infinite arc.
  const LogTimer timer(LogModule::kSolve, LogLevel::kDebug);
  const std::int64_t infinite = sum_of_capacities(network).value() + 1;
  MinCut cut = Solver(network, infinite).solve();
  timer.done([&] {
    return "minimum cut: " + std::to_string(network.vertex_count()) + " vertices, " +
           std::to_string(network.arcs().size()) + " arcs, value " + std::to_string(cut.value);
  });
  if (cut.value >= infinite) return MinCut{.value = kInfiniteCapacity};
  return cut;
}

std::int64_t cut_capacity(const CutNetwork& network, const std::vector<char>& source_side) {
  assert(source_side.size() == network.vertex_count());
  Sum sum;
  bool is_infinite = false;
  const auto pay = [&](std::int64_t capacity) {
    is_infinite = is_infinite || capacity == kInfiniteCapacity;
    sum.add(capacity);
  };
  for (std::size_t v = 0; v < source_side.size(); ++v) {
    const auto vertex = static_cast<std::int32_t>(v);
    pay(source_side[v] != 0 ? network.sink_capacity(vertex) : network.source_capacity(vertex));
  }
  for (const CutNetwork::Arc& arc : network.arcs()) {
    const bool from = source_side[index_of(arc.from)] != 0;
    const bool to = source_side[index_of(arc.to)] != 0;
    if (from && !to) pay(arc.capacity);
    if (to && !from) pay(arc.reverse_capacity);
  }
  return is_infinite ? kInfiniteCapacity : sum.value();
}

std::string check_min_cut(const CutNetwork& network, const MinCut& cut) {
  const std::size_t vertices = network.vertex_count();
  if (cut.source_side.size() != vertices || cut.source_flow.size() != vertices ||
      cut.sink_flow.size() != vertices || cut.arc_flow.size() != network.arcs().size()) {
    return "the cut does not belong to the network";
  }
  __extension__ using Wide = __int128;  // sums of flows that are not checked yet
  std::vector<Wide> excess(vertices, 0);
  Wide out_of_source = 0;
  Wide into_sink = 0;
  for (std::size_t v = 0; v < vertices; ++v) {
    const auto vertex = static_cast<std::int32_t>(v);
    const std::int64_t in = cut.source_flow[v];
    const std::int64_t out = cut.sink_flow[v];
    if (in < 0 || in > network.source_capacity(vertex) || out < 0 ||
        out > network.sink_capacity(vertex)) {
      return "vertex " + std::to_string(v) + ": a terminal flow exceeds its capacity";
    }
    excess[v] += static_cast<Wide>(in) - out;
    out_of_source += in;
    into_sink += out;
  }
  for (std::size_t a = 0; a < cut.arc_flow.size(); ++a) {
    const CutNetwork::Arc& arc = network.arcs()[a];
    const std::int64_t flow = cut.arc_flow[a];
    if (flow > arc.capacity || flow < -arc.reverse_capacity) {
      return "arc " + std::to_string(a) + ": the flow exceeds its capacity";
    }
    excess[index_of(arc.from)] -= flow;
    excess[index_of(arc.to)] += flow;
  }
  for (std::size_t v = 0; v < vertices; ++v) {
    if (excess[v] != 0) return "vertex " + std::to_string(v) + ": flow in and out differ";
  }
  if (out_of_source != cut.value || into_sink != cut.value) {
    return "the flow's value is not " + std::to_string(cut.value);
  }
  const std::int64_t capacity = cut_capacity(network, cut.source_side);
  if (capacity != cut.value) {
    return "the cut has the capacity " + std::to_string(capacity) + ", the flow the value " +
           std::to_string(cut.value);
  }
  return {};
}

}  // namespace npu
