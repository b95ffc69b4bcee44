// SPDX-License-Identifier: Apache-2.0
// Facts about nodes that the fusion patterns ask for, and the bookkeeping of groups.
//
// An op type is looked up once, whatever the number of its nodes. O(nodes + edges).
#include "passes/fusion/fusion_builder.hpp"

#include <algorithm>
#include <unordered_map>

#include "npu/support/ids.hpp"
#include "ops/op_name.hpp"
#include "support/text.hpp"

namespace npu::fusion {
namespace {

// What can be said of an op type without a node.
struct OpFacts {
  OpKind kind = OpKind::kOpaque;
  Role role = Role::kOther;
  bool may_be_alias = false;  // depends on the node
  bool is_getitem = false;
  bool is_random = false;      // dropout: element-wise only when it does nothing
  bool joins_or_pads = false;  // an alias of one tensor, or without pads
};

OpFacts facts_of(std::string_view op_type) {
  OpFacts facts;
  facts.is_getitem = op_type == kGetitem;
  const OpInfo* op = find_op(op_type);
  if (op == nullptr) return facts;
  facts.kind = op->kind;
  facts.role = op->role;
  facts.is_random = op_type.find("dropout") != std::string_view::npos;
  facts.may_be_alias = may_be_alias(*op);
  const std::string_view name = base_name(op_type);
  facts.joins_or_pads =
      facts.may_be_alias && (op->role == Role::kCat || name == "pad" || name == "constant_pad_nd");
  return facts;
}

// The operand that a getitem selects, or -1.
std::int32_t selected_operand(const Node& node) {
  const Json* json = find_member(node.attrs(), "index");
  if (json == nullptr || !json->is_number_integer()) return -1;
  const auto count = static_cast<std::int64_t>(node.inputs.size());
  std::int64_t index = json->get<std::int64_t>();
  if (index < 0) index += count;
  if (index < 0 || index >= count) return -1;
  return static_cast<std::int32_t>(index);
}

bool is_false(const Node& node, std::string_view attribute) {
  const Json* value = find_member(node.attrs(), attribute);
  return value != nullptr && value->is_boolean() && !value->get<bool>();
}

bool is_two(const Node& node) {
  const Json* exponent = find_member(node.attrs(), "exponent");
  return exponent != nullptr && exponent->is_number() && exponent->get<double>() == 2;
}

}  // namespace

namespace {

[[noreturn]] void throw_unknown_pattern(std::string_view name) {
  std::vector<std::string> names{"default", "all", "none"};
  for (const FusionPattern& pattern : fusion_patterns()) names.emplace_back(pattern.name);
  const std::string nearest = nearest_word(name, names);
  throw Error(ErrorCode::kUsage, "--patterns: no pattern '" + std::string(name) + "'" +
                                     (nearest.empty() ? "; --list-patterns lists them"
                                                      : "; did you mean '" + nearest + "'?"));
}

}  // namespace

FusionBuilder::FusionBuilder(const Graph& graph, const FuseOptions& options)
    : graph_(graph), options_(options) {
  enabled_.push_back(select_patterns(nullptr));
  collect_facts();
  find_sole_consumers();
  group_of_.assign(facts_.size(), -1);
  groups_.reserve(facts_.size());
}

FusionBuilder::PatternSet FusionBuilder::select_patterns(
    const std::vector<std::string>* defaults) const {
  const std::span<const FusionPattern> patterns = fusion_patterns();
  PatternSet enabled{};
  const auto number = [&](std::string_view name) {
    const auto found = std::find_if(patterns.begin(), patterns.end(),
                                    [&](const FusionPattern& p) { return p.name == name; });
    if (found == patterns.end()) throw_unknown_pattern(name);
    return static_cast<std::size_t>(found - patterns.begin());
  };
  const auto set_defaults = [&] {
    if (defaults != nullptr) {
      for (const std::string& name : *defaults) enabled[number(name)] = true;
      return;
    }
    for (std::size_t p = 0; p < patterns.size(); ++p) {
      enabled[p] = enabled[p] || patterns[p].by_default;
    }
  };
  for (std::size_t i = 0; i < options_.patterns.size(); ++i) {
    std::string_view name = options_.patterns[i];
    const bool remove = name.starts_with('-');
    if (remove) name.remove_prefix(1);
    if (remove && i == 0) set_defaults();
    if (!remove && name == "default") {
      set_defaults();
    } else if (!remove && name == "all") {
      for (std::size_t p = 0; p < patterns.size(); ++p) {
        enabled[p] = enabled[p] || patterns[p].in_all;
      }
    } else if (remove || name != "none") {
      enabled[number(name)] = !remove;
    }
  }
  return enabled;
}

bool FusionBuilder::enabled(Pattern pattern) const {
  return std::any_of(enabled_.begin(), enabled_.end(),
                     [&](const PatternSet& set) { return set[static_cast<std::size_t>(pattern)]; });
}

void FusionBuilder::collect_facts() {
  std::unordered_map<std::string_view, OpFacts> facts_by_type;
  struct DeviceFacts {
    std::int32_t number;
    std::int32_t patterns;
  };
  std::unordered_map<std::string_view, DeviceFacts> devices;
  const auto device_facts = [&](const Node& node) {
    // Nodes without a device are on a device of their own, number -1.
    if (!node.device) return DeviceFacts{-1, 0};
    const auto [found, is_new] = devices.emplace(*node.device, DeviceFacts{});
    if (!is_new) return found->second;
    found->second = {static_cast<std::int32_t>(devices.size()) - 1, 0};
    const auto own = options_.device_patterns.find(*node.device);
    if (own != options_.device_patterns.end()) {
      found->second.patterns = static_cast<std::int32_t>(enabled_.size());
      enabled_.push_back(select_patterns(&own->second));
    }
    return found->second;
  };
  std::unordered_map<std::int64_t, std::int32_t> groups;  // numbered, for within_groups
  const std::vector<Node>& nodes = graph_.nodes();
  facts_.resize(nodes.size());
  selected_.assign(nodes.size(), -1);
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    ++steps_;
    const Node& node = nodes[n];
    auto found = facts_by_type.find(node.op_type);
    if (found == facts_by_type.end()) {
      found = facts_by_type.emplace(node.op_type, facts_of(node.op_type)).first;
    }
    const OpFacts& op = found->second;
    NodeFacts& facts = facts_[n];
    facts.kind = op.kind;
    facts.role = op.role;
    const DeviceFacts device = device_facts(node);
    facts.device = device.number;
    facts.patterns = device.patterns;
    if (options_.within_groups) {
      facts.device = node.fusion_group
                         ? groups.emplace(*node.fusion_group, groups.size()).first->second
                         : -2 - static_cast<std::int32_t>(n);
    }
    facts.alias = op.may_be_alias && is_alias_node(graph_, node);
    if (op.is_getitem) selected_[n] = selected_operand(node);
    if (facts.role == Role::kBatchNorm && node.op_type.find("no_training") == std::string::npos &&
        !is_false(node, "training")) {
      facts.kind = OpKind::kReduction;
      facts.role = Role::kOther;
    }
    if (facts.role == Role::kPower && is_two(node)) facts.role = Role::kSquare;
    if (op.is_random && !facts.alias) {
      facts.kind = OpKind::kOpaque;
      facts.role = Role::kOther;
    }
    if (op.joins_or_pads && facts.alias) facts.role = Role::kSameOrder;
    if (facts.alias && node.outputs.size() == 1) {
      const std::span<const TensorId> read = operands(static_cast<std::int32_t>(n));
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

TensorId FusionBuilder::tensor_between(std::int32_t from, std::int32_t to) const {
  if (facts(from).sole_consumer == to) return facts(from).sole_result;
  for (const TensorId id : operands(to)) {
    if (producer(id) == from) return id;
  }
  return {};
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
  if (f.alias || node(n).outputs.empty()) return false;
  if (f.kind != OpKind::kElementwise && f.kind != OpKind::kBroadcast) return false;
  if (result_elements(n) != elements(id)) return false;
  // Statistics and slopes are read per channel: the chain must not come in as one of them.
  const bool per_channel =
      f.role == Role::kBatchNorm || (is_activation(f.role) && f.kind == OpKind::kBroadcast);
  return !per_channel || enters_first(n, id);
}

std::int32_t FusionBuilder::add_group(std::vector<std::int32_t> nodes, PatternNumber pattern,
                                      std::int32_t sink) {
  const std::int32_t g = group_count();
  for (const std::int32_t n : nodes) group_of_[index_of(n)] = g;
  Group& group = groups_.emplace_back();
  group.nodes = std::move(nodes);
  group.pattern = pattern;
  group.sink = sink;
  return g;
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
  const std::span<const FusionPattern> patterns = fusion_patterns();
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
    const PatternNumber pattern = g < 0 ? -1 : group(g).pattern;
    const bool named = pattern >= 0 && pattern < static_cast<PatternNumber>(kPatternCount) &&
                       (is_kernelless(static_cast<Pattern>(pattern)) ||
                        static_cast<Pattern>(pattern) == Pattern::kQuantized);
    if (g < 0 || (group(g).nodes.size() == 1 && !named)) {
      out.pattern = facts(n).alias ? "alias" : "single";
      continue;
    }
    plan_group[index_of(g)] = static_cast<std::int32_t>(plan.groups.size()) - 1;
    out.nodes.reserve(group(g).nodes.size());
    const auto number = index_of(group(g).pattern);
    out.pattern = number < kPatternCount ? std::string(patterns[number].name)
                                         : options_.user_patterns[number - kPatternCount].name;
  }
  plan.steps = steps_;
  return plan;
}

}  // namespace npu::fusion
