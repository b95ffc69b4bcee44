// SPDX-License-Identifier: Apache-2.0
// Attention: the op scaled_dot_product_attention, and a group of nodes that write it out, both as
// one kernel of this backend on operands in any strides.
#include <algorithm>
#include <cmath>
#include <limits>

#include "lowering/lowering.hpp"
#include "npu/ops/op_catalogue.hpp"
#include "npu/passes/fusion_groups.hpp"
#include "npu/support/checked.hpp"

namespace npu::onednn {

namespace {

struct AttentionCall {
  Repeated query{};
  Repeated key{};  ///< [.., S, D]
  Repeated value{};
  std::optional<Repeated> mask;
  float scale = 1.0F;
  bool causal = false;
  bool mask_keeps = true;
  float mask_fill = -std::numeric_limits<float>::infinity();
  bool zero_blocked = false;
  bool zero_nan = false;
};

/// First elements and strides of the matrices of an operand, which becomes row-major if it has
/// none.
Matrices take_matrices(Lowering& lowering, const Shape& batch, Repeated& operand) {
  if (auto matrices = matrices_of(operand, batch)) return *std::move(matrices);
  operand = view_of(written_out(lowering, operand));
  return *matrices_of(operand, batch);
}

template <typename To>
void set(const Matrices& from, To& strides, std::vector<std::int64_t>& offsets) {
  std::copy_n(from.strides, 2, strides);
  offsets = from.offsets;
}

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

Value add_attention(Lowering& lowering, AttentionCall call, TensorId result) {
  Attention kernel;
  const Shape query_shape = call.query.shape();
  const Shape key_shape = call.key.shape();
  const Shape value_shape = call.value.shape();
  const std::size_t rank = query_shape.size();
  if (key_shape.back() != query_shape.back() || value_shape[rank - 2] != key_shape[rank - 2]) {
    lowering.invalid("keys of " + shape_text(key_shape) + " fit neither queries of " +
                     shape_text(query_shape) + " nor values of " + shape_text(value_shape));
  }
  const auto batch_of = [](const Shape& shape) { return Shape(shape.begin(), shape.end() - 2); };
  const Shape batch = broadcast_shape(
      lowering, broadcast_shape(lowering, batch_of(query_shape), batch_of(key_shape)),
      batch_of(value_shape));
  const auto planes = checked_element_count(batch);
  if (!planes) lowering.invalid("too many batch dimensions");
  kernel.type = call.query.source.type;
  kernel.queries = query_shape[rank - 2];
  kernel.keys = key_shape[rank - 2];
  kernel.width = query_shape.back();
  kernel.value_width = value_shape.back();
  kernel.scale = call.scale;
  kernel.causal = call.causal;
  kernel.mask_keeps = call.mask_keeps;
  kernel.mask_fill = call.mask_fill;
  kernel.zero_blocked = call.zero_blocked;
  kernel.zero_nan = call.zero_nan;
  kernel.threads = lowering.machine().threads;
  Shape shape = batch;
  shape.insert(shape.end(), {kernel.queries, kernel.value_width});
  lowering.check_result(result, shape, lowering.dtype(result));
  set(take_matrices(lowering, batch, call.query), kernel.query_strides, kernel.query_offsets);
  set(take_matrices(lowering, batch, call.key), kernel.key_strides, kernel.key_offsets);
  set(take_matrices(lowering, batch, call.value), kernel.value_strides, kernel.value_offsets);
  std::vector<Value> reads{call.query.source, call.key.source, call.value.source};
  if (call.mask) {
    kernel.has_mask = true;
    set(take_matrices(lowering, batch, *call.mask), kernel.mask_strides, kernel.mask_offsets);
    kernel.mask_type = call.mask->source.type;
    reads.push_back(call.mask->source);
  }
  Layout layout = plain_layout(shape, kernel.type);
  if (is_swapped_next(lowering, result, shape.size())) {
    Shape swapped = shape;
    std::swap(swapped[swapped.size() - 3], swapped[swapped.size() - 2]);
    auto strides = row_major_strides(swapped);
    std::swap(strides[strides.size() - 3], strides[strides.size() - 2]);
    layout = strided_layout(shape, strides, kernel.type);
  }
  const Value target = lowering.temporary(kernel.type, layout);
  kernel.result_row = strides_of(layout)[shape.size() - 2];
  kernel.result_offsets = matrices_of(view_of(target), batch)->offsets;
  const std::size_t scratch = kernel.scratch_bytes();
  lowering.add_kernel(reads, target, std::move(kernel), KernelKind::kCompute, scratch);
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

}  // namespace

Lowered<Done> lower_attention_group(Lowering& lowering, const FusionGroup& group) {
  const Graph& graph = lowering.graph();
  const auto joins = [&](NodeId id) {
    return id.valid() && std::find(group.nodes.begin(), group.nodes.end(), id) != group.nodes.end();
  };
  AttentionCall call;
  double scale = 1.0;
  const auto take_factor = [&](const Node& node) {
    const BoundNode arguments = bound(graph, node);
    const double number = arguments.number("other");
    scale = fusion_role(node.op_type) == FusionRole::kDiv ? scale / number : scale * number;
  };
  const Node* first = nullptr;
  for (const NodeId id : group.nodes) {
    const Node& node = graph.node(id);
    if (fusion_role(node.op_type) == FusionRole::kMatmul && first == nullptr) first = &node;
  }
  const Node& last = graph.node(group.nodes.back());
  if (first == nullptr || first == &last) return NotFused{"attention needs two matrix products"};
  const auto through_factors = [&](TensorId tensor) {
    while (joins(graph.tensor(tensor).producer)) {
      const Node& node = graph.node(graph.tensor(tensor).producer);
      take_factor(node);
      tensor = node.inputs[0];
    }
    return tensor;
  };
  const DType dtype = lowering.dtype(last.outputs.front());
  const TensorId query = through_factors(first->inputs[0]);
  const TensorId key = through_factors(first->inputs[1]);
  double before_mask = 1.0;
  bool behind = false;
  for (const NodeId id : group.nodes) {
    const Node& node = graph.node(id);
    if (&node == first) behind = true;
    if (!behind || &node == first) continue;
    std::optional<TensorId> mask;
    TensorId scores = node.inputs[0];
    if (const auto selects = selecting_mask(graph, node)) {
      const NodeId truth = graph.tensor(selects->truth).producer;
      if (joins(truth) && graph.node(truth).op_type == "aten.isnan.default") {
        call.zero_nan = true;
        continue;
      }
      mask = selects->truth;
      scores = selects->elements;
      call.mask_fill = static_cast<float>(selects->fill);
      call.mask_keeps = selects->keeps;
    } else if (fusion_role(node.op_type) == FusionRole::kAdd) {
      mask = node.inputs[1];
    } else if (fusion_role(node.op_type) == FusionRole::kMul ||
               fusion_role(node.op_type) == FusionRole::kDiv) {
      take_factor(node);
    }
    if (!mask) continue;
    before_mask = scale;
    const bool is_truth = lowering.dtype(*mask) == DType::kBool;
    call.mask = lowering.operand_view(*mask, is_truth ? DType::kBool : DType::kFloat32);
    const Shape& shape = lowering.shape(scores);
    if (broadcast_shape(lowering, lowering.shape(*mask), shape) != shape) {
      return NotFused{"the mask does not broadcast to the scores"};
    }
  }
  // A factor behind the mask would have to scale the mask, too.
  if (call.mask && before_mask != scale) return NotFused{"a factor stands behind the mask"};
  call.scale = static_cast<float>(scale);
  const DType type = lowering.storage_type(dtype);
  if (dtype == DType::kBFloat16 && type == DType::kFloat32) {
    return NotFused{"without bfloat16 arithmetic every step is rounded by itself"};
  }
  call.query = lowering.operand_view(query, type);
  call.key = lowering.operand_view(key, type);
  std::swap(call.key.dimensions.end()[-1], call.key.dimensions.end()[-2]);
  call.value = lowering.operand_view(last.inputs[1], type);
  const TensorId result = last.outputs.front();
  const Value value = add_attention(lowering, call, result);
  lowering.define_moved(result, dimensions(value.layout), dtype, value);
  return Done{};
}

void lower_attention(Lowering& lowering, const BoundNode& node) {
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
  const DType type = lowering.compute_type();
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
    call.mask = lowering.operand_view(*mask, is_truth ? DType::kBool : DType::kFloat32);
  }
  const Value result = add_attention(lowering, call, lowering.result());
  lowering.define_computed(lowering.result(), dimensions(result.layout), dtype, result);
}

}  // namespace npu::onednn
