// SPDX-License-Identifier: Apache-2.0
// Whether a layer only sums rows of its input over edges, as they are or times factors.
//
// Every tensor of the layer is classed by what it holds: the input, gathered rows of the input,
// ones for edges, numbers that follow from degrees, per node or per edge, or anything per node.
// Gathered rows may be renamed, scaled by numbers that follow from the degrees of both ends, and
// added up by target; ones may be added up by target; every other use of a value per edge is the
// reason to refuse. A factor that is f(source) g(target) comes out of a sum but for f, so the sum
// of rows times f(source) stands for them where f is 1: that is the normalised sum of a GCN.
// Attention fails: its factors depend on both ends at once. Instead of sums all layers may take the
// largest of rows as they are, by target. What an aggregation is, model/aggregations.cpp knows.
// O(nodes).
#include "gnn/model/edge_sums.hpp"

#include <cmath>
#include <optional>
#include <utility>

#include "gnn/model/aggregations.hpp"
#include "npu/support/ids.hpp"
#include "support/json_fields.hpp"

namespace npu::gnn {
namespace {

enum class Held : std::uint8_t {
  kPerNode,
  kInput,
  kDegree,  // what follows from a node's degree, step by step
  kEnds,    // nodes, by edge
  kRows,    // of the input, one for each edge
  kFactor,  // one for each edge
  kOnes,
};

struct Holding {
  Held held = Held::kPerNode;
  std::vector<DegreeStep> steps = {};  // of a degree; of the sources of rows and factors
  bool is_of_source = false;           // rows and factors: times the steps of the source's degree
  bool is_scaled = false;              // rows: times any factor
};

bool is_whole(const Holding& holding) {
  return holding.held == Held::kPerNode || holding.held == Held::kInput ||
         holding.held == Held::kDegree;
}

// Of two factors, or of rows and a factor; at most one of them is of the source.
std::optional<Holding> product_of(const Holding& a, const Holding& b) {
  if (a.is_of_source && b.is_of_source) return std::nullopt;
  const bool has_rows = a.held == Held::kRows || b.held == Held::kRows;
  const bool has_factor = a.held == Held::kFactor || b.held == Held::kFactor;
  const bool is_known = (a.held == Held::kRows || a.held == Held::kFactor) &&
                        (b.held == Held::kRows || b.held == Held::kFactor);
  if (!is_known || !has_factor) return std::nullopt;
  Holding product = a.is_of_source ? a : b;
  product.held = has_rows ? Held::kRows : Held::kFactor;
  product.is_scaled = has_rows;
  return product;
}

// The step from a degree that a node of one operand is.
std::optional<DegreeStep> step_of(const Node& node) {
  if (node.inputs.size() != 1) return std::nullopt;
  const auto number = [&](const char* key) { return member_double(node.attrs(), key); };
  const auto step = [&](DegreeStep::Op op, const char* key) -> std::optional<DegreeStep> {
    if (!number(key)) return std::nullopt;
    return DegreeStep{op, static_cast<float>(*number(key))};
  };
  switch (fusion_role(node.op_type)) {
    case FusionRole::kRsqrt:
      return DegreeStep{DegreeStep::Op::kReciprocalRoot, 0};
    case FusionRole::kAdd:
      if (number("alpha").value_or(1) != 1) return std::nullopt;
      return step(DegreeStep::Op::kAdd, "other");
    case FusionRole::kMul:
      return step(DegreeStep::Op::kMultiply, "other");
    case FusionRole::kPower:
      return step(DegreeStep::Op::kPower, "exponent");
    default:
      return std::nullopt;
  }
}

class EdgeUse {
 public:
  explicit EdgeUse(const Graph& graph)
      : graph_(graph), matcher_(graph), holdings_(graph.tensors().size()) {
    for (const auto& [name, held] : {std::pair{kFeatureInput, Held::kInput},
                                     {kEdgeInput, Held::kEnds},
                                     {kDegreeInput, Held::kDegree}}) {
      const TensorId id = graph.find_tensor(name);
      if (id.valid()) holdings_[id].held = held;
    }
  }

  // The first node that uses a value per edge in another way than sums do; invalid: none does.
  NodeId refused() {
    for (const NodeId id : ids_of<NodeId>(graph_.nodes())) {
      const Node& node = graph_.node(id);
      const std::optional<Holding> result = result_of(node);
      if (!result) return id;
      for (const TensorId output : node.outputs) holdings_[output] = *result;
    }
    return {};
  }

  // The factors of the rows that the layer sums; nothing if it sums none.
  const std::optional<std::vector<DegreeStep>>& factor() const noexcept { return factor_; }
  // Whether it takes the largest of rows.
  bool takes_largest() const noexcept { return takes_largest_; }

 private:
  Holding held(const Node& node, std::size_t input) const {
    return input < node.inputs.size() ? holdings_[node.inputs[input]] : Holding{};
  }

