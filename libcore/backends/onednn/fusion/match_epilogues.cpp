// SPDX-License-Identifier: Apache-2.0
// Finds what a convolution or a matrix product can do to its result before it is stored: batch norm
// (folded into the weights), activations, sums and products with another tensor, casts that are
// none.
//
// From each anchor the walk follows the only consumer of the running value. Anchors are visited
// from the end of the list, so that of two whose results are added the one computed later takes the
// addition and the other result is there by then. Whether oneDNN takes the post-ops is only known
// when its primitive is described; lowering undoes a group that it refuses. O(nodes).
#include <algorithm>
#include <array>
#include <string_view>

#include "fusion/fusion.hpp"
#include "npu/ops/op_catalogue.hpp"
#include "npu/ops/schema.hpp"

namespace npu::onednn {

namespace {

enum class Anchor : std::uint8_t { kNone, kConvolution, kProduct, kNorm };

Anchor anchor_kind(std::string_view op) {
  constexpr auto kProducts = std::to_array<std::string_view>(
      {"aten.linear.default", "aten.addmm.default", "aten.mm.default", "aten.matmul.default",
       "aten.bmm.default", "aten.baddbmm.default"});
  if (op.starts_with("aten.conv") && op.size() > 9 &&
      (op[9] == '1' || op[9] == '2' || op[9] == '3' || op[9] == '_' ||
       op == "aten.convolution.default")) {
    return Anchor::kConvolution;
  }
  if (op == "aten.batch_norm.default") return Anchor::kNorm;
  const bool is_product = std::find(kProducts.begin(), kProducts.end(), op) != kProducts.end();
  return is_product ? Anchor::kProduct : Anchor::kNone;
}

/// "relu" of "aten.relu_.default".
std::string_view base_name(std::string_view op_type) {
  if (!op_type.starts_with("aten.")) return {};
  op_type.remove_prefix(std::string_view("aten.").size());
  op_type = op_type.substr(0, op_type.find('.'));
  if (op_type.ends_with('_')) op_type.remove_suffix(1);
  return op_type;
}

bool is_weight(const Graph& graph, std::optional<TensorId> id) {
  return id && graph.tensor(*id).kind == TensorKind::kWeight;
}

class Walk {
 public:
  Walk(const Graph& graph, FusionPlan& plan, NodeId anchor, Anchor kind)
      : graph_(graph), plan_(plan), kind_(kind) {
    group_.nodes.push_back(anchor);
    value_ = graph.node(anchor).outputs.front();
    columns_ = graph.tensor(value_).shape.empty() ? 1 : graph.tensor(value_).shape.back();
  }

  void run() {
    while (group_.nodes.size() < kMostNodes) {
      const NodeId next = only_consumer(graph_, plan_, value_);
      if (!next.valid() || plan_.group_of[static_cast<std::size_t>(next.value)] >= 0) break;
      const Node& node = graph_.node(next);
      if (separated(node)) break;
      const auto position = std::find(node.inputs.begin(), node.inputs.end(), value_);
      if (!joins(node, static_cast<std::int32_t>(position - node.inputs.begin()))) break;
      group_.nodes.push_back(next);
      group_.operand.push_back(static_cast<std::int32_t>(position - node.inputs.begin()));
      value_ = node.outputs.front();
    }
    if (group_.nodes.size() == 1) return;
    for (const NodeId id : group_.nodes) {
      plan_.group_of[static_cast<std::size_t>(id.value)] =
          static_cast<std::int32_t>(plan_.groups.size());
    }
    plan_.groups.push_back(std::move(group_));
  }

 private:
  static constexpr std::size_t kMostNodes = 16;

  /// True if npu-fuse put the node into another group than the anchor.
  bool separated(const Node& node) const {
    const auto& group = graph_.node(group_.nodes.front()).fusion_group;
    return group && node.fusion_group && *group != *node.fusion_group;
  }

  const TensorInfo& value() const { return graph_.tensor(value_); }

  bool joins(const Node& node, std::int32_t position) {
    if (node.outputs.size() != 1) return false;
    const TensorInfo& result = graph_.tensor(node.outputs.front());
    if (result.dtype != value().dtype) return false;
    if (position == 0 && keeps_row_major(graph_, node)) {
      if (is_training(node)) return false;
      return kind_ == Anchor::kProduct || result.shape == value().shape;
    }
    if (result.shape != value().shape) return false;
    if (kind_ == Anchor::kNorm) return base_name(node.op_type) == "relu";
    const OpInfo* info = find_op(node.op_type);
    if (info == nullptr) return false;
    BindError error;
    const auto bound = BoundNode::try_bind(graph_, node, info->schema, error);
    if (!bound) return false;
    const std::string_view name = base_name(node.op_type);
    if (name == "batch_norm") return position == 0 && joins_norm(*bound);
    // A pass of this backend's own is faster than oneDNN's post-op.
    if (name == "gelu" && value().dtype == DType::kFloat32 &&
        find_member(node.attrs(), "approximate") == nullptr) {
      return false;
    }
    if (is_unary(name)) return position == 0 && node.inputs.size() == 1 && close_norms();
    if (is_binary(name)) return joins_binary(node, name, position) && close_norms();
    return false;
  }

