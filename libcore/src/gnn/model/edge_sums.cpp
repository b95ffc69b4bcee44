// SPDX-License-Identifier: Apache-2.0
// Whether a layer only sums rows of its input over edges, as they are or times factors.
//
// Every tensor of the layer is classed by what it holds: the input, numbers of sources or targets,
// gathered rows of the input, ones for edges, numbers that follow from degrees, per node or per
// edge, or anything per node. Gathered rows may be renamed, scaled by numbers that follow from the
// degrees of both ends, and added up by target; ones may be added up by target; every other use of
// a value per edge is the reason to refuse. A factor that is f(source) g(target) comes out of a sum
// but for f, so the sum of rows times f(source) stands for them where f is 1: that is the
// normalised sum of a GCN. Attention fails: its factors depend on both ends at once. Instead of
// sums all layers may take the largest of rows as they are, by target. O(nodes).
#include "gnn/model/edge_sums.hpp"

#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "npu/support/json.hpp"

namespace npu::gnn {
namespace {

enum class Held : std::uint8_t {
  kPerNode,
  kInput,
  kDegree,  // what follows from a node's degree, step by step
  kEdges,
  kSources,
  kTargets,
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

class EdgeUse {
 public:
  std::string refusal(const LayerInfo& layer) {
    for (const StageInfo& stage : layer.stages) {
      for (const Json& node : stage.ir.at("nodes")) {
        const std::optional<Holding> result = result_of(node);
        if (!result) {
          return "stage '" + stage.name + "' does more with edges than to sum rows of its input";
        }
        for (const Json& output : node.at("outputs")) holdings_[name_of(output)] = *result;
      }
    }
    return {};
  }

  // The factors of the rows that the layer sums; nothing if it sums none.
  const std::optional<std::vector<DegreeStep>>& factor() const noexcept { return factor_; }
  // Whether it takes the largest of rows.
  bool takes_largest() const noexcept { return takes_largest_; }

 private:
  static std::string name_of(const Json& tensor) { return tensor.at("name").get<std::string>(); }

  Holding held(const Json& node, std::size_t input) const {
    const Json& inputs = node.at("inputs");
    if (input >= inputs.size()) return {};
    const auto found = holdings_.find(name_of(inputs[input]));
    return found == holdings_.end() ? Holding{} : found->second;
  }

  // What a node's results hold; nothing if it uses a value per edge in another way.
  std::optional<Holding> result_of(const Json& node) {
    const std::string op = node.at("op_type").get<std::string>();
    const Holding first = held(node, 0);
    if (op == "aten.alias.default") return first;
    if (op == "aten.unsqueeze.default" && first.held == Held::kFactor) return first;
    // Some columns of rows add up as the rows do.
    if (op == "aten.slice.Tensor" && first.held == Held::kInput &&
        node.at("attrs").value("dim", std::int64_t{0}) == 1) {
      return first;
    }
    if (op == "aten.select.int" && first.held == Held::kEdges) {
      const std::int64_t index = node.at("attrs").value("index", std::int64_t{-1});
      if (index != 0 && index != 1) return std::nullopt;
      return Holding{index == 0 ? Held::kSources : Held::kTargets};
    }
    if (op == "aten.embedding.default" || op == "aten.index_select.default") {
      if (auto gathered = gathered_by(node)) return gathered;
    }
    if (op == "aten.mul.Tensor") {
      if (auto product = product_of(first, held(node, 1))) return product;
    }
    if (first.held == Held::kDegree) {
      if (const auto step = step_of(node, op)) {
        Holding next = first;
        next.steps.push_back(*step);
        return next;
      }
    }
    const bool is_wider = op == "aten.unsqueeze.default" || op == "aten.expand.default";
    if (is_wider && first.held == Held::kTargets) return first;
    if (op == "aten.scatter_reduce.two" && held(node, 1).held == Held::kTargets) {
      const Holding rows = held(node, 2);
      if (!is_whole(first) || rows.held != Held::kRows || rows.is_scaled) return std::nullopt;
      if (node.at("attrs").value("reduce", std::string()) != "amax") return std::nullopt;
      takes_largest_ = true;
      return Holding{};
    }
    if (op == "aten.ones.default" && is_per_edge(node)) return Holding{Held::kOnes};
    if (op == "aten.index_add.default" && held(node, 1).held == Held::kTargets) {
      return is_whole(first) && is_summable(held(node, 2)) ? std::optional(Holding{})
                                                           : std::nullopt;
    }
    for (std::size_t i = 0; i < node.at("inputs").size(); ++i) {
      if (!is_whole(held(node, i))) return std::nullopt;
    }
    return Holding{};
  }

  std::optional<Holding> gathered_by(const Json& node) const {
    const Holding table = held(node, 0);
    const Held by = held(node, 1).held;
    if (table.held == Held::kInput && by == Held::kSources) return Holding{Held::kRows};
    if (table.held != Held::kDegree) return std::nullopt;
    if (by == Held::kSources) return Holding{Held::kFactor, table.steps, true};
    if (by == Held::kTargets) return Holding{Held::kFactor};
    return std::nullopt;
  }

  // Of two factors, or of rows and a factor; at most one of them is of the source.
  static std::optional<Holding> product_of(const Holding& a, const Holding& b) {
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

  static std::optional<DegreeStep> step_of(const Json& node, const std::string& op) {
    const Json& attrs = node.at("attrs");
    if (node.at("inputs").size() != 1) return std::nullopt;
    const auto number = [&](const char* key) -> std::optional<float> {
      const auto found = attrs.find(key);
      if (found == attrs.end() || !found->is_number()) return std::nullopt;
      return found->get<float>();
    };
    if (op == "aten.rsqrt.default") return DegreeStep{DegreeStep::Op::kReciprocalRoot, 0};
    if (op == "aten.add.Tensor" && number("other") && number("alpha").value_or(1) == 1) {
      return DegreeStep{DegreeStep::Op::kAdd, *number("other")};
    }
    if (op == "aten.mul.Tensor" && number("other")) {
      return DegreeStep{DegreeStep::Op::kMultiply, *number("other")};
    }
    if (op == "aten.pow.Tensor_Scalar" && number("exponent")) {
      return DegreeStep{DegreeStep::Op::kPower, *number("exponent")};
    }
    return std::nullopt;
  }

  // Edges keep their number, so ones may be counted; rows need the same factors everywhere.
  bool is_summable(const Holding& values) {
    if (values.held == Held::kOnes) return true;
    if (values.held != Held::kRows) return false;
    if (factor_ && *factor_ != values.steps) return false;
    factor_ = values.steps;
    return true;
  }

  static bool is_per_edge(const Json& node) {
    const auto size = node.at("attrs").find("size");
    return size != node.at("attrs").end() && size->is_array() && size->size() == 1 &&
           (*size)[0] == "m";
  }

  std::map<std::string, Holding> holdings_{{std::string(kFeatureInput), {Held::kInput}},
                                           {std::string(kEdgeInput), {Held::kEdges}},
                                           {std::string(kDegreeInput), {Held::kDegree}}};
  std::optional<std::vector<DegreeStep>> factor_;
  bool takes_largest_ = false;
};

}  // namespace

EdgeSums edge_sums(const StagedModel& model) {
  EdgeSums sums;
  std::optional<std::vector<DegreeStep>> factor;
  bool adds_up = false;
  for (std::size_t l = 0; l < model.layers.size(); ++l) {
    EdgeUse use;
    const std::string layer = "layer " + std::to_string(l + 1) + ": ";
    sums.refusal = use.refusal(model.layers[l]);
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
