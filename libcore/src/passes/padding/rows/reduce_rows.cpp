// SPDX-License-Identifier: Apache-2.0
// Means and variances over padded sizes: sums, divided by the number of valid rows. O(rank).
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "ops/op_catalogue.hpp"
#include "ops/op_name.hpp"
#include "passes/padding/rows/rewritings.hpp"

namespace npu::padding {
namespace {

// Dimensions that a node reduces, whether they stay as 1, and how many rows that are.
struct Reduced {
  Json dims = Json::array();
  bool keeps = false;
  SizeExpression count{1};
};

std::vector<std::int64_t> dims_of(const RowWriter& writer, const Node& node) {
  const auto rank =
      static_cast<std::int64_t>(writer.graph().tensor(node.inputs.front()).shape.size());
  std::vector<std::int64_t> dims;
  const bool is_pool = spatial_rank(node.op_type) > 0;
  const BoundNode bound(writer.graph(), node, find_op(node.op_type)->schema);
  if (const BoundArgument* found = is_pool ? nullptr : bound.find("dim");
      found != nullptr && found->kind == BoundArgument::Kind::kValue && !found->value.is_null()) {
    dims = bound.integers("dim");
  }
  for (std::int64_t& dim : dims) dim += dim < 0 ? rank : 0;
  if (!dims.empty()) return dims;
  for (std::int64_t d = is_pool ? rank - spatial_rank(node.op_type) : 0; d < rank; ++d) {
    dims.push_back(d);
  }
  return dims;
}

Reduced reduced_by(const RowWriter& writer, NodeId id) {
  const Node& node = writer.graph().node(id);
  const SizeShape& shape = writer.shapes().of(node.inputs.front());
  Reduced reduced;
  // All that are not in the result are reduced, where it has as many dimensions they are 1.
  reduced.keeps = writer.result(id).shape.size() == shape.size();
  std::vector<char> is_reduced(shape.size(), 0);
  for (const std::int64_t dim : dims_of(writer, node)) is_reduced[index_of(dim)] = 1;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (is_reduced[d] == 0) continue;
    reduced.dims.push_back(d);
    reduced.count = reduced.count * shape[d];
  }
  return reduced;
}

Json sum_of(RowWriter& writer, NodeId id, Json operand, const Reduced& reduced) {
  return writer.insert(
      id, writer.result(id).name + ":sum", "aten.sum.dim_IntList",
      Json::array({std::move(operand)}), {{"dim", reduced.dims}, {"keepdim", reduced.keeps}},
      writer.shapes().of(writer.result_of(id)), writer.result(id).shape, writer.result(id).dtype);
}

}  // namespace

void rewrite_mean(RowWriter& writer, NodeId id) {
  const Reduced reduced = reduced_by(writer, id);
  writer.replace(
      id, "aten.div.Tensor",
      Json::array(
          {sum_of(writer, id, writer.mention(writer.graph().node(id).inputs.front()), reduced),
           writer.number(reduced.count, writer.result(id).dtype)}),
      Json::object());
}

void rewrite_variance(RowWriter& writer, NodeId id, double correction) {
  const Reduced reduced = reduced_by(writer, id);
  const TensorId operand = writer.graph().node(id).inputs.front();
  const TensorInfo& source = writer.graph().tensor(operand);
  const TensorInfo& result = writer.result(id);
  // In 16 bits each step would round.
  const bool is_narrow = dtype_size(source.dtype) < dtype_size(DType::kFloat32);
  const DType wide = is_narrow ? DType::kFloat32 : source.dtype;
  const SizeShape& shape = writer.shapes().of(operand);
  const auto add = [&](const char* what, const char* op_type, Json inputs, Json attrs,
                       const SizeShape& sizes, const Shape& numbers) {
    return writer.insert(id, result.name + what, op_type, std::move(inputs), std::move(attrs),
                         sizes, numbers, wide);
  };
  Json rows = writer.mention(operand);
  if (is_narrow) {
    rows = add(":wide", "aten._to_copy.default", Json::array({rows}), {{"dtype", type_text(wide)}},
               shape, source.shape);
  }
  SizeShape kept = shape;
  Shape numbers = source.shape;
  for (const Json& dim : reduced.dims) {
    kept[dim.get<std::size_t>()] = SizeExpression(1);
    numbers[dim.get<std::size_t>()] = 1;
  }
  const Json mean = add(":mean", "aten.mean.dim", Json::array({rows}),
                        {{"dim", reduced.dims}, {"keepdim", true}}, kept, numbers);
  const Json above = add(":above", "aten.sub.Tensor", Json::array({rows, mean}), Json::object(),
                         shape, source.shape);
  const Json square = add(":square", "aten.mul.Tensor", Json::array({above, above}), Json::object(),
                          shape, source.shape);
  const SizeShape& sizes = writer.shapes().of(writer.result_of(id));
  const Json sum = add(":sum", "aten.sum.dim_IntList", Json::array({square}),
                       {{"dim", reduced.dims}, {"keepdim", reduced.keeps}}, sizes, result.shape);
  const Json count = writer.number(reduced.count - static_cast<std::int64_t>(correction), wide);
  // The last step has the name of the node.
  struct Step {
    const char* what;
    const char* op_type;
    Json inputs;
    Json attrs;
  };
  std::vector<Step> steps{{":variance", "aten.div.Tensor", Json::array({count}), Json::object()}};
  if (functional_name(writer.graph().node(id).op_type) != "var") {
    steps.push_back({":root", "aten.sqrt.default", Json::array(), Json::object()});
  }
  if (is_narrow) {
    steps.push_back(
        {"", "aten._to_copy.default", Json::array(), {{"dtype", type_text(result.dtype)}}});
  }
  Json last = sum;
  for (Step& step : steps) {
    step.inputs.insert(step.inputs.begin(), last);
    if (&step == &steps.back()) {
      return writer.replace(id, step.op_type, std::move(step.inputs), std::move(step.attrs));
    }
    last = add(step.what, step.op_type, std::move(step.inputs), std::move(step.attrs), sizes,
               result.shape);
  }
}

}  // namespace npu::padding
