// SPDX-License-Identifier: Apache-2.0
// Attention: the op scaled_dot_product_attention, and a group of nodes that write it out, both as
// one kernel of this backend on operands in any strides.
#include <algorithm>
#include <cmath>

#include "lowering/attention/attention.hpp"
#include "lowering/attention/attention_call.hpp"
#include "lowering/elementwise/elementwise.hpp"
#include "ops/op_catalogue.hpp"
#include "passes/fusion/cached_attention_form.hpp"
#include "passes/fusion/fusion_groups.hpp"
#include "support/checked.hpp"

namespace npu::onednn {

Matrices take_matrices(Lowering& lowering, const Shape& batch, Repeated& operand) {
  if (auto matrices = matrices_of(operand, batch)) return *std::move(matrices);
  operand = view_of(written_out(lowering, operand));
  return *matrices_of(operand, batch);
}

AttentionShapes attention_shapes(const Lowering& lowering, const AttentionCall& call,
                                 TensorId result) {
  const Shape query = call.query.shape();
  const Shape key = call.key.shape();
  const Shape value = call.value.shape();
  const std::size_t rank = query.size();
  if (key.back() != query.back() || value[rank - 2] != key[rank - 2]) {
    lowering.invalid("keys of " + shape_text(key) + " fit neither queries of " + shape_text(query) +
                     " nor values of " + shape_text(value));
  }
  const auto batch_of = [](const Shape& shape) { return Shape(shape.begin(), shape.end() - 2); };
  AttentionShapes shapes;
  shapes.batch = broadcast_shape(
      lowering, broadcast_shape(lowering, batch_of(query), batch_of(key)), batch_of(value));
  if (!checked_element_count(shapes.batch)) lowering.invalid("too many batch dimensions");
  shapes.result = shapes.batch;
  shapes.result.insert(shapes.result.end(), {query[rank - 2], value.back()});
  lowering.check_result(result, shapes.result, lowering.dtype(result));
  return shapes;
}

namespace {

/// Where the only reader of the result swaps the sequence with the dimension before it, results are
/// laid out so that the swap is a view in row-major order.
bool is_swapped_next(const Lowering& lowering, TensorId result, std::size_t rank) {
  if (rank < 3) return false;
  const NodeId reader = lowering.sole_reader(result);
  if (!reader.valid()) return false;
  const Node& node = lowering.graph().node(reader);
  const auto last = static_cast<std::int64_t>(rank);
  std::vector<std::int64_t> order;
  for (std::int64_t i = 0; i < last; ++i) order.push_back(i);
  std::swap(order[rank - 3], order[rank - 2]);
  const auto positive = [&](const Json& value) {
    const auto number = value.is_number_integer() ? value.get<std::int64_t>() : last;
    return number < 0 ? number + last : number;
  };
  if (node.op_type == "aten.transpose.int") {
    const Json* a = find_member(node.attrs(), "dim0");
    const Json* b = find_member(node.attrs(), "dim1");
    if (a == nullptr || b == nullptr) return false;
    const auto low = std::min(positive(*a), positive(*b));
    const auto high = std::max(positive(*a), positive(*b));
    return low == last - 3 && high == last - 2;
  }
  if (node.op_type != "aten.permute.default") return false;
  const Json* dims = find_member(node.attrs(), "dims");
  if (dims == nullptr || !dims->is_array() || dims->size() != rank) return false;
  for (std::size_t i = 0; i < rank; ++i) {
    if (positive((*dims)[i]) != order[i]) return false;
  }
  return true;
}

}  // namespace

Value attention_target(Lowering& lowering, const AttentionShapes& shapes, DType type,
                       TensorId result) {
  Layout layout = plain_layout(shapes.result, type);
  if (is_swapped_next(lowering, result, shapes.result.size())) {
    Shape swapped = shapes.result;
    std::swap(swapped[swapped.size() - 3], swapped[swapped.size() - 2]);
    auto strides = row_major_strides(swapped);
    std::swap(strides[strides.size() - 3], strides[strides.size() - 2]);
    layout = strided_layout(shapes.result, strides, type);
  }
  return lowering.temporary(type, layout);
}

std::optional<Repeated> scores_view(Lowering& lowering, TensorId tensor, DType type,
                                    const Shape& space, const Shape& scores) {
  const Repeated view = lowering.operand_view(tensor, type);
  if (space == scores) return view;
  Shape padded = view.shape();
  padded.insert(padded.begin(), space.size() - padded.size(), 1);
  const auto whole = reshaped(view, padded);
  return whole ? reshaped(expanded(*whole, space), scores) : std::nullopt;
}

namespace {

Value add_attention(Lowering& lowering, AttentionCall call, TensorId result) {
  if (const auto found = add_attention_of_few(lowering, call, result)) return *found;
  Attention kernel;
  const AttentionShapes shapes = attention_shapes(lowering, call, result);
  const Shape key = call.key.shape();
  kernel.keys = key[key.size() - 2];
  kernel.least_query_length = call.least_query_length;
  kernel.least_key_length = call.least_key_length;
  kernel.causal = call.causal;
  kernel.mask_keeps = call.mask_keeps;
  kernel.mask_fill = call.mask_fill;
  kernel.zero_blocked = call.zero_blocked;
  kernel.zero_nan = call.zero_nan;
  set_planes(lowering, call, shapes.batch, kernel);
  std::vector<Value> reads{call.query.source, call.key.source, call.value.source};
  if (call.mask) {
    kernel.has_mask = true;
    set(take_matrices(lowering, shapes.batch, *call.mask), kernel.mask_strides,
        kernel.mask_offsets);
    kernel.mask_type = call.mask->source.type;
    reads.push_back(call.mask->source);
  }
  if (call.factor) {
    kernel.has_factor = true;
    kernel.factor_offsets = matrices_of(view_of(*call.factor), shapes.batch)->offsets;
    reads.push_back(*call.factor);
  }
  const Value target = attention_target(lowering, shapes, kernel.type, result);
  set_target(shapes, target, kernel);
  lowering.add_kernel(reads, target, std::move(kernel));
  return target;
}

/// Each head of keys or values is that of several heads of queries.
void share_heads(const Lowering& lowering, const Repeated& query, std::string_view name,
                 Repeated& operand) {
  const std::size_t rank = query.dimensions.size();
  if (rank < 3) return;
  const std::int64_t heads = query.shape()[rank - 3];
  const std::int64_t own = operand.shape()[rank - 3];
  if (heads % own != 0) {
    lowering.invalid("argument '" + std::string(name) + "': " + number_text(own) +
                     " heads do not divide the query's " + number_text(heads));
  }
  if (heads != own) operand.dimensions[rank - 3].push_back({heads / own, 0});
}

/// The extents of dimensions that `from` has where `to` is the same space, split or joined in other
/// places: an extent of `shape` is that of `from`, or 1. Nothing if one that is cut has some of
/// both.
std::optional<Shape> moved_extents(const Shape& shape, const Shape& from, const Shape& to) {
  Shape result;
  std::size_t i = 0;
  std::size_t j = 0;
  while (i < from.size() || j < to.size()) {
    // The next run of dimensions that are the same elements in both.
    const std::size_t first_i = i;
    const std::size_t first_j = j;
    std::int64_t left = i < from.size() ? from[i++] : 1;
    std::int64_t right = j < to.size() ? to[j++] : 1;
    while (left != right) {
      if (left < right && i < from.size()) {
        left *= from[i++];
      } else if (right < left && j < to.size()) {
        right *= to[j++];
      } else {
        return std::nullopt;
      }
    }
    std::int64_t extent = 1;
    for (std::size_t k = first_i; k < i; ++k) extent *= shape[k];
    if (extent != 1 && extent != left) return std::nullopt;
    for (std::size_t k = first_j; k < j; ++k) result.push_back(extent == 1 ? 1 : to[k]);
  }
  return result;
}

/// A mask or factor of floats, which broadcasts to scores of shape `space`, for scores of shape
/// `scores` that are the same matrices.
std::optional<Value> in_space(Lowering& lowering, TensorId tensor, const Shape& space,
                              const Shape& scores) {
  const Value value = lowering.strided(lowering.operand(tensor, DType::kFloat32));
  Shape shape = dimensions(value.layout);
  shape.insert(shape.begin(), space.size() - shape.size(), 1);
  const auto batch_of = [](const Shape& each) { return Shape(each.begin(), each.end() - 2); };
  auto moved = moved_extents(batch_of(shape), batch_of(space), batch_of(scores));
  if (!moved) return std::nullopt;
  moved->insert(moved->end(), shape.end() - 2, shape.end());
  return lowering.reshaped(value, *moved);
}

/// Reads from the nodes of a group what stands between a product's operand and what it is made of:
/// numbers as factors, or a division by lengths.
class OperandReading {
 public:
  OperandReading(const Lowering& lowering, const KernelGroup& group)
      : graph_(&lowering.graph()), group_(&group) {}