  // What a node's results hold; nothing if it uses a value per edge in another way.
  std::optional<Holding> result_of(const Node& node) {
    const Holding first = held(node, 0);
    const FusionRole role = fusion_role(node.op_type);
    const TensorId result = node.outputs[0];
    if (const auto aggregate = matcher_.aggregate_of(node)) {
      return takes(*aggregate, held(node, 2)) ? std::optional(Holding{}) : std::nullopt;
    }
    if (matcher_.is_alias(node)) return first;
    if (first.held == Held::kEnds) {
      const bool is_shaped = matcher_.view(result) != nullptr || role == FusionRole::kExpand;
      const bool is_end =
          matcher_.is_end(result, EdgeEnd::kSource) || matcher_.is_end(result, EdgeEnd::kTarget);
      return is_shaped || is_end ? std::optional(first) : std::nullopt;
    }
    if (matcher_.view(result) != nullptr && first.held == Held::kFactor) return first;
    // Some columns of rows add up as the rows do.
    if (role == FusionRole::kSlice && first.held == Held::kInput &&
        member_integer(node.attrs(), "dim") == 1) {
      return first;
    }
    if (auto gathered = gathered_by(node, first)) return gathered;
    if (role == FusionRole::kMul) {
      if (auto product = product_of(first, held(node, 1))) return product;
    }
    if (const auto step = first.held == Held::kDegree ? step_of(node) : std::nullopt) {
      Holding next = first;
      next.steps.push_back(*step);
      return next;
    }
    if (role == FusionRole::kOnes && graph_.tensor(result).shape == Shape{matcher_.edges()}) {
      return Holding{Held::kOnes};
    }
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      if (!is_whole(held(node, i))) return std::nullopt;
    }
    return Holding{};
  }

  std::optional<Holding> gathered_by(const Node& node, const Holding& table) const {
    const bool is_degree = table.held == Held::kDegree;
    if (matcher_.gathered_by(node, EdgeEnd::kSource).valid()) {
      if (table.held == Held::kInput) return Holding{Held::kRows};
      if (is_degree) return Holding{Held::kFactor, table.steps, true};
    }
    const bool is_of_target = matcher_.gathered_by(node, EdgeEnd::kTarget).valid();
    return is_degree && is_of_target ? std::optional(Holding{Held::kFactor}) : std::nullopt;
  }

  // Whether values by edge may be aggregated. Edges keep their number, so ones may be counted; rows
  // need the same factors everywhere, and those whose largest is taken have none.
  bool takes(Aggregate aggregate, const Holding& values) {
    if (aggregate == Aggregate::kLargest) {
      if (values.held != Held::kRows || values.is_scaled) return false;
      takes_largest_ = true;
      return true;
    }
    if (values.held == Held::kOnes) return true;
    if (values.held != Held::kRows || (factor_ && *factor_ != values.steps)) return false;
    factor_ = values.steps;
    return true;
  }

  const Graph& graph_;
  const EdgeMatcher matcher_;
  IdVector<TensorId, Holding> holdings_;
  std::optional<std::vector<DegreeStep>> factor_;
  bool takes_largest_ = false;
};

// Why a layer uses edges otherwise, by the stage of the node.
std::string refusal_of(const LayerInfo& layer, NodeId node) {
  if (!node.valid()) return {};
  std::size_t end = 0;
  for (const StageInfo& stage : layer.stages) {
    end += stage.ir.at("nodes").size();
    if (index_of(node) >= end) continue;
    return "stage '" + stage.name + "' does more with edges than to sum rows of its input";
  }
  return {};
}

}  // namespace

EdgeSums edge_sums(const StagedModel& model) {
  EdgeSums sums;
  std::optional<std::vector<DegreeStep>> factor;
  bool adds_up = false;
  for (std::size_t l = 0; l < model.layers.size(); ++l) {
    const LayerInfo& info = model.layers[l];
    const auto number = static_cast<std::int32_t>(l) + 1;
    // As many rows as no attribute states.
    const Graph graph = model.block(number, 1, info.stage_count(), {1009, 1009, 2003});
    EdgeUse use(graph);
    const std::string layer = "layer " + std::to_string(number) + ": ";
    sums.refusal = refusal_of(info, use.refused());
    if (sums.refusal.empty() && factor && use.factor() && *factor != *use.factor()) {
      sums.refusal = "its rows have other factors than those of the layers before";
    }
    sums.is_max = sums.is_max || use.takes_largest();
    adds_up = adds_up || use.factor().has_value();
    if (sums.refusal.empty() && sums.is_max && adds_up) {
      sums.refusal = "the model adds rows up and takes the largest of them";
    }
    if (!sums.refusal.empty()) {
      sums.refusal = layer + sums.refusal;
      return sums;
    }
    if (use.factor()) factor = use.factor();
  }
  if (factor) sums.factor = std::move(*factor);
  for (const float degree : {0.0F, 1.0F}) {
    sums.neutral_degree = degree;
    if (factor_of(sums.factor, degree) == 1) return sums;
  }
  sums.refusal = "the factors of rows are 1 for neither 0 nor 1 edges";
  return sums;
}

float factor_of(const std::vector<DegreeStep>& steps, float degree) {
  if (steps.empty()) return 1;
  float value = degree;
  for (const DegreeStep& step : steps) {
    switch (step.op) {
      case DegreeStep::Op::kAdd:
        value += step.operand;
        break;
      case DegreeStep::Op::kMultiply:
        value *= step.operand;
        break;
      case DegreeStep::Op::kReciprocalRoot:
        value = 1 / std::sqrt(value);
        break;
      case DegreeStep::Op::kPower:
        value = std::pow(value, step.operand);
        break;
    }
  }
  return value;
}

}  // namespace npu::gnn
