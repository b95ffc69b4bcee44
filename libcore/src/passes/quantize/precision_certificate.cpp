// SPDX-License-Identifier: Apache-2.0
// Writes the problem that a quantized document solves, and checks such documents.
//
// The check reads units, costs and errors from the document, the choice from its nodes, follows the
// inserted pairs to see which op reads which tensor, adds up costs and errors, and solves one
// minimum cut, whose value bounds every other choice. With the search it shares what a choice costs
// (cost_of) and that cut (precision_network, dual_bound), not how the choice was found. O(nodes +
// edges) and the cut. The document is untrusted: indices and sums are checked, and what a
// certificate leaves out is looked for.
#include "passes/quantize/precision_certificate.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "npu/support/ids.hpp"
#include "ops/op_name.hpp"
#include "passes/quantize/quantize.hpp"
#include "support/json_fields.hpp"

namespace npu {
namespace quantize {
namespace {

constexpr std::int64_t kMost = std::int64_t{1} << 28;
constexpr FieldStyle kStyle{.code = ErrorCode::kInvalidGraph, .names_key = true};

std::string_view allowed_name(Allowed allowed) {
  return allowed == Allowed::kBoth ? "both" : allowed == Allowed::kInt8 ? "int8" : "float";
}

class CertificateCheck {
 public:
  CertificateCheck(const Graph& graph, const JsonFields& section)
      : graph_(graph),
        section_(section),
        certificate_(section.object("certificate"), graph.file, section.pointer() + "/certificate",
                     kStyle) {}

  std::string run() {
    certificate_.for_each("units", [&](const JsonFields& unit) { add_unit(unit); });
    find_parameters();
    // An output may be what an op's integers stand for.
    for (const TensorId id : graph_.graph_outputs()) outputs_.insert(behind_pairs(id));
    check_nodes();
    certificate_.for_each("values", [&](const JsonFields& value) { add_value(value); });
    check_sums();
    check_reads();
    const std::int64_t cost = cost_of(problem_, costs_, int8_);
    const std::int64_t stated = certificate_.integer("cost", 0, kMost);
    if (cost != stated) {
      certificate_.refuse("cost", "the precisions cost " + std::to_string(cost) + ", not " +
                                      std::to_string(stated));
    }
    const std::string mode = section_.text("mode");
    if (mode == "mixed") return check_bound(cost);
    if (mode != "int8") section_.refuse("mode", "expected int8 or mixed, found " + mode);
    return check_cut(cost);
  }

 private:
  NodeId node_of(const JsonFields& fields, const Json& name) const {
    const std::string* text = json_text(&name);
    const NodeId id = text == nullptr ? NodeId{} : graph_.find_node(*text);
    if (!id.valid()) fields.refuse("nodes", "expected names of nodes of the document");
    return id;
  }

  std::string precision_of(NodeId id) const {
    const std::string* text = json_text(find_member(graph_.node(id).json, "precision"));
    return text == nullptr ? "none" : *text;
  }

  /// Every op was chosen a precision for, so that it counts, but for what precisions insert.
  void check_nodes() const {
    for (const NodeId id : ids_of<NodeId>(graph_.nodes())) {
      const Node& node = graph_.node(id);
      if (unit_of_.contains(id)) continue;
      if (find_member(node.json, "precision") != nullptr) {
        certificate_.refuse("units", "node '" + node.name + "' has a precision but is in no unit");
      }
      const bool is_inserted = !node.op_type.starts_with(kAtenPrefix) || is_of_parameters(node) ||
                               multiplies_by_factors(node);
      if (!is_inserted) certificate_.refuse("units", "node '" + node.name + "' is in no unit");
    }
  }

  bool is_of_parameters(const Node& node) const {
    return std::all_of(node.outputs.begin(), node.outputs.end(),
                       [&](TensorId id) { return is_parameter_[index_of(id)] != 0; });
  }