  bool joins(NodeId id) const {
    const auto& nodes = group_->nodes;
    return id.valid() && std::find(nodes.begin(), nodes.end(), id) != nodes.end();
  }
  TensorId tensor{};
  float least_length = 0.0F;
  bool is_exchanged = false;  ///< rows of `tensor` are columns of the operand

  /// Factors are multiplied to `scale`.
  void read(TensorId operand, double& scale) {
    tensor = operand;
    while (joins(graph_->tensor(tensor).producer)) {
      const Node& node = graph_->node(graph_->tensor(tensor).producer);
      const FusionRole role = fusion_role(node.op_type);
      if (role == FusionRole::kPermute) {
        is_exchanged = true;
      } else if (role == FusionRole::kDiv && node.inputs.size() == 2) {
        least_length = least_length_of(node);
      } else {
        take_factor(node, scale);
      }
      tensor = node.inputs[0];
    }
  }

  void take_factor(const Node& node, double& scale) const {
    const double number = bound(*graph_, node).number("other");
    scale = fusion_role(node.op_type) == FusionRole::kDiv ? scale / number : scale * number;
  }

 private:
  float least_length_of(const Node& division) const {
    TensorId length = division.inputs[1];
    for (;;) {
      const Node& node = graph_->node(graph_->tensor(length).producer);
      if (fusion_role(node.op_type) == FusionRole::kClip) {
        return static_cast<float>(bound(*graph_, node).number("min"));
      }
      length = node.inputs[0];
    }
  }

