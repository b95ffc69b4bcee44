// SPDX-License-Identifier: Apache-2.0
// The masks of least bytes for one class of rows, by a minimum cut.
//
// What needs the class is the sink, what breaks it the source: an op that keeps it breaks nothing
// itself, but hands on what its operands break. A mask cuts a tensor, for all of its readers that
// lie on such a path:
//
//     source --inf--> in(x) --bytes of x--> out(x) --inf--> in(relu(x)) ----> ... --inf--> sink
//
// Where one of several operands is enough (a factor that is 0, an addend that is minus infinity),
// only one of them is looked at, the choice being tried out: all combinations if there are few,
// else one after the other until none gets better.
#include "passes/padding/place_masks.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "flow/min_cut.hpp"
#include "support/checked.hpp"

namespace npu::padding {
namespace {

constexpr std::size_t kMostExhaustive = 8;  // choices of which all combinations are tried

using TensorDim = std::pair<TensorId, std::int32_t>;

/// One point where one of several operands is enough: a result's dimension, or a need.
struct ChoicePoint {
  std::vector<Place> candidates;
  std::size_t chosen = 0;
};

class MaskNetwork {
 public:
  MaskNetwork(const Graph& graph, const PaddingAnalysis& analysis, const TensorSizes& shapes,
              Fill fill)
      : graph_(graph), analysis_(analysis), shapes_(shapes), fill_(fill) {
    for (const NodeId id : ids_of<NodeId>(graph.nodes())) {
      const std::vector<TailNeed>& needs = analysis.rules[id].needs;
      for (std::size_t i = 0; i < needs.size(); ++i) {
        if (needs[i].fill != fill || is_met(needs[i], graph.node(id), analysis.tails)) continue;
        if (is_for_class(needs[i])) needs_.emplace_back(id, i);
      }
    }
  }

  bool has_needs() const { return !needs_.empty(); }

  MaskPlan solve() {
    MaskPlan best = cut();
    const std::size_t count = choices_.size();
    if (count == 0) return best;
    if (count <= kMostExhaustive) return best_of_all(std::move(best));
    for (bool is_better = true; is_better;) {
      is_better = false;
      for (std::size_t i = 0; i < order_.size(); ++i) {
        ChoicePoint& point = *order_[i];
        const std::size_t before = point.chosen;
        for (std::size_t c = 0; c < point.candidates.size(); ++c) {
          if (c == before) continue;
          const std::size_t kept = point.chosen;
          point.chosen = c;
          MaskPlan other = cut();
          if (other.cut < best.cut) {
            best = std::move(other);
            is_better = true;
          } else {
            point.chosen = kept;
          }
        }
      }
    }
    return best;
  }

 private:
  // A need of a class that ops hand on; rows that must be finite are masked where they are needed.
  bool is_for_class(const TailNeed& need) const {
    const auto wants = [&](const TailClass& c) {
      return fill_ == Fill::kZero ? c.zero : fill_ == Fill::kLowest ? c.lowest : c.repeat;
    };
    return std::any_of(need.accepted.begin(), need.accepted.end(), wants);
  }

  bool has_class(const TensorDim& at) const {
    const TailClass& tail = analysis_.tails[at.first].dims[index_of(at.second)];
    return fill_ == Fill::kZero ? tail.zero : fill_ == Fill::kLowest ? tail.lowest : tail.repeat;
  }

  Keep keep_of(const ResultDim& along) const {
    return fill_ == Fill::kZero ? along.zero : fill_ == Fill::kLowest ? along.lowest : along.repeat;
  }

  TensorDim at(NodeId node, const Place& place) const {
    return {graph_.node(node).inputs[index_of(place.operand)], place.dim};
  }