  void add_unit(const JsonFields& fields) {
    Unit unit;
    const auto index = static_cast<std::int32_t>(problem_.units.size());
    for (const Json& name : fields.list("nodes")) {
      unit.members.push_back(node_of(fields, name));
      if (!unit_of_.emplace(unit.members.back(), index).second) {
        fields.refuse("nodes", "a node is listed twice");
      }
    }
    if (unit.members.empty()) fields.refuse("nodes", "expected at least one node");
    const std::string allowed = fields.text("allowed");
    for (const Allowed each : {Allowed::kFloat, Allowed::kInt8, Allowed::kBoth}) {
      if (allowed == allowed_name(each)) unit.allowed = each;
    }
    const std::string precision = precision_of(unit.members.front());
    for (const NodeId member : unit.members) {
      if (precision_of(member) == precision) continue;
      fields.refuse("nodes", "node '" + graph_.node(member).name + "' is not " + precision +
                                 " as '" + graph_.node(unit.members.front()).name + "' is");
    }
    const bool is_int8 = precision == "int8";
    if (allowed != "both" && (allowed == "int8") != is_int8) {
      fields.refuse("allowed", "the op is not what it is allowed to be");
    }
    int8_.push_back(is_int8 ? 1 : 0);
    problem_.units.push_back(std::move(unit));
    costs_.float_cost.push_back(fields.integer("float", 0, kMost));
    costs_.int8_cost.push_back(fields.integer("int8", 0, kMost));
    error_.push_back(fields.has("error") ? fields.integer("error", 0, kMost) : 0);
  }

  void add_value(const JsonFields& fields) {
    const auto units = static_cast<std::int64_t>(problem_.units.size());
    Value value;
    value.tensor = graph_.find_tensor(fields.text("tensor"));
    const auto index = static_cast<std::int32_t>(problem_.values.size());
    if (!value.tensor.valid() || !value_of_.emplace(value.tensor, index).second) {
      fields.refuse("tensor", "expected a tensor of the document that is listed once");
    }
    const TensorInfo& tensor = graph_.tensor(value.tensor);
    if (tensor.kind == TensorKind::kResult) {
      const auto producer = unit_of_.find(tensor.producer);
      if (producer == unit_of_.end()) fields.refuse("tensor", "its producer is in no unit");
      value.producer = producer->second;
    }
    for (const Json& item : fields.list("readers")) {
      const std::int64_t reader = json_integer(&item).value_or(-1);
      const bool ascends = value.readers.empty() || reader > value.readers.back();
      if (reader < 0 || reader >= units || !ascends) {
        fields.refuse("readers", "expected numbers of units in ascending order");
      }
      value.readers.push_back(static_cast<std::int32_t>(reader));
    }
    value.is_output = outputs_.contains(value.tensor);
    costs_.to_int8.push_back(fields.integer("to_int8", 0, kMost));
    costs_.to_float.push_back(fields.integer("to_float", 0, kMost));
    problem_.values.push_back(std::move(value));
  }

  /// So that no product of a price and a sum overflows.
  void check_sums() const {
    for (const auto* list :
         {&costs_.float_cost, &costs_.int8_cost, &costs_.to_int8, &costs_.to_float, &error_}) {
      std::int64_t sum = 0;
      for (const std::int64_t each : *list) {
        sum += each;
        if (sum > kMost) certificate_.refuse("", "costs or errors add up to more than 2^28");
      }
    }
  }

  bool multiplies_by_factors(const Node& node) const {
    return node.op_type == "aten.mul.Tensor" && node.inputs.size() == 2 &&
           is_parameter_[index_of(node.inputs[1])] != 0;
  }

