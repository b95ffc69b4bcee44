// SPDX-License-Identifier: Apache-2.0
// Facts about nodes that the fusion patterns ask for, and the bookkeeping of groups.
//
// O(nodes + edges).
#include "passes/fusion/fusion_builder.hpp"

#include <algorithm>
#include <unordered_map>

#include "npu/support/ids.hpp"
#include "ops/op_name.hpp"
#include "support/json_fields.hpp"
#include "support/text.hpp"

namespace npu::fusion {
namespace {

std::size_t number_of(std::string_view name) {
  if (const auto found = find_pattern(name)) return static_cast<std::size_t>(*found);
  throw Error(ErrorCode::kUsage,
              "--patterns: no pattern '" + std::string(name) +
                  pattern_hint(name, {"default", "all", "none"}, "--list-patterns lists them"));
}

}  // namespace

std::string pattern_hint(std::string_view name, std::vector<std::string> names,
                         std::string_view otherwise) {
  for (const FusionPattern& pattern : kPatterns) names.emplace_back(pattern.name);
  const std::string nearest = nearest_word(name, names);
  if (nearest.empty()) return "'; " + std::string(otherwise);
  return "'; did you mean '" + nearest + "'?";
}

FusionBuilder::FusionBuilder(const Graph& graph, const FuseOptions& options)
    : graph_(graph), options_(options) {
  enabled_.push_back(select_patterns(nullptr));
  collect_facts();
  find_sole_consumers();
  find_only_readers();
  group_of_.assign(facts_.size(), -1);
  groups_.reserve(facts_.size());
}

FusionBuilder::PatternSet FusionBuilder::select_patterns(
    const std::vector<std::string>* defaults) const {
  PatternSet enabled{};
  const auto add = [&](const auto& is_added) {
    for (std::size_t p = 0; p < enabled.size(); ++p) {
      enabled[p] = enabled[p] || is_added(kPatterns[p]);
    }
  };
  const auto is_default = [&](const FusionPattern& pattern) {
    if (defaults == nullptr) return pattern.by_default;
    return std::find(defaults->begin(), defaults->end(), pattern.name) != defaults->end();
  };
  for (std::size_t i = 0; i < options_.patterns.size(); ++i) {
    std::string_view name = options_.patterns[i];
    const bool remove = name.starts_with('-');
    if (remove) name.remove_prefix(1);
    if (remove ? i == 0 : name == "default") add(is_default);
    if (remove) {
      enabled[number_of(name)] = false;
    } else if (name == "all") {
      add([](const FusionPattern& pattern) { return pattern.in_all; });
    } else if (name != "default" && name != "none") {
      enabled[number_of(name)] = true;
    }
  }
  return enabled;
}

bool FusionBuilder::enabled(Pattern pattern) const {
  return std::any_of(enabled_.begin(), enabled_.end(),
                     [&](const PatternSet& set) { return set[static_cast<std::size_t>(pattern)]; });
}

NodeFacts FusionBuilder::facts_of(const Node& node) const {
  NodeFacts facts;
  const OpInfo* op = find_op(node.op_type);
  if (op == nullptr) return facts;
  const std::string_view name = base_name(node.op_type);
  facts.kind = op->kind;
  facts.role = op->role;
  facts.alias = is_alias_node(graph_, node);
  const bool trains = facts.role == Role::kBatchNorm &&
                      name.find("no_training") == std::string_view::npos &&
                      member_flag(node.attrs(), "training") != false;
  const bool drops = !facts.alias && name.find("dropout") != std::string_view::npos;
  if (trains || drops) {
    facts.kind = trains ? OpKind::kReduction : OpKind::kOpaque;
    facts.role = Role::kOther;
  } else if (facts.role == Role::kPower && member_double(node.attrs(), "exponent") == 2.0) {
    facts.role = Role::kSquare;
  } else if (facts.alias &&
             (facts.role == Role::kCat || name == "pad" || name == "constant_pad_nd")) {
    facts.role = Role::kSameOrder;  // of one tensor, or without pads
  }
  return facts;
}

void FusionBuilder::collect_facts() {
  std::unordered_map<std::string_view, std::int32_t> devices;
  std::unordered_map<std::int64_t, std::int32_t> groups;  // numbered, for within_groups
  const std::vector<Node>& nodes = graph_.nodes();
  facts_.reserve(nodes.size());
  selected_.assign(nodes.size(), -1);
  for (std::int32_t n = 0; n < std::ssize(nodes); ++n) {
    ++steps_;
    const Node& node = nodes[index_of(n)];
    NodeFacts& facts = facts_.emplace_back(facts_of(node));
    facts.device = -1;  // nodes without a device are on a device of their own
    if (node.device) {
      const auto [found, is_new] = devices.emplace(*node.device, devices.size());
      facts.device = found->second;
      const auto own = options_.device_patterns.find(*node.device);
      if (is_new) {
        enabled_.push_back(own == options_.device_patterns.end() ? enabled_.front()
                                                                 : select_patterns(&own->second));
      }
    }
    facts.patterns = facts.device + 1;
    if (options_.within_groups) {
      facts.device = node.fusion_group
                         ? groups.emplace(*node.fusion_group, groups.size()).first->second
                         : -2 - n;
    }
    if (node.op_type == kGetitem) {
      const auto count = std::ssize(node.inputs);
      const std::int64_t index = member_integer(node.attrs(), "index").value_or(count);
      const std::int64_t selected = index < 0 ? index + count : index;
      if (selected >= 0 && selected < count) selected_[index_of(n)] = static_cast<int>(selected);
    }
    if (facts.alias && node.outputs.size() == 1) {
      const std::span<const TensorId> read = operands(n);
      // A second operand of an alias gives a shape or a dtype, and is not passed on.
      facts.keeps_elements =
          read.size() == 1 && elements(read.front()) == elements(node.outputs.front());
    }
  }
}

void FusionBuilder::find_sole_consumers() {
  is_output_.assign(graph_.tensors().size(), 0);
  for (const TensorId id : graph_.graph_outputs()) is_output_[index_of(id.value)] = 1;
  for (std::size_t n = 0; n < facts_.size(); ++n) {
    std::int32_t sole = -1;
    bool several = false;
    for (const TensorId output : graph_.nodes()[n].outputs) {
      several = several || is_output(output);
      if (several) break;
      const std::vector<NodeId>& consumers = graph_.tensor(output).consumers;
      // Results of an op with many getitems have many readers, each of which names them all.
      for (std::size_t i = 0; i < consumers.size() && !several; ++i) {
        ++steps_;
        if (!reads(consumers[i].value, output)) continue;
        several = sole >= 0 && sole != consumers[i].value;
        sole = consumers[i].value;
      }
    }
    facts_[n].sole_consumer = several ? -1 : sole;
  }
  for (std::int32_t n = 0; n < size(); ++n) {
    for (const TensorId id : operands(n)) {
      ++steps_;
      if (producer(id) < 0) continue;
      NodeFacts& made = facts_[index_of(producer(id))];
      if (made.sole_consumer == n && !made.sole_result.valid()) made.sole_result = id;
    }
  }
}

void FusionBuilder::find_only_readers() {
  unused_.assign(facts_.size(), 1);
  std::vector<char> needed = is_output_;
  for (std::int32_t n = size(); n-- > 0;) {
    for (const TensorId id : node(n).outputs) {
      if (needed[index_of(id)] != 0) unused_[index_of(n)] = 0;
    }
    if (unused(n)) continue;
    for (const TensorId id : node(n).inputs) needed[index_of(id)] = 1;
  }
  only_reader_.assign(graph_.tensors().size(), -1);
  // The host reads outputs, which are so never read only once.
  std::vector<char> is_read = is_output_;
  for (std::int32_t n = 0; n < size(); ++n) {
    if (unused(n)) continue;
    for (const TensorId id : node(n).inputs) {
      only_reader_[index_of(id)] = is_read[index_of(id)] == 0 ? n : -1;
      is_read[index_of(id)] = 1;
    }
  }
}

std::span<const TensorId> FusionBuilder::operands(std::int32_t n) const {
  const std::vector<TensorId>& inputs = node(n).inputs;
  const std::int32_t selected = selected_[index_of(n)];
  if (selected >= 0) return std::span(inputs).subspan(index_of(selected), 1);
  return inputs;
}

bool FusionBuilder::reads(std::int32_t n, TensorId id) const {
  const std::int32_t selected = selected_[index_of(n)];
  return selected < 0 || node(n).inputs[index_of(selected)] == id;
}

Link FusionBuilder::reader_of(std::int32_t n, Readers readers) const {
  if (readers == Readers::kAll) return {facts(n).sole_consumer, facts(n).sole_result};
  const TensorId result = node(n).outputs.front();
  return {only_reader(result), result};
}

Link FusionBuilder::below(std::int32_t n, Readers readers) {
  ++steps_;
  const Link next = reader_of(n, readers);
  return next.node >= 0 && free(next.node) && same_device(n, next.node) ? next : Link{};
}

std::int32_t FusionBuilder::above(TensorId id, std::int32_t reader, Readers readers) {
  ++steps_;
  const std::int32_t n = producer(id);
  if (n < 0 || !free(n) || !same_device(n, reader)) return -1;
  if (readers == Readers::kAll) return facts(n).sole_consumer == reader ? n : -1;
  const bool is_plain = node(n).outputs.size() == 1 && !node(n).inputs.empty();
  return is_plain && only_reader(id) == reader ? n : -1;
}

bool FusionBuilder::enters_first(std::int32_t n, TensorId id) const {
  const std::span<const TensorId> read = operands(n);
  return !read.empty() && read.front() == id &&
         std::find(read.begin() + 1, read.end(), id) == read.end();
}

std::int64_t FusionBuilder::elements(TensorId id) const {
  std::int64_t count = 1;  // the reader has checked that it fits
  for (const std::int64_t dimension : graph_.tensor(id).shape) count *= dimension;
  return count;
}

std::int64_t FusionBuilder::result_elements(std::int32_t n) const {
  return node(n).outputs.empty() ? 0 : elements(node(n).outputs.front());
}

bool FusionBuilder::is_epilogue_op(std::int32_t n, TensorId id) const {
  const NodeFacts& f = facts(n);
  if (!f.is_elementwise() || node(n).outputs.empty()) return false;
  if (result_elements(n) != elements(id)) return false;
  // Statistics and slopes are read per channel: the chain must not come in as one of them.
  const bool per_channel =
      f.role == Role::kBatchNorm || (is_activation(f.role) && f.kind == OpKind::kBroadcast);
  return !per_channel || enters_first(n, id);
}

Group& FusionBuilder::add_group(NodeList nodes, Pattern pattern) {
  for (const std::int32_t n : nodes) group_of_[index_of(n)] = group_count();
  const std::int32_t sink = nodes.back();
  groups_.push_back({.nodes = std::move(nodes), .pattern = pattern, .sink = sink});
  return groups_.back();
}

void FusionBuilder::join(std::int32_t g, std::int32_t n) {
  group_of_[index_of(n)] = g;
  group(g).nodes.push_back(n);
}

void FusionBuilder::merge(std::int32_t into, std::int32_t from) {
  for (const std::int32_t n : group(from).nodes) {
    ++steps_;
    join(into, n);
  }
  group(from).nodes.clear();
}

FusionPlan FusionBuilder::finish() {
  FusionPlan plan;
  plan.groups.reserve(facts_.size());
  std::vector<std::int32_t> plan_group(groups_.size(), -1);
  for (std::int32_t n = 0; n < size(); ++n) {
    ++steps_;
    const std::int32_t g = group_of(n);
    if (g >= 0 && plan_group[index_of(g)] >= 0) {
      plan.groups[index_of(plan_group[index_of(g)])].nodes.push_back({n});
      continue;
    }
    FusionGroup& out = plan.groups.emplace_back();
    out.nodes.push_back({n});
    const bool may_be_one =
        g >= 0 && (is_kernelless(group(g).pattern) || group(g).pattern == "quantized"_pattern ||
                   group(g).pattern == "cached-attention"_pattern);
    if (g < 0 || (group(g).nodes.size() == 1 && !may_be_one)) {
      out.pattern = facts(n).alias ? "alias" : "single";
      continue;
    }
    plan_group[index_of(g)] = static_cast<std::int32_t>(plan.groups.size()) - 1;
    out.nodes.reserve(group(g).nodes.size());
    const auto number = static_cast<std::size_t>(group(g).pattern);
    out.pattern = number < kPatterns.size()
                      ? std::string(kPatterns[number].name)
                      : options_.user_patterns[number - kPatterns.size()].name;
  }
  plan.steps = steps_;
  return plan;
}

}  // namespace npu::fusion
