// SPDX-License-Identifier: Apache-2.0
// What an anchor does to its result before it stores it.
//
// read_epilogue states it once for a group, without a kernel in mind; candidates look at that and
// say whether they do it. bind_epilogue then finds the values that a kernel reads for it, for the
// layout in which that kernel stores its result: an addition becomes a sum in the memory of the
// other operand if nothing reads that operand later, else an operand like any other. The same bound
// epilogue becomes post-ops of a primitive or steps of one of our kernels. O(nodes of the group).
#include "lowering/engine/bound_epilogue.hpp"

#include <algorithm>

#include "kernels/base/operands.hpp"
#include "lowering/engine/node_functions.hpp"
#include "ops/op_catalogue.hpp"
#include "ops/op_name.hpp"

namespace npu::onednn {

namespace {

using Kind = EpilogueOp::Kind;
using StepKind = EpilogueStep::Kind;

bool is_norm(const Node& node) { return fusion_role(node.op_type) == FusionRole::kBatchNorm; }

/// An op that leaves the running value's elements in their order.
bool is_alias(const Node& node) {
  return fusion_role(node.op_type) == FusionRole::kSameOrder ||
         fusion_role(node.op_type) == FusionRole::kPermute;
}

/// The function as our kernels do it.
std::optional<EpilogueStep> step_of(const Eltwise& eltwise) {
  switch (eltwise.function) {
    case dnnl::algorithm::eltwise_relu:
      return EpilogueStep{StepKind::kRelu, eltwise.alpha, eltwise.beta};
    case dnnl::algorithm::eltwise_clip:
    case dnnl::algorithm::eltwise_clip_v2:
      return EpilogueStep{StepKind::kClip, eltwise.alpha, eltwise.beta};
    case dnnl::algorithm::eltwise_linear:
      return EpilogueStep{StepKind::kLinear, eltwise.alpha, eltwise.beta};
    case dnnl::algorithm::eltwise_hardswish:
      return EpilogueStep{StepKind::kHardSwish, eltwise.alpha, eltwise.beta};
    case dnnl::algorithm::eltwise_swish:
      return EpilogueStep{StepKind::kSwish, eltwise.alpha, eltwise.beta};
    default:
      return std::nullopt;
  }
}

/// Whether oneDNN's post-op is four units in the last place away at most, where the result is not
/// small beside others: npu-onednn(7) has what was measured. Of log, ELU, both GELUs, softplus,
/// log_sigmoid and mish all places are wrong somewhere; without AVX2 exp and its kin lose three
/// bits.
bool is_near_post_op(const Eltwise& eltwise, const Machine& machine) {
  switch (eltwise.function) {
    case dnnl::algorithm::eltwise_exp:
    case dnnl::algorithm::eltwise_logistic:
    case dnnl::algorithm::eltwise_swish:
      return machine.has_avx2();
    case dnnl::algorithm::eltwise_tanh:
      return true;
    default:
      return !eltwise.own;  // exact
  }
}

/// The arithmetic that an op of two operands stands for.
std::optional<Kind> arithmetic_kind(std::string_view name) {
  if (name == "add") return Kind::kAdd;
  if (name == "sub") return Kind::kSubtract;
  if (name == "mul") return Kind::kMultiply;
  if (name == "div") return Kind::kDivide;
  return std::nullopt;
}

/// Reads the nodes of one group.
class Reader {
 public:
  Reader(const Lowering& lowering, const KernelGroup& group)
      : lowering_(lowering), graph_(lowering.graph()) {
    const Node& anchor = graph_.node(group.nodes.front());
    elements_ = element_count(lowering.shape(anchor.outputs.front()));
  }

  /// Nothing, or why there is no such op in an epilogue.
  std::optional<NotFused> add(NodeId id, std::int32_t position) {
    const Node& node = graph_.node(id);
    node_ = id;
    if (is_norm(node) || is_alias(node)) return std::nullopt;
    const BoundNode arguments = bound(graph_, node);
    const std::string_view name = functional_name(node.op_type);
    if (node.inputs.size() == 2) {
      return add_arithmetic(arguments, name, node.inputs[position == 0 ? 1 : 0]);
    }
    if (name == "add" || name == "sub" || name == "mul" || name == "rsub") {
      add_function(name, number_function(lowering_, arguments));
    } else if (name == "div") {
      EpilogueOp op{.kind = Kind::kDivide,
                    .operand = EpilogueOp::Operand::kNumber,
                    .op = name,
                    .node = node_};
      op.number = static_cast<float>(arguments.number("other"));
      result_.ops.push_back(op);
    } else {
      for (const Eltwise& function : unary_functions(lowering_, arguments)) {
        if (!is_near_post_op(function, lowering_.machine())) {
          return NotFused{"oneDNN computes '" + std::string(name) +
                              "' behind a node with a larger error than the kernel for it alone",
                          node_};
        }
        add_function(name, function);
      }
    }
    return std::nullopt;
  }