  /// The tensor that a pair of nodes in front of an operand was made for, and perhaps a
  /// multiplication by factors in front of the pair.
  TensorId behind_pairs(TensorId id) const {
    for (int i = 0; i < 3; ++i) {
      const TensorInfo& tensor = graph_.tensor(id);
      if (tensor.kind != TensorKind::kResult) return id;
      const Node& node = graph_.node(tensor.producer);
      const bool is_pair = (i < 2 ? is_quantization(node.op_type) || is_dequantization(node.op_type)
                                  : multiplies_by_factors(node)) &&
                           !unit_of_.contains(tensor.producer);
      if (!is_pair || node.inputs.empty()) return id;
      id = node.inputs.front();
    }
    return id;
  }

  /// Weights, and what nodes in no unit make of weights alone.
  void find_parameters() {
    is_parameter_.assign(graph_.tensors().size(), 0);
    for (std::size_t i = 0; i < is_parameter_.size(); ++i) {
      is_parameter_[i] = graph_.tensors()[i].kind == TensorKind::kWeight ? 1 : 0;
    }
    for (const NodeId id : ids_of<NodeId>(graph_.nodes())) {
      const Node& node = graph_.node(id);
      const bool is_made_of_them =
          !node.inputs.empty() && !unit_of_.contains(id) &&
          std::all_of(node.inputs.begin(), node.inputs.end(),
                      [&](TensorId input) { return is_parameter_[index_of(input)] != 0; });
      if (!is_made_of_them) continue;
      for (const TensorId output : node.outputs) is_parameter_[index_of(output)] = 1;
    }
  }

  /// Parameters, other types and what stays within a unit are no values; nothing else is left out.
  void check_unlisted(std::size_t unit, const Node& node, TensorId operand, TensorId origin) const {
    const TensorInfo& tensor = graph_.tensor(origin);
    if (is_parameter_[index_of(origin)] != 0) return;
    const auto producer = unit_of_.find(tensor.producer);
    const bool is_inside = tensor.kind == TensorKind::kResult && producer != unit_of_.end() &&
                           index_of(producer->second) == unit;
    const bool needs_integers = int8_[unit] != 0 && tensor.dtype == DType::kFloat32 && !is_inside;
    if (origin == operand && !needs_integers) return;
    certificate_.refuse(
        "values", "node '" + node.name + "' reads '" + tensor.name + "', which is not listed");
  }

  /// The document's ops read what the certificate says, and int8 ops read integers.
  void check_reads() const {
    std::vector<std::set<std::int32_t>> readers(problem_.values.size());
    for (std::size_t u = 0; u < problem_.units.size(); ++u) {
      for (const NodeId member : problem_.units[u].members) {
        for (const TensorId operand : graph_.node(member).inputs) {
          const TensorId origin = behind_pairs(operand);
          const auto value = value_of_.find(origin);
          if (value == value_of_.end()) {
            check_unlisted(u, graph_.node(member), operand, origin);
            continue;
          }
          readers[index_of(value->second)].insert(static_cast<std::int32_t>(u));
          if (int8_[u] != 0 && origin == operand) {
            certificate_.refuse("", "node '" + graph_.node(member).name + "' is int8 but reads '" +
                                        graph_.tensor(operand).name + "' in float");
          }
        }
      }
    }
    for (std::size_t v = 0; v < readers.size(); ++v) {
      const Value& value = problem_.values[v];
      if (std::equal(readers[v].begin(), readers[v].end(), value.readers.begin(),
                     value.readers.end())) {
        continue;
      }
      certificate_.refuse("values", "other ops read '" + graph_.tensor(value.tensor).name +
                                        "' than the certificate says");
    }
  }

  std::string check_cut(std::int64_t cost) const {
    const PrecisionCosts counts = conversion_counts(problem_);
    if (costs_.float_cost != counts.float_cost || costs_.int8_cost != counts.int8_cost ||
        costs_.to_int8 != counts.to_int8 || costs_.to_float != counts.to_float) {
      certificate_.refuse("", "without times every conversion costs 1, and ops nothing");
    }
    const std::int64_t least = solve_min_cut(precision_network(problem_, costs_)).value;
    if (least != cost) {
      certificate_.refuse("cost", "the fewest conversions are " + std::to_string(least));
    }
    return "conversions: " + std::to_string(cost) + ", the fewest\n";
  }

