// SPDX-License-Identifier: Apache-2.0
// Chooses between the two layouts of a device for every op, and inserts conversions where ops
// disagree.
//
// Input:  a verified document: partitioned, tagged or bare.
// Output: the same with `align_mode` on every op of a device that has an `align` section,
//         npu.channel_norm nodes, npu.layout, and npu.partition and npu.fusion brought up to date.
// The steps stand in align/: align_problem reads the rules, align_solve chooses, align_rewrite
// edits, align_report explains, verify_alignment checks the result by the document alone.
// Everything but the minimum cut is linear but for sorting; the cut is near linear on these
// networks (npu/flow/min_cut.hpp).
#include <stdexcept>
#include <unordered_map>

#include "npu/ops/op_catalogue.hpp"
#include "passes/align/align_problem.hpp"

namespace npu {
namespace {

using align::Conversion;
using align::Problem;

std::size_t at(std::int32_t index) { return static_cast<std::size_t>(index); }

void check_choice(std::string_view option, const std::string& value,
                  std::initializer_list<std::string_view> choices) {
  std::string names;
  for (const std::string_view choice : choices) {
    if (value == choice) return;
    names += (names.empty() ? "" : ", ") + std::string(choice);
  }
  throw Error(ErrorCode::kUsage, std::string(option) + " " + value + ": expected one of " + names);
}

// Groups that an earlier run has split stay split, so their report stays, too.
std::vector<AlignSplit> earlier_splits(const Graph& graph) {
  std::vector<AlignSplit> splits;
  const Json* layout = graph.npu_member("layout");
  const Json* list = layout == nullptr ? nullptr : find_member(*layout, "split_groups");
  if (list == nullptr || !list->is_array()) return splits;
  const auto text = [](const Json& json, std::string_view key) {
    const Json* member = find_member(json, key);
    return member != nullptr && member->is_string() ? member->get<std::string>() : std::string();
  };
  for (const Json& json : *list) {
    const Json* groups = find_member(json, "groups");
    if (groups == nullptr || !groups->is_array() || groups->empty()) continue;
    AlignSplit split{.group = 0,
                     .groups = {},
                     .aligned = text(json, "align"),
                     .aligned_rule = text(json, "align_rule"),
                     .unaligned = text(json, "nalign"),
                     .unaligned_rule = text(json, "nalign_rule")};
    for (const Json& id : *groups) {
      if (id.is_number_integer()) split.groups.push_back(id.get<std::int64_t>());
    }
    if (split.groups.empty()) continue;
    split.group = split.groups.front();
    splits.push_back(std::move(split));
  }
  return splits;
}

// A channel_norm of the document that no reader wants with these modes.
std::vector<align::Removal> unwanted(const Graph& graph, const Problem& problem,
                                     const std::vector<AlignMode>& modes,
                                     std::vector<AlignRemoval>& removed) {
  std::vector<align::Removal> removals;
  for (const align::Value& value : problem.values) {
    if (value.producer < 0 || value.leaves || value.uses.empty()) continue;
    const align::Unit& unit = problem.units[at(value.producer)];
    if (!unit.is_channel_norm) continue;
    bool wanted = graph.tensor(value.tensor).consumers.size() == 0;
    for (const align::Use& use : value.uses) {
      wanted = wanted || problem.required(use, modes) == modes[at(value.producer)];
    }
    if (wanted) continue;
    const Node& node = graph.node(unit.members.front());
    removals.push_back({unit.members.front(), node.inputs.front(), false});
    removed.push_back(
        {graph.tensor(node.inputs.front()).name, align::converts_to_nalign(node), "cancelled"});
  }
  return removals;
}

// Weights and biases have a layout of the backend's own.
bool takes_parameters(const Node& node) {
  switch (align_class(node.op_type)) {
    case AlignClass::kGemm:
    case AlignClass::kConv:
    case AlignClass::kNormalization:
      return true;
    default:
      return node.op_type.find("batch_norm") != std::string::npos ||
             node.op_type.find("embedding") != std::string::npos;
  }
}

// What the modes ask for and nobody has to pay: constants are converted when they are packed, the
// others are the same bytes in both layouts.
void find_free_conversions(const Graph& graph, const Problem& problem,
                           const std::vector<AlignMode>& modes,
                           std::vector<AlignRemoval>& removed) {
  for (const align::Value& value : problem.values) {
    if (value.can_differ || value.why_not == "dtype") continue;  // such a tensor has one form
    const AlignMode produced = value.producer < 0 ? AlignMode::kNalign : modes[at(value.producer)];
    bool differs = value.leaves && produced == AlignMode::kAlign;
    for (const align::Use& use : value.uses) {
      differs = differs || problem.required(use, modes) != produced;
    }
    if (!differs) continue;
    removed.push_back({graph.tensor(value.tensor).name, produced == AlignMode::kAlign,
                       std::string(value.why_not)});
  }
  std::vector<char> seen(graph.tensors().size(), 0);
  for (std::size_t n = 0; n < graph.nodes().size(); ++n) {
    const std::int32_t unit = problem.unit_of[n];
    if (unit < 0 || modes[at(unit)] != AlignMode::kAlign) continue;
    const Node& node = graph.nodes()[n];
    if (takes_parameters(node)) continue;
    const AlignRules& rules = problem.regions[at(problem.region_of[n])].rules;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const TensorId input = node.inputs[i];
      const TensorInfo& tensor = graph.tensor(input);
      if (tensor.kind != TensorKind::kWeight || seen[at(input.value)] != 0 ||
          !align::same_in_both(tensor, rules).empty() ||
          align::is_broadcast_operand(graph, node, i)) {
        continue;
      }
      seen[at(input.value)] = 1;
      removed.push_back({tensor.name, false, "constant"});
    }
  }
}

// Conversions of the new document in node order, with their readers.
void complete_conversions(const Graph& graph, const std::vector<AlignConversion>& before,
                          AlignResult& result) {
  std::unordered_map<std::string, const AlignConversion*> known;
  for (const AlignConversion& conversion : before) known.emplace(conversion.node, &conversion);
  std::vector<char> is_output(graph.tensors().size(), 0);
  for (const TensorId output : graph.graph_outputs()) is_output[at(output.value)] = 1;
  std::vector<AlignConversion> ordered;
  for (const Node& node : graph.nodes()) {
    const auto found = known.find(node.name);
    if (node.op_type != kChannelNorm || found == known.end()) continue;
    AlignConversion conversion = *found->second;
    const TensorId made = node.outputs.front();
    for (const NodeId user : graph.tensor(made).consumers) {
      conversion.users.push_back(graph.node(user).name);
    }
    if (is_output[at(made.value)] != 0) conversion.users.emplace_back("graph output");
    ordered.push_back(std::move(conversion));
  }
  result.conversions = std::move(ordered);
}

}  // namespace

