// SPDX-License-Identifier: Apache-2.0
// Rows of tables by index, and sequences of indices.
#include "lowering/movement/movement.hpp"

namespace npu::onednn {

void lower_embedding(Lowering& lowering, const BoundNode& node) {
  const TensorId weight = tensor_argument(lowering, node, "weight");
  const TensorId indices = tensor_argument(lowering, node, "indices");
  lowering.require_float("weight", weight);
  const DType index_type = lowering.dtype(indices);
  if (index_type != DType::kInt64 && index_type != DType::kInt32) {
    lowering.refuse("indices", "dtype " + std::string(dtype_name(index_type)) +
                                   " is not supported; use int64 or int32");
  }
  const Shape& table_shape = lowering.shape(weight);
  if (table_shape.size() != 2) {
    lowering.invalid("argument 'weight': expected rank 2, found shape " + shape_text(table_shape));
  }
  const Value table = lowering.plain(lowering.stored(weight));
  const Value index = lowering.plain(lowering.stored(indices));
  Shape result = lowering.shape(indices);
  GatherRows call;
  call.count = element_count(result);
  call.rows = table_shape[0];
  call.row_bytes = table_shape[1] * static_cast<std::int64_t>(dtype_size(table.type));
  call.wide_indices = index_type == DType::kInt64;
  result.push_back(table_shape[1]);
  const Value target = lowering.temporary(table.type, plain_layout(result, table.type));
  call.node = node_text(lowering.node());
  lowering.add_kernel({table, index}, target, std::move(call));
  lowering.define_moved(lowering.result(), result, lowering.dtype(weight), target);
}

void lower_arange(Lowering& lowering, const BoundNode& node) {
  const DType dtype = lowering.dtype(lowering.result());
  if (dtype != DType::kInt64) return lower_linspace(lowering, node);
  const auto integer = [&](std::string_view argument, std::int64_t otherwise) {
    if (node.find(argument) == nullptr) return otherwise;
    const BoundArgument& bound = *node.find(argument);
    if (!bound.value.is_number_integer()) lowering.refuse(argument, "only an integer is supported");
    return bound.value.get<std::int64_t>();
  };
  const std::int64_t start = integer("start", 0);
  const std::int64_t end = integer("end", 0);
  const std::int64_t step = integer("step", 1);
  if (step < 1 || end <= start)
    lowering.refuse("", "only a growing sequence with elements is supported");
  const Shape shape{(end - start - 1) / step + 1};
  lowering.check_result(lowering.result(), shape, dtype);
  const Value target = lowering.temporary(dtype, plain_layout(shape, dtype));
  lowering.add_kernel(std::span<const Value>(), target, Sequence{start, step, shape[0]});
  lowering.define_moved(lowering.result(), shape, dtype, target);
}

}  // namespace npu::onednn
