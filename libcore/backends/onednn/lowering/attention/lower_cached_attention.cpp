// SPDX-License-Identifier: Apache-2.0
// Attention over a cache: a mask of lengths is no tensor for it, but the positions and the number
// that the mask follows from, which the kernel reads when it runs. One mask serves all layers, and
// none of them pays for the capacity. An attention of few queries over many keys takes the kernel
// as well, such as that over what a source has left in states.
#include <utility>

#include "lowering/attention/attention.hpp"
#include "lowering/attention/attention_call.hpp"
#include "lowering/elementwise/elementwise.hpp"
#include "ops/hidden_score.hpp"
#include "passes/fusion/cached_attention_form.hpp"

namespace npu::onednn {

namespace {

/// The operands of the mask, in the order in which kernels read them.
void add_lengths(Lowering& lowering, const KeyMask& mask, std::vector<Value>& reads) {
  for (const auto& each : {mask.positions, mask.valid}) {
    if (each) reads.push_back(lowering.plain(lowering.stored(*each)));
  }
}

/// The mask as a tensor of bool.
Value make_key_mask(Lowering& lowering, const KeyMask& mask) {
  std::vector<Value> reads;
  add_lengths(lowering, mask, reads);
  const Value target = lowering.temporary(
      DType::kBool, plain_layout({1, 1, mask.queries, mask.ranges.keys}, DType::kBool));
  lowering.add_kernel(reads, target, LengthMask{mask.queries, mask.ranges, mask.is_opposite},
                      KernelKind::kMove);
  return target;
}

/// Adds a kernel whose ranges, which are made of `lengths`, are set.
std::optional<Value> add_over_rows(Lowering& lowering, AttentionCall call, CachedAttention kernel,
                                   const std::vector<Value>& lengths, TensorId result) {
  const AttentionShapes shapes = attention_shapes(lowering, call, result);
  // Copying a cache would take the time of its capacity: such a one is no case for the kernel.
  for (const Repeated* each : {&call.key, &call.value}) {
    const auto matrices = matrices_of(*each, shapes.batch);
    if (!matrices || (matrices->strides[1] != 1 && each->shape().back() != 1)) return std::nullopt;
  }
  set_planes(lowering, call, shapes.batch, kernel);
  kernel.key_strides[1] = kernel.value_strides[1] = 1;
  std::vector<Value> reads{call.query.source, call.key.source, call.value.source};
  reads.insert(reads.end(), lengths.begin(), lengths.end());
  kernel.cap = call.cap;
  if (call.sinks) {
    kernel.has_sinks = true;
    kernel.sink_offsets = matrices_of(view_of(*call.sinks), shapes.batch)->offsets;
    reads.push_back(*call.sinks);
  }
  if (call.bias) {
    kernel.has_bias = true;
    set(take_matrices(lowering, shapes.batch, *call.bias), kernel.bias_strides,
        kernel.bias_offsets);
    reads.push_back(call.bias->source);
  }
  const Value target = attention_target(lowering, shapes, kernel.type, result);
  set_target(shapes, target, kernel);
  lowering.add_kernel(reads, target, std::move(kernel));
  return target;
}

}  // namespace

std::optional<Value> add_cached_attention(Lowering& lowering, AttentionCall call,
                                          const KeyMask& mask, TensorId result) {
  const Shape key = call.key.shape();
  const Shape query = call.query.shape();
  const bool has_rows = mask.queries == query[query.size() - 2] || !mask.ranges.has_positions;
  if (!has_rows || mask.ranges.keys != key[key.size() - 2]) return std::nullopt;
  CachedAttention kernel;
  kernel.ranges = mask.ranges;
  std::vector<Value> lengths;
  add_lengths(lowering, mask, lengths);
  return add_over_rows(lowering, std::move(call), std::move(kernel), lengths, result);
}

std::optional<Value> add_attention_of_few(Lowering& lowering, const AttentionCall& call,
                                          TensorId result) {
  constexpr std::int64_t kFewQueries = 4;
  constexpr std::int64_t kManyKeys = 32;  // for each query
  const Shape query = call.query.shape();
  const Shape key = call.key.shape();
  const std::int64_t queries = query[query.size() - 2];
  const std::int64_t keys = key[key.size() - 2];
  const DType type = call.query.source.type;
  const bool is_plain = !call.factor && !call.causal && !call.zero_nan &&
                        call.least_query_length == 0.0F && call.least_key_length == 0.0F &&
                        (!call.mask || call.mask->source.type == type);
  if (!is_plain || queries > kFewQueries || keys < kManyKeys * queries) return std::nullopt;
  AttentionCall over_rows = call;
  CachedAttention kernel;
  kernel.ranges = {keys, false, false, false, 0};
  kernel.zero_blocked = call.zero_blocked;
  over_rows.bias = std::exchange(over_rows.mask, std::nullopt);
  if (over_rows.bias) {
    const DType scores = lowering.dtype(result);
    kernel.hidden_bias = static_cast<float>(most_hidden_score(scores));
  }
  return add_over_rows(lowering, std::move(over_rows), std::move(kernel), {}, result);
}

Lowered<Done> lower_cached_attention_group(Lowering& lowering, const GroupContext& context) {
  const Graph& graph = lowering.graph();
  const NodeId last = context.group->nodes.back();
  const auto form = cached_attention_form(graph, last);
  if (!form) return NotFused{"it is no attention over a cache"};
  const KeyMask* lengths = lowering.key_mask(graph.node(form->lengths).outputs.front());
  if (lengths == nullptr) return NotFused{"the lengths of its keys are not known"};
  const TensorId result = graph.node(last).outputs.front();
  const DType dtype = lowering.dtype(result);
  if (dtype != DType::kFloat32 && dtype != DType::kFloat16 && dtype != DType::kBFloat16) {
    return NotFused{"its tensors are no floats of up to 32 bits"};
  }
  const DType type = lowering.storage_type(dtype);
  if (dtype == DType::kBFloat16 && type == DType::kFloat32) {
    return NotFused{"without bfloat16 arithmetic every step is rounded by itself"};
  }
  AttentionCall call;
  call.scale = static_cast<float>(form->scale);
  call.cap = static_cast<float>(form->cap);
  call.query = lowering.operand_view(form->query, type);
  call.key = lowering.operand_view(form->key, type);
  std::swap(call.key.dimensions.end()[-1], call.key.dimensions.end()[-2]);
  call.value = lowering.operand_view(form->value, type);
  if (form->sinks.valid()) {
    const Value sinks = lowering.strided(lowering.operand(form->sinks, DType::kFloat32));
    Shape shape = dimensions(sinks.layout);
    shape.insert(shape.begin(), call.query.shape().size() - shape.size(), 1);
    call.sinks = lowering.reshaped(sinks, shape);
  }
  if (form->bias.valid()) {
    Shape scores = call.query.shape();
    scores.back() = lowering.shape(form->key).back();
    call.bias = scores_view(lowering, form->bias, type, form->bias_space, scores);
    if (!call.bias) return NotFused{"its bias is cut by a view of the scores"};
  }
  const auto found = add_cached_attention(lowering, call, *lengths, result);
  if (!found) return NotFused{"its keys or values do not lie in rows"};
  lowering.define_moved(result, dimensions(found->layout), dtype, *found);
  return Done{};
}

void lower_opposite(Lowering& lowering, const GroupContext& context, const BoundNode& node) {
  const TensorId self = tensor_argument(lowering, node, "self");
  const KeyMask* mask = lowering.key_mask(self);
  if (mask == nullptr || context.group != nullptr) {
    return lower_typed_unary(lowering, context, node);
  }
  KeyMask opposite = *mask;
  opposite.is_opposite = !mask->is_opposite;
  opposite.node = lowering.graph().tensor(lowering.result()).producer;
  lowering.check_result(lowering.result(), lowering.shape(self), DType::kBool);
  lowering.define_key_mask(lowering.result(), opposite, make_key_mask);
}

void lower_length_mask(Lowering& lowering, const BoundNode& node) {
  KeyMask mask;
  mask.node = lowering.graph().tensor(lowering.result()).producer;
  mask.positions = node.tensor("positions");
  mask.valid = node.tensor("valid");
  mask.ranges.keys = node.integer("keys");
  mask.ranges.has_positions = mask.positions.has_value();
  mask.ranges.has_valid = mask.valid.has_value();
  mask.ranges.causal = mask.positions && node.boolean("causal");
  const std::int64_t window = mask.positions ? node.integer("window") : -1;
  mask.ranges.window = std::clamp<std::int64_t>(window, 0, kMaxOperandBytes);
  if (mask.ranges.keys < 1) lowering.invalid("argument 'keys': expected a number above 0");
  for (const auto& [name, tensor] :
       {std::pair{"positions", mask.positions}, {"valid", mask.valid}}) {
    if (!tensor) continue;
    const bool is_list = *name == 'p';
    if (lowering.dtype(*tensor) != DType::kInt64 ||
        lowering.shape(*tensor).size() != (is_list ? 1U : 0U)) {
      lowering.invalid("argument '" + std::string(name) + "': expected int64 " +
                       (is_list ? "with one dimension" : "without dimensions"));
    }
    if (is_list) mask.queries = lowering.shape(*tensor)[0];
  }
  lowering.check_result(lowering.result(), {1, 1, mask.queries, mask.ranges.keys}, DType::kBool);
  lowering.define_key_mask(lowering.result(), mask, make_key_mask);
}

}  // namespace npu::onednn