  bool close_norms() {
    norms_open_ = false;
    return true;
  }

  static bool is_training(const Node& node) {
    const Json* train = find_member(node.attrs(), "train");
    return train != nullptr && *train != false;
  }

  /// Batch norm behind a convolution with known weights: a factor and a term per channel.
  bool joins_norm(const BoundNode& node) const {
    const Node& anchor = graph_.node(group_.nodes.front());
    if (!norms_open_ || node.boolean("training")) return false;
    const bool is_linear = anchor.op_type == "aten.linear.default";
    if (kind_ != Anchor::kConvolution && !is_linear) return false;
    if (is_linear && value().shape.size() != 2) return false;
    for (std::size_t i = 1; i < anchor.inputs.size(); ++i) {
      if (!is_weight(graph_, anchor.inputs[i])) return false;
    }
    for (const char* name : {"weight", "bias"}) {
      if (node.tensor(name) && !is_weight(graph_, node.tensor(name))) return false;
    }
    return is_weight(graph_, node.tensor("running_mean")) &&
           is_weight(graph_, node.tensor("running_var"));
  }

  /// exp, hardsigmoid and softplus are kernels of their own, since oneDNN's lose NaN or their sign.
  static bool is_unary(std::string_view name) {
    constexpr auto kNames = std::to_array<std::string_view>(
        {"abs", "clamp", "clamp_max", "clamp_min", "elu", "gelu", "hardswish", "hardtanh",
         "leaky_relu", "log", "mish", "neg", "relu", "relu6", "sigmoid", "silu", "sqrt", "square",
         "tanh"});
    return std::find(kNames.begin(), kNames.end(), name) != kNames.end();
  }

  static bool is_binary(std::string_view name) {
    return name == "add" || name == "sub" || name == "mul" || name == "div" || name == "rsub";
  }

  bool joins_binary(const Node& node, std::string_view name, std::int32_t position) const {
    if (node.inputs.size() == 1) return true;  // a number
    if (node.inputs.size() != 2) return false;
    const bool commutes = name == "add" || name == "mul";
    if (position != 0 && !commutes) return false;
    if (name == "rsub" || find_member(node.attrs(), "rounding_mode") != nullptr) return false;
    if (position != 0 && find_member(node.attrs(), "alpha") != nullptr) return false;
    const TensorInfo& other = graph_.tensor(node.inputs[position == 0 ? 1 : 0]);
    if (other.dtype != value().dtype) return false;
    if (other.shape == value().shape) return true;
    return broadcasts(other.shape);
  }

  /// One element for all, or one for every channel or column.
  bool broadcasts(const Shape& shape) const {
    std::int64_t count = 1;
    for (const std::int64_t extent : shape) count *= extent;
    if (count == 1) return shape.size() <= value().shape.size();
    if (kind_ == Anchor::kProduct)
      return count == columns_ && shape.back() == columns_ && value().shape.back() == columns_;
    const std::size_t rank = value().shape.size();
    return shape.size() + 1 >= rank && shape.size() <= rank &&
           shape[shape.size() + 1 - rank] == value().shape[1] && count == value().shape[1];
  }

  const Graph& graph_;
  FusionPlan& plan_;
  Anchor kind_;
  FusionGroup group_;
  TensorId value_;
  std::int64_t columns_ = 1;
  bool norms_open_ = true;
};

}  // namespace

void match_epilogues(const Graph& graph, FusionPlan& plan) {
  // A batch norm is an anchor only if no convolution takes it in.
  for (const bool norms : {false, true}) {
    for (std::size_t i = graph.nodes().size(); i > 0; --i) {
      const Node& node = graph.nodes()[i - 1];
      const Anchor kind = anchor_kind(node.op_type);
      if (kind == Anchor::kNone || (kind == Anchor::kNorm) != norms) continue;
      if (plan.dead[i - 1] || plan.group_of[i - 1] >= 0 || node.outputs.size() != 1) continue;
      Walk(graph, plan, NodeId{static_cast<std::int32_t>(i - 1)}, kind).run();
    }
  }
}

}  // namespace npu::onednn