std::string_view align_mode_name(AlignMode mode) noexcept {
  switch (mode) {
    case AlignMode::kAlign:
      return "ALIGN";
    case AlignMode::kNalign:
      return "NALIGN";
    case AlignMode::kBoth:
      return "BOTH";
    case AlignMode::kUnknown:
      break;
  }
  return "UNKNOWN";
}

AlignResult align_layout(Graph& graph, const AlignOptions& options, Diagnostics& diagnostics) {
  check_choice("--algorithm", options.algorithm, {"optimal", "greedy"});
  check_choice("--weight", options.weight, {"count", "bytes", "time"});
  AlignResult result;
  result.options = options;
  result.splits = earlier_splits(graph);
  const Json* old_layout = graph.npu_member("layout");
  const Json before = old_layout == nullptr ? Json() : *old_layout;
  align::remove_channel_norms(graph, align::own_channel_norms(graph));

  Problem problem;
  std::vector<AlignMode> modes;
  Diagnostics notes;
  for (bool settled = false; !settled;) {
    notes = {};
    problem = align::build_problem(graph, options, notes);
    std::vector<align::Removal> idle = align::idle_channel_norms(graph, problem, result.removed);
    if (idle.empty()) {
      const std::vector<AlignMode> greedy = align::solve_greedy(graph, problem);
      result.greedy = costs_of(problem, greedy, conversions_of(problem, greedy));
      modes = options.algorithm == "greedy"
                  ? greedy
                  : solve_optimal(problem, options, result.certificate.emplace());
      idle = unwanted(graph, problem, modes, result.removed);
    }
    settled = idle.empty();
    align::remove_channel_norms(graph, idle);
  }
  for (const Diagnostic& note : notes.entries()) diagnostics.warning(note.location, note.text);

  const std::vector<Conversion> conversions = conversions_of(problem, modes);
  result.costs = costs_of(problem, modes, conversions);
  find_free_conversions(graph, problem, modes, result.removed);
  result.splits.insert(result.splits.end(), problem.splits.begin(), problem.splits.end());
  for (std::size_t n = 0; n < graph.nodes().size(); ++n) {
    const std::int32_t unit = problem.unit_of[n];
    if (unit < 0) continue;
    result.nodes.push_back({graph.nodes()[n].name, modes[at(unit)], problem.node_modes[n].mode,
                            problem.node_modes[n].rule});
  }
  std::vector<AlignConversion> existing;
  for (std::size_t v = 0; v < problem.values.size(); ++v) {
    const align::Value& value = problem.values[v];
    if (value.producer < 0 || !problem.units[at(value.producer)].is_channel_norm) continue;
    const Node& node = graph.node(problem.units[at(value.producer)].members.front());
    const bool to_nalign = align::converts_to_nalign(node);
    const std::string& in = graph.tensor(node.inputs.front()).name;
    const std::string& out = graph.tensor(value.tensor).name;
    const align::Region& region = problem.regions[at(value.region)];
    existing.push_back({.tensor = to_nalign ? out : in,
                        .aligned = to_nalign ? in : out,
                        .node = node.name,
                        .to_nalign = to_nalign,
                        .existed = true,
                        .bytes = to_nalign ? value.plain_bytes : value.aligned_bytes,
                        .predicted_us = to_nalign ? value.to_nalign_us : value.to_align_us,
                        .device = region.device,
                        .partition = region.partition,
                        .users = {},
                        .from = "document",
                        .from_rule = "channel_norm",
                        .to = node.name,
                        .to_rule = "channel_norm"});
  }
  const auto origins = align::origins_of(graph, problem, modes, conversions);
  align::rewrite_graph(graph, problem, modes, conversions, result);
  for (std::size_t c = 0; c < conversions.size(); ++c) {
    result.conversions[c].from = origins[c].first.name;
    result.conversions[c].from_rule = origins[c].first.rule;
    result.conversions[c].to = origins[c].second.name;
    result.conversions[c].to_rule = origins[c].second.rule;
  }
  std::vector<AlignConversion> all = std::move(result.conversions);
  all.insert(all.end(), existing.begin(), existing.end());
  complete_conversions(graph, all, result);

  Json layout = align::layout_json(result, problem);
  result.changed = before != layout;
  graph.set_npu_member("layout", std::move(layout));
  Diagnostics faults;
  verify_alignment(graph, faults);
  if (faults.has_errors()) {
    throw std::logic_error("the alignment does not hold: " +
                           format_diagnostic(faults.entries().front()));
  }
  return result;
}

}  // namespace npu
