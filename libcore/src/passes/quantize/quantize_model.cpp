// SPDX-License-Identifier: Apache-2.0
// Gives every op of a model a precision and writes it as quantize and dequantize nodes.
//
// Input:  a verified document, bare or tagged, and what its tensors held in calibration.
// Output: the same with `precision` on every op that computes float32, pairs of
//         quantized_decomposed nodes, scales of weights in `constants`, and npu.precision.
// The steps: precision_problem finds what can be int8, precision_solve chooses by a minimum cut,
// precision_rewrite chooses scales and inserts the nodes. Nearly linear, unless times and errors
// have to be weighed, which is a search (precision_budget); with entropy and mse the searches for
// ranges dominate, with some milliseconds for a tensor.
#include <algorithm>
#include <stdexcept>
#include <utility>

#include "cost/measured_cost.hpp"
#include "cost/node_table.hpp"
#include "npu/cost/cost_model.hpp"
#include "npu/passes/tag.hpp"
#include "npu/support/ids.hpp"
#include "npu/support/log.hpp"
#include "npu/target/target.hpp"
#include "ops/op_catalogue.hpp"
#include "passes/quantize/precision_certificate.hpp"
#include "passes/quantize/precision_mixed.hpp"
#include "passes/quantize/precision_problem.hpp"
#include "passes/quantize/precision_rewrite.hpp"
#include "passes/quantize/precision_solve.hpp"
#include "passes/quantize/quantize.hpp"
#include "target/quantization_rules.hpp"

namespace npu {
namespace {

using quantize::PrecisionProblem;
using quantize::Unit;
using quantize::UnitKind;
using quantize::Value;

constexpr std::int64_t kWholeBytes = 127;  // the greatest weight that is no integer of fewer bits

void check_stage(const Graph& graph) {
  const auto refuse = [&](const std::string& text) {
    throw Error(ErrorCode::kInvalidGraph, text, {.file = graph.file});
  };
  if (graph.npu_member("precision") != nullptr) {
    refuse("the document is quantized already; quantize the one that it was made from");
  }
  const bool has_groups =
      graph.npu_member("fusion") != nullptr || graph.npu_member("partition") != nullptr ||
      std::any_of(graph.nodes().begin(), graph.nodes().end(), [](const Node& node) {
        return node.fusion_group.has_value() || node.partition.has_value();
      });
  if (has_groups) {
    refuse("the document is fused or partitioned; quantize it before npu-fuse and npu-partition");
  }
}

void check_model(const Graph& graph, const TensorRanges& ranges) {
  const std::string digest = model_digest(graph);
  if (digest == ranges.model_digest) return;
  const auto unknown = std::find_if(
      ranges.tensors.begin(), ranges.tensors.end(),
      [&](const TensorRange& range) { return !graph.find_tensor(range.name).valid(); });
  throw Error(ErrorCode::kInvalidGraph,
              "the ranges were recorded with another model ('" + ranges.model + "', digest " +
                  ranges.model_digest + "); this one is '" + graph.model_name() + "', digest " +
                  digest +
                  (unknown == ranges.tensors.end() ? std::string()
                                                   : ", without tensor '" + unknown->name + "'") +
                  ": record them with npu-profile --calibrate",
              {.file = ranges.file, .pointer = "/model_digest"});
}

class Quantizer {
 public:
  Quantizer(Graph& graph, const TensorRanges& ranges, const QuantizeOptions& options,
            Diagnostics& diagnostics)
      : graph_(graph), ranges_(ranges), diagnostics_(diagnostics) {
    result_.options = options;
  }

  QuantizeResult run() {
    const LogTimer timer(LogModule::kPass);
    check_stage(graph_);
    check_model(graph_, ranges_);
    read_target();
    problem_ = quantize::build_precision_problem(graph_, ranges_);
    keep_activations_in_float();
    if (result_.options.full) forbid_float();
    for (Value& value : problem_.values) {
      value.leaves_as_integers = rules_.integer_io && value.is_output;
    }
    solve();
    name_nodes();
    check_full();
    list_conversions();
    quantize::PrecisionChoice choice{int8_, no_smoothing(problem_), result_.options.correct_biases};
    if (result_.options.smooth) choice.smoothing = plan_smoothing(graph_, problem_, int8_, ranges_);
    const std::vector<QuantParams> params =
        choose_params(graph_, problem_, choice, ranges_, result_.options.calibration, rules_);
    list_tensors(params);
    list_smoothed(choice.smoothing);
    result_.corrected = insert_conversions(graph_, problem_, choice, params, ranges_, rules_);
    write_section();
    if (is_tagged_) tag_ops(graph_, *target_, {.keep_tags = true}, diagnostics_);
    timer.done([&] {
      return "quantize: " + std::to_string(result_.int8_ops) + " ops int8, " +
             std::to_string(result_.float_ops) + " float, " +
             std::to_string(result_.conversions.size()) + " conversions";
    });
    return std::move(result_);
  }

