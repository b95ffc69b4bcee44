// SPDX-License-Identifier: Apache-2.0
// Attention over a cache: a mask of lengths is no tensor for it, but the positions and the number
// that the mask follows from, which the kernel reads when it runs. One mask serves all layers, and
// none of them pays for the capacity.
#include "lowering/attention/attention.hpp"
#include "lowering/attention/attention_call.hpp"

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
  lowering.add_kernel(reads, target, LengthMask{mask.queries, mask.ranges}, KernelKind::kMove);
  return target;
}

}  // namespace

std::optional<Value> add_cached_attention(Lowering& lowering, AttentionCall call,
                                          const KeyMask& mask, TensorId result) {
  const AttentionShapes shapes = attention_shapes(lowering, call, result);
  const Shape key = call.key.shape();
  const Shape query = call.query.shape();
  const bool has_rows = mask.queries == query[query.size() - 2] || !mask.ranges.has_positions;
  if (!has_rows || mask.ranges.keys != key[key.size() - 2]) return std::nullopt;
  // Copying a cache would take the time of its capacity: such a one is no case for the kernel.
  for (const Repeated* each : {&call.key, &call.value}) {
    const auto matrices = matrices_of(*each, shapes.batch);
    if (!matrices || (matrices->strides[1] != 1 && each->shape().back() != 1)) return std::nullopt;
  }
  CachedAttention kernel;
  kernel.ranges = mask.ranges;
  set_planes(lowering, call, shapes.batch, kernel);
  kernel.key_strides[1] = kernel.value_strides[1] = 1;
  std::vector<Value> reads{call.query.source, call.key.source, call.value.source};
  add_lengths(lowering, mask, reads);
  const Value target = attention_target(lowering, shapes, kernel.type, result);
  set_target(shapes, target, kernel);
  lowering.add_kernel(reads, target, std::move(kernel));
  return target;
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
