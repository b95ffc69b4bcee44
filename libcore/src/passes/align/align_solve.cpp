// SPDX-License-Identifier: Apache-2.0
// The two ways to give units their modes.
//
// Greedy is the forward pass of LayoutAlignToNPU: in topological order an op that takes both modes
// follows the first of its parents that has one. What is left, ops that only other undecided ops
// feed, follows its first user, from the end backwards. O(units + uses).
//
// Optimal is a minimum cut. The source's side is ALIGN, and a conversion is charged once for each
// tensor and wanted layout, however many users want it. For a tensor with several users that takes
// a helper vertex for each direction:
//
//     producer --to_nalign--> h --infinite--> every user      cut if the producer is ALIGN and
//                                                             any user NALIGN
//     every user --infinite--> h --to_align--> producer       cut if the producer is NALIGN and
//                                                             any user ALIGN
//
// What is outside a region is NALIGN, which is the sink. An ALIGN unit pays for the padding of its
// results, in a unit so small that all padding together weighs less than one conversion; of the
// cuts that are equal even then the one with the fewest ALIGN units is taken. Vertices and arcs are
// linear in units and uses.
#include "passes/align/align_solve.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <queue>
#include <stdexcept>

#include "flow/min_cut.hpp"
#include "support/checked.hpp"

namespace npu::align {
namespace {

/// What every conversion and every padding costs, as integers that add up to less than 2^62.
class Prices {
 public:
  Prices(const Problem& problem, const AlignOptions& options) : options_(options) {
    constexpr std::int64_t kLargest = std::int64_t{1} << 60;
    std::int64_t primary = 1;
    std::int64_t padding = 0;
    for (const Value& value : problem.values) {
      if (!value.can_differ) continue;
      primary = saturating_add(primary, raw(value, true));
      primary = saturating_add(primary, raw(value, false));
      padding = saturating_add(padding, 2 * padding_of(value));
    }
    while ((primary >> primary_shift_) > kLargest) ++primary_shift_;
    // Rounding down may only happen where sizes are beyond what a machine has.
    const std::int64_t most = (kLargest / ((primary >> primary_shift_) + 1));
    while ((padding >> padding_shift_) + 1 > most) ++padding_shift_;
    scale_ = (padding >> padding_shift_) + 1;
  }

  std::int64_t scale() const noexcept { return scale_; }
  std::int64_t to_nalign(const Value& value) const {
    return (raw(value, true) >> primary_shift_) * scale_;
  }
  std::int64_t to_align(const Value& value) const {
    return (raw(value, false) >> primary_shift_) * scale_ + padding(value);
  }
  std::int64_t padding(const Value& value) const { return padding_of(value) >> padding_shift_; }

 private:
  static std::int64_t padding_of(const Value& value) {
    return std::min(value.aligned_bytes - value.plain_bytes, std::int64_t{1} << 60);
  }
  std::int64_t raw(const Value& value, bool to_nalign) const {
    if (options_.weight == "count") return 1;
    if (options_.weight == "bytes") return to_nalign ? value.plain_bytes : value.aligned_bytes;
    const double us = to_nalign ? value.to_nalign_us : value.to_align_us;
    return std::max<std::int64_t>(1, saturating_integer(std::round(us * 1000)));  // nanoseconds
  }

  const AlignOptions& options_;
  int primary_shift_ = 0;
  int padding_shift_ = 0;
  std::int64_t scale_ = 1;
};

class NetworkBuilder {
 public:
  NetworkBuilder(const Problem& problem, const AlignOptions& options)
      : problem_(problem), prices_(problem, options), network_(problem.units.size()) {}

  CutNetwork build() {
    for (std::size_t u = 0; u < problem_.units.size(); ++u) {
      const auto vertex = static_cast<CutNetwork::Vertex>(u);
      const AlignMode mode = problem_.units[u].mode.mode;
      if (mode == AlignMode::kAlign) network_.add_source_capacity(vertex, kInfiniteCapacity);
      if (mode == AlignMode::kNalign) network_.add_sink_capacity(vertex, kInfiniteCapacity);
    }
    for (const Value& value : problem_.values) {
      if (value.can_differ) add_value(value);
    }
    return std::move(network_);
  }
  std::int64_t scale() const noexcept { return prices_.scale(); }