 private:
  /// The rules are those of the first device that has some.
  void read_target() {
    is_tagged_ = graph_.npu_member("target") != nullptr;
    if (is_tagged_) {
      target_ = graph_target(graph_);
    } else if (!result_.options.target.empty()) {
      target_ = load_target(result_.options.target);
    } else if (result_.options.max_error) {
      target_ = load_target("host");
    }
    if (!target_) return;
    rules_ = target_rules(*target_);
    result_.weights_reason = rules_.reason;
    if (!rules_.float_ops) result_.options.full = true;
  }

  /// Products of two activations have no operand of 7 bits.
  void keep_activations_in_float() {
    if (rules_.weights.high >= kWholeBytes) return;
    for (Unit& unit : problem_.units) {
      if (!multiplies_activations(unit.kind) || unit.allowed == quantize::Allowed::kFloat) continue;
      unit.allowed = quantize::Allowed::kFloat;
      unit.reason = "products of two activations have more than 7 bits";
    }
  }

  /// Of ops of the device that can be int8, so that --full lists those alone that cannot.
  void forbid_float() {
    for (Unit& unit : problem_.units) {
      if (unit.allowed != quantize::Allowed::kBoth || is_elsewhere(unit.members.front())) continue;
      unit.allowed = quantize::Allowed::kInt8;
      unit.reason = "all of the device is to be int8";
    }
  }

  bool is_elsewhere(NodeId id) const {
    const std::optional<std::string>& device = graph_.node(id).device;
    return !rules_.device.empty() && device.has_value() && *device != rules_.device;
  }

  void solve() {
    if (result_.options.max_error) return solve_mixed();
    const quantize::PrecisionCosts costs = conversion_counts(problem_);
    const CutNetwork network = precision_network(problem_, costs);
    const MinCut cut = solve_min_cut(network);
    if (cut.value == kInfiniteCapacity) throw std::logic_error("no choice of precisions");
    int8_ = int8_units(problem_, cut);
    move_conversions_up();
    keep_functions_in_float(costs, cut.value);
    if (cost_of(problem_, costs, int8_) != cut.value) {
      throw std::logic_error("the choice of precisions does not cost what the cut does");
    }
    result_.cut = cut.value;
    for (const std::int64_t flow : cut.source_flow) result_.flow += flow;
    result_.vertices = static_cast<std::int64_t>(network.vertex_count());
    result_.arcs = static_cast<std::int64_t>(network.arcs().size());
    Json head = {{"cost", result_.cut},
                 {"flow", result_.flow},
                 {"vertices", result_.vertices},
                 {"arcs", result_.arcs}};
    certificate_ = certificate_json(std::move(head), graph_, problem_, costs, nullptr);
  }

  void solve_mixed() {
    const QuantizeOptions& options = result_.options;
    std::optional<MeasuredCost> measured;
    if (options.profile) measured.emplace(*options.profile, graph_, *target_);
    const CostModel& cost = measured ? static_cast<const CostModel&>(*measured) : roofline_cost();
    const quantize::MixedChoice choice =
        choose_mixed(graph_, problem_, ranges_, *target_, cost,
                     options.profile ? &*options.profile : nullptr, *options.max_error);
    int8_ = choice.solution.int8;
    result_.predicted_us = static_cast<double>(choice.solution.cost) * choice.tick_us;
    result_.lower_bound_us = static_cast<double>(choice.solution.lower_bound) * choice.tick_us;
    result_.float_us = choice.float_us;
    result_.predicted_error = static_cast<double>(choice.solution.error) * choice.error_step;
    certificate_ = certificate_json({}, graph_, problem_, choice.costs, &choice);
  }