  MaskPlan best_of_all(MaskPlan best) {
    // Choices that come up only behind others are found as combinations are tried.
    std::vector<std::size_t> radix;
    std::uint64_t combinations = 1;
    for (const ChoicePoint* point : order_) {
      radix.push_back(point->candidates.size());
      combinations *= point->candidates.size();
    }
    const std::vector<ChoicePoint*> points = order_;
    for (std::uint64_t c = 0; c < combinations; ++c) {
      std::uint64_t rest = c;
      for (std::size_t i = 0; i < points.size(); ++i) {
        points[i]->chosen = static_cast<std::size_t>(rest % radix[i]);
        rest /= radix[i];
      }
      MaskPlan other = cut();
      if (other.cut < best.cut) best = std::move(other);
    }
    return best;
  }

  ChoicePoint& choice(const std::pair<std::int64_t, std::int64_t>& key,
                      std::vector<Place> candidates, NodeId node) {
    const auto [found, is_new] = choices_.try_emplace(key);
    ChoicePoint& point = found->second;
    if (is_new) {
      // The smallest first.
      const auto bytes = [&](const Place& p) { return graph_.tensor(at(node, p).first).bytes(); };
      std::stable_sort(candidates.begin(), candidates.end(),
                       [&](const Place& a, const Place& b) { return bytes(a) < bytes(b); });
      point.candidates = std::move(candidates);
      order_.push_back(&point);
    }
    return point;
  }

  // ---- One network, with the choices as they are ----

  struct Pair {
    CutNetwork::Vertex in = 0;
    CutNetwork::Vertex out = 0;
    std::set<OperandUse> readers;
  };

  MaskPlan cut() {
    network_ = CutNetwork();
    pairs_.clear();
    for (const auto& [node, index] : needs_) {
      const TailNeed& need = analysis_.rules[node].needs[index];
      Place place = need.places.front();
      if (need.places.size() > 1) {
        const ChoicePoint& point =
            choice({node.value, -1 - static_cast<std::int64_t>(index)}, need.places, node);
        place = point.candidates[point.chosen];
      }
      Pair& pair = reach(at(node, place));
      pair.readers.insert({node, place.operand});
      network_.add_sink_capacity(pair.out, kInfiniteCapacity);
    }
    const MinCut found = solve_min_cut(network_);
    MaskPlan plan;
    plan.flow = found.value;
    for (const auto& [where, pair] : pairs_) {
      if (found.source_side.empty() || found.source_side[index_of(pair.in)] == 0 ||
          found.source_side[index_of(pair.out)] != 0) {
        continue;
      }
      plan.masks.push_back({where.first, where.second, fill_,
                            std::vector<OperandUse>(pair.readers.begin(), pair.readers.end())});
      plan.cut = saturating_add(plan.cut, price(where.first));
    }
    return plan;
  }

  std::int64_t price(TensorId id) const {
    return std::clamp<std::int64_t>(graph_.tensor(id).bytes(), 1, std::int64_t{1} << 40);
  }

  // The vertices of a tensor's dimension, with all that lies in front of them.
  Pair& reach(const TensorDim& first) {
    std::vector<TensorDim> open;
    Pair& result = pair_of(first, open);
    while (!open.empty()) {
      const TensorDim where = open.back();
      open.pop_back();
      reach_from(where, open);
    }
    return result;
  }

  Pair& pair_of(const TensorDim& where, std::vector<TensorDim>& open) {
    const auto [found, is_new] = pairs_.try_emplace(where);
    Pair& pair = found->second;
    if (is_new) {
      pair.in = network_.add_vertex();
      pair.out = network_.add_vertex();
      network_.add_arc(pair.in, pair.out, price(where.first));
      open.push_back(where);
    }
    return pair;
  }