 private:
  // Units that want the value in their own mode, each once; and whether anything else wants it in a
  // fixed one.
  void find_users(const Value& value) {
    users_.clear();
    fixed_align_ = false;
    fixed_nalign_ = value.leaves;
    for (const Use& use : value.uses) {
      const Unit& unit = problem_.units[index_of(use.unit)];
      if (!unit.is_channel_norm) {
        users_.push_back(use.unit);
      } else {
        (unit.mode.mode == AlignMode::kAlign ? fixed_nalign_ : fixed_align_) = true;
      }
    }
    std::sort(users_.begin(), users_.end());
    users_.erase(std::unique(users_.begin(), users_.end()), users_.end());
  }

  void add_value(const Value& value) {
    find_users(value);
    const std::int32_t producer = value.producer;
    if (producer >= 0) {
      network_.add_sink_capacity(producer, prices_.padding(value));
      if (problem_.units[index_of(producer)].is_channel_norm) return;  // both forms are there
      add_to_nalign(value);
    }
    add_to_align(value);
  }

  void add_to_nalign(const Value& value) {
    const std::int64_t price = prices_.to_nalign(value);
    if (fixed_nalign_) {
      network_.add_sink_capacity(value.producer, price);
    } else if (users_.size() == 1) {
      network_.add_arc(value.producer, users_.front(), price);
    } else if (!users_.empty()) {
      const CutNetwork::Vertex helper = network_.add_vertex();
      network_.add_arc(value.producer, helper, price);
      for (const std::int32_t user : users_) network_.add_arc(helper, user, kInfiniteCapacity);
    }
  }

  void add_to_align(const Value& value) {
    const std::int64_t price = prices_.to_align(value);
    if (fixed_align_) {
      if (value.producer >= 0) network_.add_source_capacity(value.producer, price);
      return;  // from outside: it is converted whatever the others want
    }
    if (users_.empty()) return;
    CutNetwork::Vertex tail = users_.front();
    if (users_.size() > 1) {
      tail = network_.add_vertex();
      for (const std::int32_t user : users_) network_.add_arc(user, tail, kInfiniteCapacity);
    }
    if (value.producer < 0) {
      network_.add_sink_capacity(tail, price);
    } else {
      network_.add_arc(tail, value.producer, price);
    }
  }

