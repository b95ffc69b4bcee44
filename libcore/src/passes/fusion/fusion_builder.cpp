// SPDX-License-Identifier: Apache-2.0
// Facts about nodes that the fusion patterns ask for, and the bookkeeping of groups.
//
// An op type is looked up once, whatever the number of its nodes. O(nodes + edges).
#include "passes/fusion/fusion_builder.hpp"

#include <algorithm>
#include <numeric>

#include "npu/ops/op_name.hpp"
#include "npu/support/text.hpp"

namespace npu::fusion {
namespace {

// What can be said of an op type without a node.
struct OpFacts {
  OpKind kind = OpKind::kOpaque;
  Role role = Role::kOther;
  bool may_be_alias = false;  // depends on the node
  bool is_getitem = false;
  bool is_random = false;  // dropout: element-wise only when it does nothing
};

struct RoleRow {
  std::string_view name;  // without overload, and without the underscore of in-place ops
  Role role;
};
constexpr RoleRow kRoles[] = {
    {"_convolution", Role::kConv},
    {"convolution", Role::kConv},
    {"conv1d", Role::kConv},
    {"conv2d", Role::kConv},
    {"conv3d", Role::kConv},
    {"conv_transpose1d", Role::kConv},
    {"conv_transpose2d", Role::kConv},
    {"conv_transpose3d", Role::kConv},
    {"linear", Role::kMatmul},
    {"addmm", Role::kMatmul},
    {"mm", Role::kMatmul},
    {"bmm", Role::kMatmul},
    {"baddbmm", Role::kMatmul},
    {"addbmm", Role::kMatmul},
    {"matmul", Role::kMatmul},
    {"einsum", Role::kMatmul},
    {"scaled_dot_product_attention", Role::kAttention},
    {"_scaled_dot_product_flash_attention_for_cpu", Role::kAttention},
    {"batch_norm", Role::kBatchNorm},
    {"_native_batch_norm_legit_no_training", Role::kBatchNorm},
    {"relu", Role::kActivation},
    {"relu6", Role::kActivation},
    {"hardtanh", Role::kActivation},
    {"leaky_relu", Role::kActivation},
    {"elu", Role::kActivation},
    {"selu", Role::kActivation},
    {"celu", Role::kActivation},
    {"gelu", Role::kActivation},
    {"silu", Role::kActivation},
    {"mish", Role::kActivation},
    {"sigmoid", Role::kSigmoid},
    {"tanh", Role::kActivation},
    {"hardsigmoid", Role::kSigmoid},
    {"hardswish", Role::kActivation},
    {"softplus", Role::kActivation},
    {"log_sigmoid", Role::kActivation},
    {"threshold", Role::kActivation},
    {"clamp", Role::kActivation},
    {"clamp_min", Role::kActivation},
    {"prelu", Role::kActivation},
    {"add", Role::kAdd},
    {"sub", Role::kSub},
    {"mul", Role::kMul},
    {"div", Role::kDiv},
    {"square", Role::kSquare},
    {"mean", Role::kMean},
    {"sqrt", Role::kSqrt},
    {"rsqrt", Role::kRsqrt},
    {"softmax", Role::kSoftmax},
    {"_softmax", Role::kSoftmax},
    {"_safe_softmax", Role::kSoftmax},
    {"layer_norm", Role::kLayerNorm},
    {"native_layer_norm", Role::kLayerNorm},
    {"group_norm", Role::kLayerNorm},
    {"native_group_norm", Role::kLayerNorm},
    {"instance_norm", Role::kLayerNorm},
    {"rms_norm", Role::kRmsNorm},
    {"max_pool1d", Role::kWindow},
    {"max_pool2d", Role::kWindow},
    {"max_pool3d", Role::kWindow},
    {"max_pool2d_with_indices", Role::kWindow},
    {"avg_pool1d", Role::kWindow},
    {"avg_pool2d", Role::kWindow},
    {"avg_pool3d", Role::kWindow},
    {"adaptive_avg_pool1d", Role::kGlobalPool},
    {"adaptive_avg_pool2d", Role::kGlobalPool},
    {"_adaptive_avg_pool2d", Role::kGlobalPool},
    {"adaptive_avg_pool3d", Role::kGlobalPool},
    {"adaptive_max_pool1d", Role::kGlobalPool},
    {"adaptive_max_pool2d", Role::kGlobalPool},
    {"cat", Role::kCat},
    {"concat", Role::kCat},
    {"masked_fill", Role::kMask},
    {"where", Role::kMask},
};

Role role_of(std::string_view op_type) {
  if (op_type == "aten.pow.Tensor_Scalar") return Role::kSquare;  // if the exponent is 2
  if (!op_type.starts_with("aten.")) return Role::kOther;
  std::string_view name = op_type.substr(5);
  name = name.substr(0, name.find('.'));
  if (name.ends_with('_')) name.remove_suffix(1);
  for (const RoleRow& row : kRoles) {
    if (row.name == name) return row.role;
  }
  return Role::kOther;
}

OpFacts facts_of(std::string_view op_type) {
  OpFacts facts;
  facts.is_getitem = op_type == kGetitem;
  const OpInfo* op = find_op(op_type);
  if (op == nullptr) return facts;
  facts.kind = op->kind;
  facts.role = role_of(op_type);
  facts.is_random = op_type.find("dropout") != std::string_view::npos;
  facts.may_be_alias =
      op->is_alias || op_type.starts_with("aten.to.") || op_type.starts_with("aten.type_as.");
  return facts;
}

std::size_t index_of(std::int32_t value) { return static_cast<std::size_t>(value); }

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

bool drops_nothing(const Node& node) {
  const Json* share = find_member(node.attrs(), "p");
  return share != nullptr && share->is_number() && share->get<double>() == 0;
}

bool is_two(const Node& node) {
  const Json* exponent = find_member(node.attrs(), "exponent");
  return exponent != nullptr && exponent->is_number() && exponent->get<double>() == 2;
}

}  // namespace

FusionBuilder::FusionBuilder(const Graph& graph, const FuseOptions& options)
    : graph_(graph), options_(options) {
  select_patterns();
  collect_facts();
  find_sole_consumers();
  group_of_.assign(facts_.size(), -1);
  groups_.reserve(facts_.size());
}

void FusionBuilder::select_patterns() {
  const std::span<const FusionPattern> patterns = fusion_patterns();
  // "all" leaves out chain, which would take the nodes of every other pattern.
  const auto set_all = [&](bool defaults_only) {
    for (std::size_t p = 0; p < patterns.size(); ++p) {
      const bool wanted =
          defaults_only ? patterns[p].by_default : p != static_cast<std::size_t>(Pattern::kChain);
      enabled_[p] = enabled_[p] || wanted;
    }
  };
  for (std::size_t i = 0; i < options_.patterns.size(); ++i) {
    std::string_view name = options_.patterns[i];
    const bool remove = name.starts_with('-');
    if (remove) name.remove_prefix(1);
    if (remove && i == 0) set_all(true);
    if (!remove && name == "default") {
      set_all(true);
    } else if (!remove && name == "all") {
      set_all(false);
    } else if (remove || name != "none") {
      const auto found = std::find_if(patterns.begin(), patterns.end(),
                                      [&](const FusionPattern& p) { return p.name == name; });
      if (found == patterns.end()) {
        std::vector<std::string> names{"default", "all", "none"};
        for (const FusionPattern& pattern : patterns) names.emplace_back(pattern.name);
        const std::string nearest = nearest_word(name, names);
        throw Error(ErrorCode::kUsage, "--patterns: no pattern '" + std::string(name) + "'" +
                                           (nearest.empty() ? "; --list-patterns lists them"
                                                            : "; did you mean '" + nearest + "'?"));
      }
      enabled_[static_cast<std::size_t>(found - patterns.begin())] = !remove;
    }
  }
}

void FusionBuilder::collect_facts() {
  std::unordered_map<std::string_view, OpFacts> facts_by_type;
  std::unordered_map<std::string_view, std::int32_t> devices;
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
    // Nodes without a device are on a device of their own, number -1.
    facts.device =
        node.device
            ? devices.emplace(*node.device, static_cast<std::int32_t>(devices.size())).first->second
            : -1;
    facts.alias = op.may_be_alias && is_alias_node(graph_, node);
    if (op.is_getitem) selected_[n] = selected_operand(node);
    if (facts.role == Role::kBatchNorm && node.op_type.find("no_training") == std::string::npos &&
        !is_false(node, "training")) {
      facts.kind = OpKind::kReduction;
      facts.role = Role::kOther;
    }
    if (facts.role == Role::kSquare && node.op_type == "aten.pow.Tensor_Scalar" && !is_two(node)) {
      facts.role = Role::kOther;
    }
    if (op.is_random && !facts.alias && !drops_nothing(node)) facts.kind = OpKind::kOpaque;
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
      f.role == Role::kBatchNorm || (f.role == Role::kActivation && f.kind == OpKind::kBroadcast);
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
    if (g < 0 || group(g).nodes.size() == 1) {
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
