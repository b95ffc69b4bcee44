// SPDX-License-Identifier: Apache-2.0
// Linear and cubic resampling between sizes that are no multiples of each other. O(rank) nodes.
#include <string>
#include <utility>
#include <vector>

#include "ops/moved_ops.hpp"
#include "passes/padding/rows/rewritings.hpp"

namespace npu::padding {
namespace {

struct Tap {
  Json row;     ///< of the operand, for each result
  Json weight;  ///< likewise
};

// Result i lies at (2i + 1) * from / (2 * to) - 1/2, or at i * (from - 1) / (to - 1) where
// corners are aligned: between two rows, or four of a cubic.
std::vector<Tap> taps_between(RowWriter& writer, NodeId before, const SizeExpression& from,
                              const SizeExpression& to, bool aligns) {
  const Node& node = writer.graph().node(before);
  const TensorInfo& result = writer.graph().tensor(node.outputs.front());
  const std::string name = result.name + ":place";
  const SizeShape shape{to};
  const Shape numbers{to.evaluate(writer.sizes().capacities())};
  const bool four = is_cubic(node.op_type);
  const auto add = [&](const char* op, Json inputs, Json attrs, DType dtype) {
    return writer.insert(before, name, op, std::move(inputs), std::move(attrs), shape, numbers,
                         dtype);
  };
  const auto with = [&](const char* op, const Json& left, const SizeExpression& size) {
    return writer.arithmetic(before, name, op, left, size, shape, numbers);
  };
  const auto not_below = [&](const Json& left) {
    return add("aten.clamp.default", Json::array({left}), {{"min", 0}}, DType::kInt64);
  };
  const auto at_most = [&](const Json& left, const SizeExpression& size) {
    if (const auto number = size.constant()) {
      return add("aten.clamp.default", Json::array({left}), {{"max", *number}}, DType::kInt64);
    }
    return add("aten.minimum.default", Json::array({left, writer.nodes().value(size)}),
               Json::object(), DType::kInt64);
  };
  const Json line = writer.line(before, name, to);
  const SizeExpression least[] = {to - 1, SizeExpression(1)};
  const SizeExpression below = aligns ? SizeExpression::max(least) : SizeExpression(2) * to;
  Json above = with("mul", line, aligns ? from - 1 : SizeExpression(2) * from);
  // A cubic may begin in front of the first row: one row more, so that nothing is negative.
  if (!aligns)
    above = four ? with("add", above, from + to) : not_below(with("add", above, from - to));
  const Json base = with("floor_divide", above, below);
  const auto converted = [&](const Json& left, const SizeShape& own, const Shape& counts) {
    return writer.insert(before, name, "aten._to_copy.default", Json::array({left}),
                         {{"dtype", type_text(result.dtype)}}, own, counts, result.dtype);
  };
  Json inputs = Json::array({converted(with("remainder", above, below), shape, numbers)});
  Json attrs = Json::object();
  if (const auto number = below.constant()) {
    attrs["other"] = *number;
  } else {
    inputs.push_back(converted(writer.nodes().value(below), {}, {}));
  }
  const Json part = add("aten.div.Tensor", std::move(inputs), std::move(attrs), result.dtype);
  const auto scalar = [&](const char* op, const Json& left, double other) {
    return add(op, Json::array({left}), {{"other", other}}, result.dtype);
  };
  const auto plus = [&](const Json& left, double other) {
    return scalar("aten.add.Scalar", left, other);
  };
  const auto times = [&](const Json& left, double other) {
    return scalar("aten.mul.Scalar", left, other);
  };
  const auto product = [&](const Json& left, const Json& right) {
    return add("aten.mul.Tensor", Json::array({left, right}), Json::object(), result.dtype);
  };
  const Json rest = plus(times(part, -1), 1);
  if (!four) {
    const Json first = at_most(base, from - 1);
    return {{first, rest}, {at_most(with("add", first, SizeExpression(1)), from - 1), part}};
  }
  // Keys' polynomials with a = -3/4, as PyTorch has them.
  constexpr double kA = -0.75;
  const auto near = [&](const Json& x) {
    return plus(product(product(plus(times(x, kA + 2), -kA - 3), x), x), 1);
  };
  const auto far = [&](const Json& x) {
    return plus(product(plus(product(plus(times(x, kA), -5 * kA), x), 8 * kA), x), -4 * kA);
  };
  std::vector<Tap> taps{
      {{}, far(plus(part, 1))}, {{}, near(part)}, {{}, near(rest)}, {{}, far(plus(rest, 1))}};
  std::int64_t at = aligns ? -1 : -2;
  for (Tap& tap : taps) {
    tap.row = at_most(not_below(with("add", base, SizeExpression(at++))), from - 1);
  }
  return taps;
}

}  // namespace

// Places are fractions of integers, so that rows and weights are right to the last bits.
void rewrite_resampled(RowWriter& writer, NodeId id, bool aligns) {
  const TensorId operand = writer.graph().node(id).inputs.front();
  const TensorId output = writer.graph().node(id).outputs.front();
  const TensorInfo& result = writer.graph().tensor(output);
  SizeShape shape = writer.shapes().of(operand);
  Shape numbers = writer.graph().tensor(operand).shape;
  const auto add = [&](const char* op, Json inputs, Json attrs) {
    return writer.insert(id, result.name + ":part", op, std::move(inputs), std::move(attrs), shape,
                         numbers, result.dtype);
  };
  Json value = writer.mention(operand);
  Json last;  // is to be added
  for (std::size_t d = 2; d < shape.size(); ++d) {
    const SizeExpression from = shape[d];
    const SizeExpression& to = writer.shapes().of(output)[d];
    if (writer.sizes().same(from, to)) continue;
    if (!last.is_null()) {
      value = add("aten.add.Tensor", Json::array({value, last}), {{"alpha", 1}});
    }
    shape[d] = to;
    numbers[d] = result.shape[d];
    SizeShape column_shape(shape.size() - d, SizeExpression(1));
    Shape column(shape.size() - d, 1);
    column_shape.front() = to;
    column.front() = numbers[d];
    const Json source = std::exchange(value, Json());
    last = Json();
    for (const Tap& tap : taps_between(writer, id, from, to, aligns)) {
      if (!last.is_null()) {
        value = value.is_null()
                    ? last
                    : add("aten.add.Tensor", Json::array({value, last}), {{"alpha", 1}});
      }
      const Json rows =
          add("aten.index_select.default", Json::array({source, tap.row}), {{"dim", d}});
      const Json weight =
          writer.insert(id, result.name + ":weight", "aten.view.default", Json::array({tap.weight}),
                        {{"size", column}}, column_shape, column, result.dtype);
      last = add("aten.mul.Tensor", Json::array({rows, weight}), Json::object());
    }
  }
  writer.replace(id, "aten.add.Tensor", Json::array({value, last}), {{"alpha", 1}});
}

}  // namespace npu::padding