  const Problem& problem_;
  Prices prices_;
  CutNetwork network_;
  std::vector<std::int32_t> users_;
  bool fixed_align_ = false;
  bool fixed_nalign_ = false;
};

// The parent that a unit follows: the first in topological order that has a mode.
AlignMode mode_of_first_parent(const Graph& graph, const Problem& problem, std::size_t unit,
                               const std::vector<AlignMode>& modes) {
  AlignMode mode = AlignMode::kBoth;
  std::int32_t first = 0;
  for (const std::int32_t index : problem.parents[unit]) {
    const Value& value = problem.values[index_of(index)];
    const AlignMode parent =
        value.producer < 0 ? AlignMode::kNalign : modes[index_of(value.producer)];
    if (parent == AlignMode::kBoth) continue;
    const std::int32_t position = graph.tensor(value.tensor).producer.value;  // -1: graph input
    if (mode != AlignMode::kBoth && position >= first) continue;
    mode = parent;
    first = position;
  }
  return mode;
}

}  // namespace

std::vector<std::int32_t> unit_order(const Graph& graph, const Problem& problem) {
  const std::size_t count = problem.units.size();
  std::vector<std::int32_t> waiting(count, 0);
  for (const Value& value : problem.values) {
    if (value.producer < 0) continue;
    for (const Use& use : value.uses) ++waiting[index_of(use.unit)];
  }
  std::vector<std::vector<std::int32_t>> made(count);
  for (std::size_t v = 0; v < problem.values.size(); ++v) {
    const std::int32_t producer = problem.values[v].producer;
    if (producer >= 0) made[index_of(producer)].push_back(static_cast<std::int32_t>(v));
  }
  std::priority_queue<std::int32_t, std::vector<std::int32_t>, std::greater<>> ready;
  for (std::size_t u = 0; u < count; ++u) {
    if (waiting[u] == 0) ready.push(static_cast<std::int32_t>(u));
  }
  std::vector<std::int32_t> order;
  order.reserve(count);
  while (!ready.empty()) {
    const std::int32_t unit = ready.top();
    ready.pop();
    order.push_back(unit);
    for (const std::int32_t value : made[index_of(unit)]) {
      for (const Use& use : problem.values[index_of(value)].uses) {
        if (--waiting[index_of(use.unit)] == 0) ready.push(use.unit);
      }
    }
  }
  if (order.size() == count) return order;
  for (std::size_t u = 0; u < count; ++u) {
    const NodeId id = problem.units[u].members.front();
    if (waiting[u] == 0 || !graph.node(id).fusion_group) continue;
    throw Error(ErrorCode::kInvalidGraph,
                "fusion group " + std::to_string(*graph.node(id).fusion_group) +
                    " is not convex: a path leaves it and comes back",
                graph.location(id));
  }
  throw std::logic_error("units of a graph without groups depend on each other in a circle");
}

std::vector<AlignMode> solve_greedy(const Graph& graph, const Problem& problem) {
  const std::vector<std::int32_t> order = unit_order(graph, problem);
  std::vector<AlignMode> modes;
  modes.reserve(problem.units.size());
  for (const Unit& unit : problem.units) modes.push_back(unit.mode.mode);
  for (const std::int32_t unit : order) {
    if (modes[index_of(unit)] != AlignMode::kBoth) continue;
    modes[index_of(unit)] = mode_of_first_parent(graph, problem, index_of(unit), modes);
  }
  std::vector<std::vector<std::int32_t>> made(problem.units.size());
  for (std::size_t v = 0; v < problem.values.size(); ++v) {
    const std::int32_t producer = problem.values[v].producer;
    if (producer >= 0 && modes[index_of(producer)] == AlignMode::kBoth) {
      made[index_of(producer)].push_back(static_cast<std::int32_t>(v));
    }
  }
  for (auto unit = order.rbegin(); unit != order.rend(); ++unit) {
    AlignMode& mode = modes[index_of(*unit)];
    if (mode != AlignMode::kBoth) continue;
    for (const std::int32_t v : made[index_of(*unit)]) {
      const Value& value = problem.values[index_of(v)];
      if (mode == AlignMode::kBoth && !value.uses.empty()) {
        mode = problem.required(value.uses.front(), modes);
      }
    }
    if (mode == AlignMode::kBoth) mode = AlignMode::kNalign;  // needs less memory
  }
  return modes;
}

std::vector<AlignMode> solve_optimal(const Problem& problem, const AlignOptions& options,
                                     AlignCertificate& certificate) {
  NetworkBuilder builder(problem, options);
  const CutNetwork network = builder.build();
  const MinCut cut = solve_min_cut(network);
  if (const std::string fault = check_min_cut(network, cut); !fault.empty()) {
    throw std::logic_error("the minimum cut does not prove itself: " + fault);
  }
  certificate.cut = cut_capacity(network, cut.source_side);
  certificate.flow = cut.value;
  certificate.scale = builder.scale();
  certificate.vertices = static_cast<std::int64_t>(network.vertex_count());
  certificate.arcs = static_cast<std::int64_t>(network.arcs().size());
  std::vector<AlignMode> modes;
  modes.reserve(problem.units.size());
  for (std::size_t u = 0; u < problem.units.size(); ++u) {
    modes.push_back(cut.source_side[u] != 0 ? AlignMode::kAlign : AlignMode::kNalign);
  }
  return modes;
}

}  // namespace npu::align
