// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace npu {

/// A capacity that no minimum cut pays.
inline constexpr std::int64_t kInfiniteCapacity = std::numeric_limits<std::int64_t>::max();

/// A network between a source and a sink, for binary labelling: vertices on the source's side of a
/// cut have one label, those on the sink's side the other. Capacities are at least 0; vertices are
/// numbered from 0 in the order in which they were added, not counting source and sink.
class CutNetwork {
 public:
  using Vertex = std::int32_t;
  struct Arc {
    Vertex from = 0;
    Vertex to = 0;
    std::int64_t capacity = 0;  ///< paid if `from` is on the source's side, `to` on the sink's
    std::int64_t reverse_capacity = 0;  ///< paid the other way round
  };

  CutNetwork() = default;
  explicit CutNetwork(std::size_t vertices) : source_(vertices, 0), sink_(vertices, 0) {}

  Vertex add_vertex();
  void reserve(std::size_t vertices, std::size_t arcs);
  /// Returns the arc's index.
  std::size_t add_arc(Vertex from, Vertex to, std::int64_t capacity,
                      std::int64_t reverse_capacity = 0);
  /// Adds to the price that is paid if the vertex is on the sink's side.
  void add_source_capacity(Vertex vertex, std::int64_t capacity);
  /// Adds to the price that is paid if the vertex is on the source's side.
  void add_sink_capacity(Vertex vertex, std::int64_t capacity);

  std::size_t vertex_count() const noexcept { return source_.size(); }
  const std::vector<Arc>& arcs() const noexcept { return arcs_; }
  std::int64_t source_capacity(Vertex v) const { return source_[static_cast<std::size_t>(v)]; }
  std::int64_t sink_capacity(Vertex v) const { return sink_[static_cast<std::size_t>(v)]; }

 private:
  std::vector<Arc> arcs_;
  std::vector<std::int64_t> source_;
  std::vector<std::int64_t> sink_;
};

/// A minimum cut and a flow of the same value, which proves that it is one.
struct MinCut {
  std::int64_t value = 0;  ///< kInfiniteCapacity if every cut has an infinite arc; the
                           ///< vectors are empty then
  std::vector<char> source_side =
      {};  ///< by vertex; the smallest of all minimum cuts' source sides
  std::vector<std::int64_t> arc_flow = {};     ///< by arc, net; negative: from `to` to `from`
  std::vector<std::int64_t> source_flow = {};  ///< by vertex, from the source
  std::vector<std::int64_t> sink_flow = {};    ///< by vertex, to the sink
};

/// Deterministic. Throws Error kUnsupported if the finite capacities add up to more than 2^62.
MinCut solve_min_cut(const CutNetwork& network);

/// What is wrong with a cut and its flow, checked by definition without solving anything:
/// capacities respected, flow conserved at every vertex, the flow's value equal to `value` and to
/// the capacity of the cut. Empty if nothing is wrong. O(vertices + arcs).
std::string check_min_cut(const CutNetwork& network, const MinCut& cut);

/// The capacity of the cut that `source_side` describes; kInfiniteCapacity if an infinite arc or
/// terminal is cut. Throws as solve_min_cut.
std::int64_t cut_capacity(const CutNetwork& network, const std::vector<char>& source_side);

}  // namespace npu
