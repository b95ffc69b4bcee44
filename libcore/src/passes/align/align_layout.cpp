// SPDX-License-Identifier: Apache-2.0
// Chooses between the two layouts of a device for every op, and inserts conversions where ops
// disagree.
//
// Input:  a verified document: partitioned, tagged or bare.
// Output: the same with `align_mode` on every op of a device that has an `align` section,
//         npu.channel_norm nodes, npu.layout, and npu.partition and npu.fusion brought up to date.
// The steps are in align/: align_problem reads the rules, align_solve chooses, channel_norms
// removes conversions and align_rewrite inserts them, align_origins finds the reasons,
// align_section writes npu.layout, and verify_alignment checks the result from the document alone.
// Everything except the minimum cut is linear apart from sorting; the cut is nearly linear on these
// networks (npu/flow/min_cut.hpp).
#include <stdexcept>
#include <unordered_map>

#include "npu/support/log.hpp"
#include "ops/op_catalogue.hpp"
#include "passes/align/align_origins.hpp"
#include "passes/align/align_problem.hpp"
#include "passes/align/align_rewrite.hpp"
#include "passes/align/align_section.hpp"
#include "passes/align/align_solve.hpp"
#include "passes/align/channel_norms.hpp"
#include "support/text.hpp"

namespace npu {
namespace {

using align::AlignLayout;
using align::Conversion;
using align::Problem;

void check_choice(std::string_view option, const std::string& value,
                  std::initializer_list<std::string_view> choices) {
  std::string names;
  for (const std::string_view choice : choices) {
    if (value == choice) return;
    names += (names.empty() ? "" : ", ") + std::string(choice);
  }
  throw Error(ErrorCode::kUsage, std::string(option) + " " + value + ": expected one of " + names);
}

// A channel_norm of the document that no reader wants with these modes.
std::vector<align::Removal> unwanted(const Graph& graph, const Problem& problem,
                                     const std::vector<AlignMode>& modes,
                                     std::vector<AlignRemoval>& removed) {
  std::vector<align::Removal> removals;
  for (const align::Value& value : problem.values) {
    if (value.producer < 0 || value.leaves || value.uses.empty()) continue;
    const align::Unit& unit = problem.units[index_of(value.producer)];
    if (!unit.is_channel_norm) continue;
    bool wanted = graph.tensor(value.tensor).consumers.size() == 0;
    for (const align::Use& use : value.uses) {
      wanted = wanted || problem.required(use, modes) == modes[index_of(value.producer)];
    }
    if (wanted) continue;
    const Node& node = graph.node(unit.members.front());
    removals.push_back({unit.members.front(), node.inputs.front(), false});
    removed.push_back(
        {graph.tensor(node.inputs.front()).name, align::converts_to_nalign(node), "cancelled"});
  }
  return removals;
}

// The backend chooses the layout of weights and biases.
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

// Conversions that the modes call for but that cost nothing: constants are converted when they are
// packed, the others are the same bytes in both layouts.
void find_free_conversions(const Graph& graph, const Problem& problem,
                           const std::vector<AlignMode>& modes,
                           std::vector<AlignRemoval>& removed) {
  for (const align::Value& value : problem.values) {
    if (value.can_differ || value.why_not == "dtype") continue;  // such a tensor has one form
    const AlignMode produced =
        value.producer < 0 ? AlignMode::kNalign : modes[index_of(value.producer)];
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
    if (unit < 0 || modes[index_of(unit)] != AlignMode::kAlign) continue;
    const Node& node = graph.nodes()[n];
    if (takes_parameters(node)) continue;
    const AlignRules& rules = problem.regions[index_of(problem.region_of[n])].rules;
    const align::BroadcastOperands broadcast(graph, node);
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const TensorId input = node.inputs[i];
      const TensorInfo& tensor = graph.tensor(input);
      if (tensor.kind != TensorKind::kWeight || seen[index_of(input.value)] != 0 ||
          !align::same_in_both(tensor, rules).empty() || broadcast.contains(i)) {
        continue;
      }
      seen[index_of(input.value)] = 1;
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
  for (const TensorId output : graph.graph_outputs()) is_output[index_of(output.value)] = 1;
  std::vector<AlignConversion> ordered;
  for (const Node& node : graph.nodes()) {
    const auto found = known.find(node.name);
    if (node.op_type != kChannelNorm || found == known.end()) continue;
    AlignConversion conversion = *found->second;
    const TensorId made = node.outputs.front();
    for (const NodeId user : graph.tensor(made).consumers) {
      conversion.users.push_back(graph.node(user).name);
    }
    if (is_output[index_of(made.value)] != 0) conversion.users.emplace_back("graph output");
    ordered.push_back(std::move(conversion));
  }
  result.conversions = std::move(ordered);
}

// Chooses modes, and removes conversions that do nothing as they are found; each removal changes
// the problem, which is then solved again.
std::vector<AlignMode> settle(Graph& graph, Problem& problem, AlignResult& result,
                              Diagnostics& diagnostics) {
  std::vector<AlignMode> modes;
  Diagnostics notes;
  for (bool settled = false; !settled;) {
    notes = {};
    problem = align::build_problem(graph, result.options, notes);
    std::vector<align::Removal> idle = align::idle_channel_norms(graph, problem, result.removed);
    if (idle.empty()) {
      const std::vector<AlignMode> greedy = align::solve_greedy(graph, problem);
      result.greedy = costs_of(problem, greedy, conversions_of(problem, greedy));
      modes = result.options.algorithm == "greedy"
                  ? greedy
                  : solve_optimal(problem, result.options, result.certificate.emplace());
      idle = unwanted(graph, problem, modes, result.removed);
    }
    settled = idle.empty();
    align::remove_channel_norms(graph, idle);
  }
  for (const Diagnostic& note : notes.entries()) diagnostics.warning(note.location, note.text);
  return modes;
}

// Conversions that the document had and keeps.
std::vector<AlignConversion> existing_conversions(const Graph& graph, const Problem& problem) {
  std::vector<AlignConversion> existing;
  for (const align::Value& value : problem.values) {
    if (value.producer < 0 || !problem.units[index_of(value.producer)].is_channel_norm) continue;
    const Node& node = graph.node(problem.units[index_of(value.producer)].members.front());
    const bool to_nalign = align::converts_to_nalign(node);
    const std::string& in = graph.tensor(node.inputs.front()).name;
    const std::string& out = graph.tensor(value.tensor).name;
    const align::Region& region = problem.regions[index_of(value.region)];
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
  return existing;
}

// A fault here is one of this pass, not of the document.
void check_result(const Graph& graph) {
  Diagnostics faults;
  verify_alignment(graph, faults);
  if (faults.has_errors()) {
    throw std::logic_error("the alignment does not hold: " +
                           format_diagnostic(faults.entries().front()));
  }
}

/// Logs how many conversions there are and, for -vv, the two ops that each is between.
void log_layout(const AlignResult& result, const LogTimer& timer) {
  timer.done([&] {
    return "align, " + result.options.algorithm + " by " + result.options.weight + ": " +
           std::to_string(result.costs.conversions) + " conversions, greedy has " +
           std::to_string(result.greedy.conversions);
  });
  for (const AlignConversion& conversion : result.conversions) {
    log(LogModule::kPass, LogLevel::kDebug, [&] {
      return "align: '" + printable_text(conversion.tensor) +
             (conversion.to_nalign ? "' to NALIGN, between '" : "' to ALIGN, between '") +
             printable_text(conversion.from) + "' (" + conversion.from_rule + ") and '" +
             printable_text(conversion.to) + "' (" + conversion.to_rule + ")";
    });
  }
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
  const LogTimer timer(LogModule::kPass);
  check_choice("--algorithm", options.algorithm, {"optimal", "greedy"});
  check_choice("--weight", options.weight, {"count", "bytes", "time"});
  align::listed_partitions(graph);  // refuses a wrong plan before conversions are taken out by it
  AlignResult result;
  result.options = options;
  const Json* old_layout = graph.npu_member("layout");
  const Json before = old_layout == nullptr ? Json() : *old_layout;
  // Groups that an earlier run has split stay split, so their report stays as well.
  result.splits = AlignLayout::from_json(&before).splits;
  align::remove_channel_norms(graph, align::own_channel_norms(graph));

  Problem problem;
  const std::vector<AlignMode> modes = settle(graph, problem, result, diagnostics);
  const std::vector<Conversion> conversions = conversions_of(problem, modes);
  result.costs = costs_of(problem, modes, conversions);
  find_free_conversions(graph, problem, modes, result.removed);
  result.splits.insert(result.splits.end(), problem.splits.begin(), problem.splits.end());
  for (const NodeId id : ids_of<NodeId>(graph.nodes())) {
    const std::int32_t unit = problem.unit_of[index_of(id)];
    if (unit < 0) continue;
    const align::NodeMode& allowed = problem.node_modes[index_of(id)];
    result.nodes.push_back(
        {graph.node(id).name, modes[index_of(unit)], allowed.mode, allowed.rule});
  }
  const std::vector<AlignConversion> existing = existing_conversions(graph, problem);
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

  const AlignLayout written = align::layout_of(result, problem);
  problem = {};  // the section of a large document takes its memory
  Json layout = written.to_json();
  result.changed = before != layout;
  graph.set_npu_member("layout", std::move(layout));
  check_result(graph);
  log_layout(result, timer);
  return result;
}

}  // namespace npu