  std::string check_bound(std::int64_t cost) const {
    const std::int64_t price = certificate_.integer("price", 0, kMost);
    const std::int64_t divisor = certificate_.integer("divisor", 1, kMost);
    const std::int64_t budget = certificate_.integer("budget", 0, kMost);
    std::int64_t error = 0;
    for (std::size_t u = 0; u < int8_.size(); ++u) error += int8_[u] != 0 ? error_[u] : 0;
    if (error > budget) {
      certificate_.refuse("budget", "the errors add up to " + std::to_string(error));
    }
    const BudgetProblem problem{&problem_, &costs_, error_, budget};
    const std::int64_t bound = dual_bound(problem, price, divisor);
    if (bound != certificate_.integer("bound", -kMost, kMost)) {
      certificate_.refuse("bound", "the price proves " + std::to_string(bound));
    }
    return "cost: " + std::to_string(cost) + ", no choice within the budget costs less than " +
           std::to_string(bound) + "\nerrors: " + std::to_string(error) + " of " +
           std::to_string(budget) + "\n";
  }

  const Graph& graph_;
  const JsonFields& section_;
  JsonFields certificate_;
  PrecisionProblem problem_;
  PrecisionCosts costs_;
  std::vector<std::int64_t> error_;
  std::vector<char> int8_;
  std::set<TensorId> outputs_;
  std::vector<char> is_parameter_;  // by tensor
  std::map<NodeId, std::int32_t> unit_of_;
  std::map<TensorId, std::int32_t> value_of_;
};

}  // namespace

Json certificate_json(Json head, const Graph& graph, const PrecisionProblem& problem,
                      const PrecisionCosts& costs, const MixedChoice* mixed) {
  if (mixed != nullptr) {
    const BudgetSolution& solution = mixed->solution;
    head = {{"cost", solution.cost},       {"error", solution.error},
            {"budget", mixed->budget},     {"price", solution.price},
            {"divisor", solution.divisor}, {"bound", solution.root_bound},
            {"tick_us", mixed->tick_us},   {"error_step", mixed->error_step}};
  }
  Json units = Json::array();
  for (std::size_t u = 0; u < problem.units.size(); ++u) {
    const Unit& unit = problem.units[u];
    Json nodes = Json::array();
    for (const NodeId id : unit.members) nodes.push_back(graph.node(id).name);
    Json item = {{"nodes", std::move(nodes)},
                 {"allowed", allowed_name(unit.allowed)},
                 {"float", costs.float_cost[u]},
                 {"int8", costs.int8_cost[u]}};
    if (mixed != nullptr) item["error"] = mixed->error[u];
    units.push_back(std::move(item));
  }
  set_member(head, "units", std::move(units));
  Json values = Json::array();
  for (std::size_t v = 0; v < problem.values.size(); ++v) {
    const Value& value = problem.values[v];
    values.push_back({{"tensor", graph.tensor(value.tensor).name},
                      {"readers", value.readers},
                      {"to_int8", costs.to_int8[v]},
                      {"to_float", costs.to_float[v]}});
  }
  set_member(head, "values", std::move(values));
  return head;
}

}  // namespace quantize

std::string verify_precisions(const Graph& graph) {
  const Json* section = graph.npu_member("precision");
  if (section == nullptr) {
    throw Error(
        ErrorCode::kInvalidGraph,
        "the document has no certificate: no npu.precision, which npu-align --quantize writes, "
        "and no npu.padding, which --bucket writes",
        {.file = graph.file});
  }
  const JsonFields fields(*section, graph.file, "/npu/precision", quantize::kStyle);
  return quantize::CertificateCheck(graph, fields).run();
}

}  // namespace npu