  const Graph* graph_;
  const KernelGroup* group_;
};

/// Masks that are added, one after the other.
class AddedMasks {
 public:
  AddedMasks(Lowering& lowering, const Shape& scores) : lowering_(&lowering), scores_(&scores) {}

  /// False if a view of the scores cuts the mask.
  bool add(TensorId mask, const Shape& space) {
    if (!first_.valid()) {
      first_ = mask;
      first_space_ = space;
      view_ = scores_view(*lowering_, mask, DType::kFloat32, space, *scores_);
      return view_.has_value();
    }
    if (!sum_) sum_ = in_space(*lowering_, first_, first_space_, *scores_);
    const auto operand = in_space(*lowering_, mask, space, *scores_);
    if (!sum_ || !operand) return false;
    sum_ = add_binary(*lowering_, BinaryOp::kAdd, *sum_, *operand, 1.0F);
    view_ = view_of(*sum_);
    return true;
  }
  const std::optional<Repeated>& view() const { return view_; }

 private:
  Lowering* lowering_;
  const Shape* scores_;
  TensorId first_{};
  Shape first_space_;
  std::optional<Value> sum_;
  std::optional<Repeated> view_;
};

/// The first matrix product of a group; null if there is none.
const Node* first_product(const Graph& graph, const KernelGroup& group) {
  for (const NodeId id : group.nodes) {
    const Node& node = graph.node(id);
    if (fusion_role(node.op_type) == FusionRole::kMatmul) return &node;
  }
  return nullptr;
}

}  // namespace

Lowered<Done> lower_attention_group(Lowering& lowering, const GroupContext& context) {
  const KernelGroup& group = *context.group;
  const Graph& graph = lowering.graph();
  AttentionCall call;
  double scale = 1.0;
  const Node* first = first_product(graph, group);
  const Node& last = graph.node(group.nodes.back());
  if (first == nullptr || first == &last) return NotFused{"attention needs two matrix products"};
  const DType dtype = lowering.dtype(last.outputs.front());
  OperandReading query(lowering, group);
  OperandReading key(lowering, group);
  query.read(first->inputs[0], scale);
  key.read(first->inputs[1], scale);
  call.least_query_length = query.least_length;
  call.least_key_length = key.least_length;
  const Shape& scores = lowering.shape(first->outputs.front());
  AddedMasks added(lowering, scores);
  bool is_filled = false;
  bool behind = false;
  for (const NodeId id : group.nodes) {
    const Node& node = graph.node(id);
    if (&node == first) behind = true;
    if (!behind || &node == first) continue;
    const FusionRole role = fusion_role(node.op_type);
    const auto fits = [&](TensorId operand, TensorId space) {
      const Shape& shape = lowering.shape(space);
      return broadcast_shape(lowering, lowering.shape(operand), shape) == shape;
    };
    if (const auto selects = selecting_mask(graph, node)) {
      const NodeId truth = graph.tensor(selects->truth).producer;
      if (query.joins(truth) && graph.node(truth).op_type == "aten.isnan.default") {
        call.zero_nan = true;
        continue;
      }
      if (!fits(selects->truth, selects->elements)) {
        return NotFused{"the mask does not broadcast to the scores"};
      }
      if (call.mask) return NotFused{"a mask that fills stands behind another one"};
      is_filled = true;
      call.mask_fill = static_cast<float>(selects->fill);
      call.mask_keeps = selects->keeps;
      call.mask = scores_view(lowering, selects->truth, DType::kBool,
                              lowering.shape(selects->elements), scores);
      if (!call.mask) return NotFused{"the mask is cut by a view of the scores"};
    } else if (role == FusionRole::kAdd) {
      if (!fits(node.inputs[1], node.inputs[0])) {
        return NotFused{"the mask does not broadcast to the scores"};
      }
      if (is_filled) return NotFused{"a mask stands behind one that fills"};
      if (!added.add(node.inputs[1], lowering.shape(node.inputs[0]))) {
        return NotFused{"the mask is cut by a view of the scores"};
      }
      call.mask = added.view();
    } else if (role == FusionRole::kMul || role == FusionRole::kDiv) {
      // A factor behind the mask would have to scale the mask, too.
      if (call.mask) return NotFused{"a factor stands behind the mask"};
      if (node.inputs.size() == 1) {
        query.take_factor(node, scale);
        continue;
      }
      call.factor = in_space(lowering, node.inputs[1], lowering.shape(node.inputs[0]), scores);
      if (!call.factor) return NotFused{"the factor is cut by a view of the scores"};
    }
  }
  call.scale = static_cast<float>(scale);
  const DType type = lowering.storage_type(dtype);
  if (dtype == DType::kBFloat16 && type == DType::kFloat32) {
    return NotFused{"without bfloat16 arithmetic every step is rounded by itself"};
  }
  call.query = lowering.operand_view(query.tensor, type);
  call.key = lowering.operand_view(key.tensor, type);
  if (!key.is_exchanged) {
    std::swap(call.key.dimensions.end()[-1], call.key.dimensions.end()[-2]);
  }
  call.value = lowering.operand_view(last.inputs[1], type);
  const TensorId result = last.outputs.front();
  const Value value = add_attention(lowering, call, result);
  lowering.define_moved(result, dimensions(value.layout), dtype, value);
  return Done{};
}

void lower_attention(Lowering& lowering, const GroupContext& context, const BoundNode& node) {
  const TensorId query = tensor_argument(lowering, node, "query");
  const TensorId key = tensor_argument(lowering, node, "key");
  const TensorId value = tensor_argument(lowering, node, "value");
  const auto mask = node.tensor("attn_mask");
  const DType dtype = lowering.dtype(query);
  for (const auto& [name, tensor] : {std::pair{"query", query}, {"key", key}, {"value", value}}) {
    lowering.require_float(name, tensor);
    if (lowering.dtype(tensor) != dtype)
      lowering.refuse(name, "its dtype differs from the query's");
    if (lowering.shape(tensor).size() < 2 ||
        lowering.shape(tensor).size() != lowering.shape(query).size()) {
      lowering.refuse(name, "rank " + std::to_string(lowering.shape(tensor).size()) +
                                " is not that of the query, or below 2");
    }
  }
  if (node.number("dropout_p") != 0.0) lowering.refuse("dropout_p", "only 0 is supported");
  const bool causal = node.boolean("is_causal");
  if (causal && mask) lowering.invalid("argument 'attn_mask': not together with is_causal");

  AttentionCall call;
  const DType type = context.compute_type;
  call.query = lowering.operand_view(query, type);
  call.key = lowering.operand_view(key, type);
  call.value = lowering.operand_view(value, type);
  if (node.find("enable_gqa") != nullptr && node.boolean("enable_gqa")) {
    share_heads(lowering, call.query, "key", call.key);
    share_heads(lowering, call.query, "value", call.value);
  }
  call.scale = node.is_none("scale")
                   ? 1.0F / std::sqrt(static_cast<float>(lowering.shape(query).back()))
                   : static_cast<float>(node.number("scale"));
  call.causal = causal;
  if (mask) {
    const bool is_truth = lowering.dtype(*mask) == DType::kBool;
    if (!is_truth && lowering.dtype(*mask) != dtype) {
      lowering.refuse("attn_mask", "its dtype is neither bool nor the query's");
    }
    Shape scores = lowering.shape(query);
    scores.back() = lowering.shape(key)[scores.size() - 2];
    if (broadcast_shape(lowering, lowering.shape(*mask), scores) != scores) {
      lowering.invalid("argument 'attn_mask': shape " + shape_text(lowering.shape(*mask)) +
                       " does not broadcast to " + shape_text(scores));
    }
    // A query that may look at nothing gets zeros, as in PyTorch, not 0 / 0.
    call.zero_blocked = true;
    const KeyMask* keys = lowering.key_mask(*mask);
    if (const auto hidden = is_truth ? std::nullopt : hidden_lengths(lowering.graph(), *mask)) {
      keys = lowering.key_mask(lowering.graph().node(hidden->lengths).outputs.front());
      if (!hidden->is_mask) call.bias = lowering.operand_view(*mask, type);
    }
    if (keys != nullptr && !keys->is_opposite) {
      if (const auto found = add_cached_attention(lowering, call, *keys, lowering.result())) {
        lowering.define_computed(context, lowering.result(), dimensions(found->layout), dtype,
                                 *found);
        return;
      }
    }
    call.mask = lowering.operand_view(*mask, is_truth ? DType::kBool : DType::kFloat32);
  }
  const Value result = add_attention(lowering, call, lowering.result());
  lowering.define_computed(context, lowering.result(), dimensions(result.layout), dtype, result);
}

}  // namespace npu::onednn