  /// A view, a pool or a function whose readers are all float may as well be float if that costs
  /// nothing: its operand then leaves the integers, and the product in front of it writes floats.
  void move_conversions_up() {
    for (std::size_t u = problem_.units.size(); u-- > 0;) {
      const Unit& unit = problem_.units[u];
      if (int8_[u] == 0 || !gives_integers(unit.kind) || unit.allowed != quantize::Allowed::kBoth) {
        continue;
      }
      const Node& node = graph_.node(unit.members.front());
      const std::vector<std::size_t> operands = integer_operands(graph_, unit);
      const Value& result = value_of(node.outputs.front());
      const auto is_read_as_int8 = [&](std::int32_t reader) {
        return int8_[index_of(reader)] != 0;
      };
      if (operands.size() != 1 ||
          std::any_of(result.readers.begin(), result.readers.end(), is_read_as_int8)) {
        continue;
      }
      const Value& operand = value_of(node.inputs[operands.front()]);
      const bool is_made_as_int8 = operand.producer >= 0 && int8_[index_of(operand.producer)] != 0;
      const bool was_converted = changes_of(operand, int8_).to_float;
      const bool result_was_converted = changes_of(result, int8_).to_float;
      if (is_made_as_int8 && !was_converted && result_was_converted) {
        int8_[u] = 0;
        problem_.units[u].reason = "read in float";
      }
    }
  }

  /// A function that is as well float rounds its result alone, not its operand.
  void keep_functions_in_float(const quantize::PrecisionCosts& costs, std::int64_t least) {
    for (std::size_t u = 0; u < problem_.units.size(); ++u) {
      Unit& unit = problem_.units[u];
      if (int8_[u] == 0 || unit.kind != UnitKind::kFunction ||
          unit.allowed != quantize::Allowed::kBoth) {
        continue;
      }
      int8_[u] = 0;
      if (cost_of(problem_, costs, int8_) == least) {
        unit.reason = "int8 needs no fewer conversions";
      } else {
        int8_[u] = 1;
      }
    }
  }

  const Value& value_of(TensorId id) const {
    return problem_.values[index_of(problem_.value_of[index_of(id)])];
  }

  void name_nodes() {
    double int8_flops = 0;
    double flops = 0;
    for (const NodeId id : ids_of<NodeId>(graph_.nodes())) {
      const std::size_t u = index_of(problem_.unit_of[index_of(id)]);
      const Unit& unit = problem_.units[u];
      const Node& node = graph_.node(id);
      const OpInfo* op = find_op(node.op_type);
      // Attention and recurrent layers count as products; the latter stay float.
      if (op != nullptr && (op->kind == OpKind::kAnchor || op->kind == OpKind::kOpaque)) {
        const double work = node_flops(graph_, node);
        flops += work;
        if (int8_[u] != 0) int8_flops += work;
      }
      QuantizedNode entry{.name = node.name, .op_type = node.op_type, .reason = unit.reason};
      if (int8_[u] != 0) {
        entry.precision = Precision::kInt8;
        if (id != unit.members.front()) {
          entry.reason = "one kernel with '" + graph_.node(unit.members.front()).name + "'";
        }
        ++result_.int8_ops;
      } else if (unit.has_float_result) {
        entry.precision = Precision::kFloat;
        ++result_.float_ops;
      }
      result_.nodes.push_back(std::move(entry));
    }
    if (flops > 0) result_.int8_macs = int8_flops / flops;
  }

  /// Why a node keeps its device from being int8; empty if it does not.
  std::string reason_of_float(NodeId id) const {
    const QuantizedNode& node = result_.nodes[index_of(id)];
    if (node.precision == Precision::kFloat) return node.reason;
    if (node.precision == Precision::kInt8) return {};
    for (const TensorId operand : graph_.node(id).inputs) {
      const std::int32_t value = problem_.value_of[index_of(operand)];
      if (value >= 0) return "reads '" + graph_.tensor(operand).name + "' in float32";
    }
    return {};
  }

  void check_full() {
    if (!result_.options.full) return;
    std::int64_t count = 0;
    for (const NodeId id : ids_of<NodeId>(graph_.nodes())) {
      const QuantizedNode& node = result_.nodes[index_of(id)];
      if (is_elsewhere(id)) continue;
      const std::string reason = reason_of_float(id);
      if (reason.empty()) continue;
      ++count;
      diagnostics_.error(graph_.location(id), "node '" + node.name + "' cannot be int8: " + reason);
    }
    if (count == 0) return;
    throw Error(ErrorCode::kInfeasible,
                std::to_string(count) + " ops keep " +
                    (rules_.device.empty() ? "the model" : "device '" + rules_.device + "'") +
                    " from being int8 as a whole; leave out --full to run them in float",
                {.file = graph_.file});
  }

  std::string maker_of(const Value& value) const {
    return value.producer < 0 ? "graph input"
                              : graph_.node(graph_.tensor(value.tensor).producer).name;
  }