  void reach_from(const TensorDim& where, std::vector<TensorDim>& open) {
    const CutNetwork::Vertex in = pairs_.at(where).in;
    const TensorInfo& tensor = graph_.tensor(where.first);
    const ResultDim* along = nullptr;
    if (tensor.kind == TensorKind::kResult) along = result_dim(tensor, where.second);
    const std::vector<Place> places =
        along == nullptr ? std::vector<Place>{} : handing_on(tensor.producer, *along);
    if (places.empty()) {
      network_.add_source_capacity(in, kInfiniteCapacity);
      return;
    }
    for (const Place& place : places) {
      const TensorDim operand = at(tensor.producer, place);
      if (has_class(operand)) continue;
      Pair& pair = pair_of(operand, open);
      pair.readers.insert({tensor.producer, place.operand});
      network_.add_arc(pair.out, in, kInfiniteCapacity);
    }
  }

  const ResultDim* result_dim(const TensorInfo& tensor, std::int32_t dim) const {
    for (const ResultDim& along : analysis_.rules[tensor.producer].results) {
      if (along.result == tensor.result && along.dim == dim) return &along;
    }
    return nullptr;
  }

  // The operands that must all have the class, so that the result has it; empty if nothing helps.
  std::vector<Place> handing_on(NodeId node, const ResultDim& along) {
    const Keep keep = keep_of(along);
    const std::vector<Place>& places = fill_ == Fill::kEdge ? along.from : along.values;
    if (keep == Keep::kAll) {
      const bool all_count = fill_ == Fill::kEdge ||
                             static_cast<std::int32_t>(along.values.size()) == along.value_operands;
      return all_count ? places : std::vector<Place>{};
    }
    if (keep != Keep::kAny) return {};
    std::vector<Place> candidates;
    for (const Place& place : places) {
      if (spares(node, place)) candidates.push_back(place);
    }
    if (candidates.size() < 2) return candidates;
    const ChoicePoint& point =
        choice({node.value, along.result * std::int64_t{1024} + along.dim}, candidates, node);
    return {point.candidates[point.chosen]};
  }

  // Whether no other operand spoils what one has.
  bool spares(NodeId node, const Place& place) const {
    const std::vector<TensorId>& inputs = graph_.node(node).inputs;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (i == index_of(place.operand)) continue;
      const bool is_fine = fill_ == Fill::kZero
                               ? is_finite(graph_, inputs[i], shapes_, analysis_.tails)
                               : is_not_above(graph_, inputs[i], shapes_, analysis_.tails);
      if (!is_fine) return false;
    }
    return true;
  }

  const Graph& graph_;
  const PaddingAnalysis& analysis_;
  const TensorSizes& shapes_;
  Fill fill_;
  std::vector<std::pair<NodeId, std::size_t>> needs_;
  std::map<std::pair<std::int64_t, std::int64_t>, ChoicePoint> choices_;
  std::vector<ChoicePoint*> order_;
  CutNetwork network_;
  std::map<TensorDim, Pair> pairs_;
};

}  // namespace

MaskPlan place_masks(const Graph& graph, const PaddingAnalysis& analysis, const TensorSizes& shapes,
                     Fill fill) {
  MaskNetwork network(graph, analysis, shapes, fill);
  return network.has_needs() ? network.solve() : MaskPlan{};
}

MaskPlan place_masks_at_needs(const Graph& graph, const PaddingAnalysis& analysis) {
  MaskPlan plan;
  std::map<std::tuple<TensorId, std::int32_t, Fill>, std::set<OperandUse>> wanted;
  for (const NodeId id : ids_of<NodeId>(graph.nodes())) {
    for (const TailNeed& need : analysis.rules[id].needs) {
      if (is_met(need, graph.node(id), analysis.tails)) continue;
      const Place& place = need.places.front();
      wanted[{graph.node(id).inputs[index_of(place.operand)], place.dim, need.fill}].insert(
          {id, place.operand});
    }
  }
  for (const auto& [where, readers] : wanted) {
    const auto& [tensor, dim, fill] = where;
    plan.masks.push_back(
        {tensor, dim, fill, std::vector<OperandUse>(readers.begin(), readers.end())});
    plan.cut = saturating_add(plan.cut, graph.tensor(tensor).bytes());
  }
  plan.flow = plan.cut;
  return plan;
}

}  // namespace npu::padding