  Epilogue take() { return std::move(result_); }

 private:
  void add_function(std::string_view name, const Eltwise& function) {
    EpilogueOp op{.kind = Kind::kFunction, .op = name, .node = node_, .function = function};
    op.step = step_of(function);
    result_.ops.push_back(op);
  }

  std::optional<NotFused> add_arithmetic(const BoundNode& arguments, std::string_view name,
                                         TensorId other) {
    const auto kind = arithmetic_kind(name);
    if (!kind) return NotFused{"no kernel computes '" + std::string(name) + "' behind its node"};
    EpilogueOp op{.kind = *kind, .op = name, .node = node_, .tensor = other};
    if (arguments.find("alpha") != nullptr) {
      if (arguments.tensor("alpha")) return NotFused{"a factor behind the node is a tensor"};
      op.alpha = static_cast<float>(arguments.number("alpha"));
    }
    const std::int64_t count = element_count(lowering_.shape(other));
    op.operand = count == elements_ ? EpilogueOp::Operand::kPerElement
                 : count == 1       ? EpilogueOp::Operand::kOneElement
                                    : EpilogueOp::Operand::kPerChannel;
    result_.ops.push_back(op);
    return std::nullopt;
  }

  const Lowering& lowering_;
  const Graph& graph_;
  std::int64_t elements_ = 1;
  NodeId node_;  ///< that is being read
  Epilogue result_;
};

/// Finds the values that the ops of one epilogue read.
class Binder {
 public:
  Binder(Lowering& lowering, const GroupContext& context, const Layout& target,
         std::initializer_list<Value> anchor_reads, bool may_accumulate)
      : lowering_(lowering),
        context_(context),
        target_(target),
        anchor_reads_(anchor_reads),
        may_accumulate_(may_accumulate && context.allows_sum) {}

  /// Nothing, or why the op cannot be done.
  std::optional<NotFused> add(const EpilogueOp& op) {
    if (op.operand == EpilogueOp::Operand::kNone) {
      result_.ops.push_back({op, std::nullopt, false});
      return std::nullopt;
    }
    const Value value = operand_of(op);
    if (accumulates(op, value)) {
      result_.accumulated = value;
      result_.ops.push_back({op, value, true});
      return std::nullopt;
    }
    if (op.alpha != 1.0F) {
      return NotFused{"no kernel multiplies what it adds behind the node by a number"};
    }
    if (result_.accumulated && result_.accumulated->buffer == value.buffer) {
      return NotFused{"an operand behind the node lies where the result is stored"};
    }
    result_.ops.push_back({op, value, false});
    return std::nullopt;
  }

  BoundEpilogue take() { return std::move(result_); }

 private:
  Value operand_of(const EpilogueOp& op) {
    Shape shape(static_cast<std::size_t>(target_.data.ndims), 1);
    switch (op.operand) {
      case EpilogueOp::Operand::kNumber:
        return lowering_.reshaped(lowering_.constant(op.number), shape);
      case EpilogueOp::Operand::kPerElement: {
        Value value = lowering_.operand(op.tensor, context_.compute_type);
        const Shape wanted = dimensions(target_);
        if (dimensions(value.layout) != wanted) value = lowering_.reshaped(value, wanted);
        return lowering_.in_layout(value, with_type(target_, value.type));
      }
      default: {
        if (op.operand == EpilogueOp::Operand::kPerChannel) {
          const Node& anchor = lowering_.graph().node(context_.group->nodes.front());
          const bool by_channel = fusion_role(anchor.op_type) == FusionRole::kConv;
          shape[by_channel ? 1 : shape.size() - 1] = element_count(lowering_.shape(op.tensor));
        }
        return lowering_.reshaped(lowering_.operand(op.tensor, DType::kFloat32), shape);
      }
    }
  }

  /// Whether the result may be stored over the term that is added to it.
  bool accumulates(const EpilogueOp& op, const Value& value) const {
    if (op.operand != EpilogueOp::Operand::kPerElement) return false;
    if (op.kind != Kind::kAdd && op.kind != Kind::kSubtract) return false;
    if (!may_accumulate_ || result_.accumulated) return false;
    if (value.layout != target_ || !lowering_.can_overwrite(value)) return false;
    const auto shares = [&](const Value& read) { return read.buffer == value.buffer; };
    return std::none_of(anchor_reads_.begin(), anchor_reads_.end(), shares) &&
           std::none_of(result_.ops.begin(), result_.ops.end(),
                        [&](const auto& each) { return each.operand && shares(*each.operand); });
  }