  std::string reader_of(const Value& value, bool wants_int8) const {
    for (const std::int32_t reader : value.readers) {
      if ((int8_[index_of(reader)] != 0) == wants_int8) {
        return graph_.node(problem_.units[index_of(reader)].members.front()).name;
      }
    }
    return "graph output";
  }

  void list_conversions() {
    for (const Value& value : problem_.values) {
      const quantize::Changes changes = changes_of(value, int8_);
      for (const bool to_int8 : {true, false}) {
        if (!(to_int8 ? changes.to_int8 : changes.to_float)) continue;
        result_.conversions.push_back({.tensor = graph_.tensor(value.tensor).name,
                                       .to_int8 = to_int8,
                                       .from = maker_of(value),
                                       .to = reader_of(value, to_int8)});
      }
    }
  }

  void list_tensors(const std::vector<QuantParams>& params) {
    const std::vector<char> has_integers = integer_values(problem_, int8_);
    for (std::size_t v = 0; v < params.size(); ++v) {
      if (has_integers[v] == 0) continue;
      result_.tensors.push_back({graph_.tensor(problem_.values[v].tensor).name, params[v]});
    }
  }

  void list_smoothed(const quantize::Smoothing& smoothing) {
    for (const quantize::SmoothedValue& each : smoothing.values) {
      result_.smoothed.push_back(
          {.tensor = each.range->name,
           .into = each.into.valid() ? graph_.node(each.into).name : std::string(),
           .gain = each.range->gain});
    }
  }

  void write_section() {
    Json section = {{"mode", result_.options.max_error ? "mixed" : "int8"},
                    {"samples", ranges_.samples},
                    {"calibration", result_.options.calibration.text()},
                    {"activations", rules_.activations_text},
                    {"weights", rules_.weights_text}};
    Json nodes = Json::array();
    for (const QuantizedNode& node : result_.nodes) {
      nodes.push_back({{"name", node.name},
                       {"precision", precision_name(node.precision)},
                       {"reason", node.reason}});
    }
    set_member(section, "nodes", std::move(nodes));
    Json tensors = Json::array();
    for (const QuantizedTensor& tensor : result_.tensors) {
      tensors.push_back({{"name", tensor.tensor},
                         {"scale", tensor.params.scale},
                         {"zero_point", tensor.params.zero_point}});
    }
    set_member(section, "tensors", std::move(tensors));
    Json conversions = Json::array();
    for (const PrecisionConversion& conversion : result_.conversions) {
      conversions.push_back({{"tensor", conversion.tensor},
                             {"to", conversion.to_int8 ? "int8" : "float"},
                             {"from_node", conversion.from},
                             {"to_node", conversion.to}});
    }
    set_member(section, "conversions", std::move(conversions));
    if (!result_.smoothed.empty()) {
      Json smoothed = Json::array();
      for (const SmoothedTensor& each : result_.smoothed) {
        Json item = {{"tensor", each.tensor}, {"gain", each.gain}};
        if (!each.into.empty()) item["into"] = each.into;
        smoothed.push_back(std::move(item));
      }
      set_member(section, "smoothed", std::move(smoothed));
    }
    if (!result_.corrected.empty()) set_member(section, "corrected_biases", result_.corrected);
    if (result_.options.max_error) {
      set_member(section, "max_error", *result_.options.max_error);
      set_member(section, "predicted_error", result_.predicted_error);
      set_member(section, "predicted_us", result_.predicted_us);
      set_member(section, "lower_bound_us", result_.lower_bound_us);
      set_member(section, "float_us", result_.float_us);
    }
    set_member(section, "certificate", std::move(certificate_));
    graph_.set_npu_member("precision", std::move(section));
  }

  Graph& graph_;
  const TensorRanges& ranges_;
  Diagnostics& diagnostics_;
  QuantizeResult result_;
  std::optional<Target> target_;  // the document's, or one that was asked for
  bool is_tagged_ = false;
  QuantizationRules rules_;
  PrecisionProblem problem_;
  std::vector<char> int8_;  // by unit
  Json certificate_;
};

}  // namespace

std::string_view precision_name(Precision precision) noexcept {
  switch (precision) {
    case Precision::kFloat:
      return "float";
    case Precision::kInt8:
      return "int8";
    case Precision::kNone:
      break;
  }
  return "none";
}

QuantizeResult quantize_model(Graph& graph, const TensorRanges& ranges,
                              const QuantizeOptions& options, Diagnostics& diagnostics) {
  return Quantizer(graph, ranges, options, diagnostics).run();
}

}  // namespace npu
