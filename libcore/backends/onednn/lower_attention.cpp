// SPDX-License-Identifier: Apache-2.0
// scaled_dot_product_attention, written out: scores = scale * query key^T in float32, mask added,
// softmax in float32, times value. The scores are materialised: [.., L, S] floats.
#include <cmath>

#include "kernels.hpp"
#include "lowering.hpp"
#include "npu/support/checked.hpp"

namespace npu::onednn {

namespace {

Value transposed_key(const Value& key) {
  const int rank = key.layout.data.ndims;
  std::vector<int> permutation(static_cast<std::size_t>(rank));
  for (int i = 0; i < rank; ++i) permutation[static_cast<std::size_t>(i)] = i;
  std::swap(permutation[static_cast<std::size_t>(rank - 1)],
            permutation[static_cast<std::size_t>(rank - 2)]);
  Value result = key;
  result.layout = key.layout.permute_axes(permutation);
  return result;
}

}  // namespace

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
  if (node.find("enable_gqa") != nullptr && node.boolean("enable_gqa")) {
    lowering.refuse("enable_gqa", "grouped queries are not supported");
  }
  const bool causal = node.boolean("is_causal");
  if (causal && mask) lowering.invalid("argument 'attn_mask': not together with is_causal");

  const Shape& query_shape = lowering.shape(query);
  const std::size_t rank = query_shape.size();
  const std::int64_t width = query_shape.back();
  MatmulCall scores_call;
  scores_call.a = lowering.strided(lowering.operand(query));
  scores_call.b = transposed_key(lowering.strided(lowering.operand(key)));
  scores_call.scale = node.is_none("scale") ? 1.0F / std::sqrt(static_cast<float>(width))
                                            : static_cast<float>(node.number("scale"));
  scores_call.type = DType::kFloat32;
  Value scores = add_matmul(lowering, scores_call);
  const Shape scores_shape = dimensions(scores.layout);

  if (mask) {
    lowering.require_float("attn_mask", *mask);
    if (lowering.dtype(*mask) != dtype) {
      lowering.refuse("attn_mask", "its dtype differs from the query's");
    }
    if (broadcast_shape(lowering, lowering.shape(*mask), scores_shape) != scores_shape) {
      lowering.invalid("argument 'attn_mask': shape " + shape_text(lowering.shape(*mask)) +
                       " does not broadcast to " + shape_text(scores_shape));
    }
    scores = add_binary(lowering, BinaryOp::kAdd, scores, lowering.operand(*mask, DType::kFloat32),
                        1.0F);
  }
  if (causal) {
    CausalMask call;
    call.rows = scores_shape[rank - 2];
    call.columns = scores_shape[rank - 1];
    for (std::size_t i = 0; i + 2 < rank; ++i) call.planes *= scores_shape[i];
    // In place: nothing else reads the scores.
    lowering.add_kernel({scores}, scores, [call](std::span<std::byte* const> operands) {
      call.run(static_cast<float*>(static_cast<void*>(operands[1])));
    });
  }
  const Value weights = add_softmax(lowering, scores, rank - 1, false);
  if (mask) {
    // In place; a query that may look at nothing gets zeros, as in PyTorch, not 0 / 0.
    const BlockedRows call{scores_shape[rank - 1],
                           *checked_element_count(scores_shape) / scores_shape[rank - 1]};
    lowering.add_kernel({scores, weights}, weights, [call](std::span<std::byte* const> operands) {
      call.run(static_cast<const float*>(static_cast<const void*>(operands[0])),
               static_cast<float*>(static_cast<void*>(operands[2])));
    });
  }
  MatmulCall result_call;
  result_call.a = lowering.in_type(weights, lowering.compute_type());
  result_call.b = lowering.strided(lowering.operand(value));
  result_call.type = lowering.compute_type();
  const Value result = add_matmul(lowering, result_call);
  lowering.define_computed(lowering.result(), dimensions(result.layout), dtype, result);
}

}  // namespace npu::onednn