  Lowering& lowering_;
  const GroupContext& context_;
  const Layout& target_;
  std::vector<Value> anchor_reads_;
  bool may_accumulate_;
  BoundEpilogue result_;
};

dnnl::algorithm binary_function(Kind kind) {
  switch (kind) {
    case Kind::kAdd:
      return dnnl::algorithm::binary_add;
    case Kind::kSubtract:
      return dnnl::algorithm::binary_sub;
    case Kind::kMultiply:
      return dnnl::algorithm::binary_mul;
    default:
      return dnnl::algorithm::binary_div;
  }
}

/// What is added to the accumulated value's memory is `factor` times that value.
float accumulation_factor(const EpilogueOp& op) {
  return op.kind == Kind::kSubtract ? -op.alpha : op.alpha;
}

/// The epilogue as steps of one of our kernels.
Lowered<std::vector<EpilogueStep>> steps_of(const BoundEpilogue& epilogue) {
  std::vector<EpilogueStep> result;
  for (const BoundEpilogue::Op& each : epilogue.ops) {
    const EpilogueOp& op = each.op;
    if (op.step) {
      result.push_back(*op.step);
    } else if (each.accumulates) {
      result.push_back({StepKind::kAccumulate, accumulation_factor(op), 0.0F});
    } else if (op.kind == Kind::kAdd || op.kind == Kind::kMultiply) {
      result.push_back({op.kind == Kind::kAdd ? StepKind::kAdd : StepKind::kMultiply, 0.0F, 0.0F});
    } else {
      return NotFused{"it subtracts only what its result may be stored over"};
    }
  }
  if (epilogue.reads().size() > kMaxEpilogueOperands) {
    return NotFused{"it reads " + std::to_string(kMaxEpilogueOperands) +
                    " tensors behind the node at most"};
  }
  return result;
}

}  // namespace

Lowered<Epilogue> read_epilogue(const Lowering& lowering, const KernelGroup& group) {
  if (group.kind != KernelGroup::Kind::kEpilogue) return Epilogue{};
  Reader reader(lowering, group);
  for (std::size_t i = 1; i < group.nodes.size(); ++i) {
    if (auto refusal = reader.add(group.nodes[i], group.operand[i - 1])) {
      return *std::move(refusal);
    }
  }
  return reader.take();
}

Lowered<BoundEpilogue> bind_epilogue(Lowering& lowering, const GroupContext& context,
                                     const Layout& target,
                                     std::initializer_list<Value> anchor_reads,
                                     bool may_accumulate) {
  Binder binder(lowering, context, target, anchor_reads, may_accumulate);
  for (const EpilogueOp& op : context.epilogue.ops) {
    if (auto refusal = binder.add(op)) return *std::move(refusal);
  }
  return binder.take();
}

std::vector<Value> BoundEpilogue::reads() const {
  std::vector<Value> values;
  for (const Op& op : ops) {
    if (op.operand && !op.accumulates) values.push_back(*op.operand);
  }
  return values;
}

Value target_of(Lowering& lowering, const std::optional<Value>& accumulated, DType type,
                const Layout& layout) {
  if (!accumulated) return lowering.temporary(type, layout);
  lowering.note_overwritten(*accumulated);
  return *accumulated;
}

Lowered<OwnEpilogue> own_epilogue(Lowering& lowering, const GroupContext& context,
                                  const Value& source, const Layout& layout) {
  auto bound = bind_epilogue(lowering, context, layout, {source});
  if (!bound) return bound.refusal();
  auto steps = steps_of(*bound);
  if (!steps) return steps.refusal();
  return OwnEpilogue{*std::move(bound), *std::move(steps)};
}

NotFused second_function(const Lowering& lowering, NodeId node) {
  return {"oneDNN would compute node '" + lowering.graph().node(node).name +
              "' with the numbers of a function of its kind before it",
          node};
}

PostOpRecord post_op_of(const Eltwise& function) {
  PostOpRecord record;
  record.algorithm = static_cast<std::int64_t>(function.function);
  record.alpha = function.alpha;
  record.beta = function.beta;
  return record;
}

Lowered<PostOps> post_ops_of(const Lowering& lowering, const BoundEpilogue& epilogue) {
  std::vector<PostOpRecord> list;
  std::vector<Value> operands;
  for (const BoundEpilogue::Op& each : epilogue.ops) {
    const EpilogueOp& op = each.op;
    PostOpRecord record = post_op_of(op.function);
    if (each.accumulates) {
      record = {.kind = PostOpRecord::Kind::kSum, .alpha = accumulation_factor(op)};
    } else if (op.kind != Kind::kFunction) {
      record = {.kind = PostOpRecord::Kind::kBinary,
                .algorithm = static_cast<std::int64_t>(binary_function(op.kind))};
      operands.push_back(*each.operand);
    }
    if (!append_post_op(list, record)) return second_function(lowering, op.node);
  }
  PostOps result;
  std::vector<Layout> layouts;
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (list[i].kind != PostOpRecord::Kind::kBinary) continue;
    const Value& operand = operands[layouts.size()];
    layouts.push_back(operand.layout);
    result.reads.push_back(
        {DNNL_ARG_ATTR_MULTIPLE_POST_OP(static_cast<int>(i)) | DNNL_ARG_SRC_1, operand});
  }
  result.operations = make_post_ops(list, layouts);
  return result;
}

}  // namespace npu::onednn
