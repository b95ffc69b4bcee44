// SPDX-License-Identifier: Apache-2.0
// Ops that give their first operand with some of its elements replaced, where the result lies in
// the operand's memory: what stays is neither read nor written. A part takes an item for each of
// its elements; of a tail only the run knows the rows, so the items of rows that stay end at once.
#include <algorithm>

#include "kernels/group_kernel.hpp"
#include "ops/op_name.hpp"

namespace npu::opencl {
namespace {

constexpr std::uint64_t kGroup = 64;

/// One item for each element of a shape; gives the names of its index.
Index item_of(Emitter& emitter, const Shape& shape, std::int64_t count) {
  emitter.line("const " + emitter.index_type() + " g = get_global_id(0);");
  emitter.line("if (g >= " + emitter.size(count) + ") return;");
  return emitter.define_index(index_of_place("g", shape));
}

GeneratedKernel finished_items(const Emitter& emitter, std::int64_t count) {
  const auto items = static_cast<std::uint64_t>(std::max<std::int64_t>(count, 0));
  return finished(emitter, {(items + kGroup - 1) / kGroup, 1, 1}, {kGroup, 1, 1});
}

GeneratedKernel part_kernel(Emitter& emitter, const BoundNode& node, TensorId result) {
  const TensorId source = tensor_of(emitter, node, "src");
  const ScatteredPart part = scattered_part(emitter, node);
  const std::int64_t count = emitter.model().count(source);
  const Index at = item_of(emitter, part.shape, count);
  Index target = at;
  const auto place = static_cast<std::ptrdiff_t>(part.dimension);
  if (part.selects) {
    target.insert(target.begin() + place, std::to_string(part.begin));
  } else {
    target[part.dimension] = plus(times(at[part.dimension], part.step), part.begin);
  }
  emitter.store(result, target, emitter.element_as(source, at, emitter.dtype(result)));
  return finished_items(emitter, count);
}

GeneratedKernel tail_kernel(Emitter& emitter, const BoundNode& node, TensorId result) {
  const std::int64_t count = emitter.model().count(result);
  const Index at = item_of(emitter, emitter.shape(result), count);
  const TailRows rows = tail_rows(emitter, node);
  emitter.line("if (" + at[rows.dimension] + " < " + rows.count + ") return;");
  std::string value = rows.fill;
  if (rows.repeats_last) {
    Index last = at;
    last[rows.dimension] = "(" + rows.count + " - 1)";
    value = emitter.element(result, last);  // which no item writes
  }
  emitter.store(result, at, value);
  return finished_items(emitter, count);
}

}  // namespace

GeneratedKernel overwrite_kernel(const KernelTask& task) {
  const NodeId id = task.nodes.front();
  const bool is_result = task.nodes.size() == 1 && task.results.size() == 1 &&
                         task.results[0].tensor == task.model.node(id).outputs[0];
  if (!is_result) throw CannotFuse{"what is written where it lies has a kernel of its own"};
  if (class_of(task.model, id) == OpClass::kBlock) return scatter_kernel(task, id);
  Emitter emitter(task.model, {});
  const BoundNode& node = task.model.bound(id);
  const TensorId self = tensor_of(emitter, node, "self");
  emitter.expect_shape(node.node(), 0, emitter.shape(self));
  emitter.expect_dtype(node.node(), 0, emitter.dtype(self));
  const TensorId result = node.node().outputs[0];
  return node.node().op_type == "npu.tail" ? tail_kernel(emitter, node, result)
                                           : part_kernel(emitter, node, result);
}

}  // namespace npu::opencl
