// SPDX-License-Identifier: Apache-2.0
// Norms and softmax.
#include <algorithm>
#include <limits>

#include "rules/rules.hpp"

namespace npu::onnx {
namespace {

void check_channels(const Value* x, const Value* vector) {
  if (x->rank() < 2 || vector->rank() != 1 || vector->shape[0] != x->shape[1]) {
    Op::refuse("a vector of shape " + shape_text(vector->shape) + " does not fit the channels of " +
               shape_text(x->shape));
  }
}

// The precision of the statistics, which is that of the results that they are. Norms compute at
// least in the operand's, and in float32 for shorter ones.
DType stash_type(Op& op) {
  const std::int64_t stated = op.integer("stash_type", 1);
  const auto dtype = onnx_dtype(stated);
  if (!dtype || !is_floating_point(*dtype)) {
    Op::refuse("stash_type " + onnx_dtype_text(stated) + ", expected a float");
  }
  return *dtype;
}

/// The smallest normal and the largest number of a dtype.
struct NormalRange {
  double least = from_float(std::numeric_limits<float>::min());
  double most = from_float(std::numeric_limits<float>::max());
};

NormalRange normal_range(DType dtype) {
  switch (dtype) {
    case DType::kFloat64:
      return {std::numeric_limits<double>::min(), std::numeric_limits<double>::max()};
    case DType::kFloat16:
      return {0x1p-14, 65504};
    case DType::kBFloat16:
      return {0x1p-126, 0x1.fep127};
    case DType::kFloat32:
      return {};
    default:
      Op::refuse("an operand of type " + std::string(dtype_name(dtype)) + ", expected floats");
  }
}

}  // namespace

void import_batch_norm(Op& op) {
  Value* x = op.in(0);
  if (op.opset() < 7 && op.integer("is_test", 0) == 0)
    Op::refuse("is_test is 0: norms in training");
  if (op.opset() < 9 && op.integer("spatial", 1) == 0) Op::refuse("spatial is 0");
  const double eps = op.real("epsilon", from_float(1e-5F));
  const double momentum = op.real("momentum", from_float(0.9F));
  for (std::size_t i = 1; i < 5; ++i) check_channels(x, op.in(i));
  if (op.integer("training_mode", 0) == 0) {
    for (std::size_t i = 1; i < op.output_count(); ++i) {
      if (op.wants(i)) Op::refuse("asks for the statistics of training");
    }
    return op.set(
        0,
        op.emit_like(
            "aten.batch_norm.default", {x, op.in(1), op.in(2), op.in(3), op.in(4)},
            Json{{"training", false}, {"momentum", 0.1}, {"eps", eps}, {"cudnn_enabled", false}}));
  }
  // Training: the batch's own statistics, and running ones that are moved towards them.
  Ints axes;
  for (std::int64_t i = 0; i < x->rank(); ++i) {
    if (i != 1) axes.push_back(i);
  }
  Value* mean = op.reduce("mean.dim", x, axes, false);
  Value* variance = op.emit("aten.var.correction", {x}, Json{{"dim", axes}, {"correction", 0}},
                            x->dtype, mean->shape);
  op.set(0,
         op.emit_like(
             "aten.batch_norm.default", {x, op.in(1), op.in(2), mean, variance},
             Json{{"training", false}, {"momentum", 0.1}, {"eps", eps}, {"cudnn_enabled", false}}));
  const auto moved = [&](Value* running, Value* current) {
    return op.binary("add", op.scalar("mul", running, momentum),
                     op.scalar("mul", current, 1 - momentum));
  };
  if (op.wants(1)) op.set(1, moved(op.in(3), mean));
  if (op.wants(2)) op.set(2, moved(op.in(4), variance));
}

void import_instance_norm(Op& op) {
  Value* x = op.in(0);
  check_channels(x, op.in(1));
  check_channels(x, op.in(2));
  op.set(0, op.emit_like("aten.instance_norm.default", {x, op.in(1), op.in(2)},
                         Json{{"_none_args", {"running_mean", "running_var"}},
                              {"use_input_stats", true},
                              {"momentum", 0.0},
                              {"eps", op.real("epsilon", from_float(1e-5F))},
                              {"cudnn_enabled", false}}));
}

void import_layer_norm(Op& op) {
  Value* x = op.in(0);
  const std::int64_t axis = Op::axis_of(op.integer("axis", -1), x->rank());
  const Shape normalized(x->shape.begin() + axis, x->shape.end());
  const double eps = op.real("epsilon", from_float(1e-5F));
  Value* weight = op.in(1);
  Value* bias = op.maybe_in(2);
  const bool is_plain =
      weight->shape == normalized && (bias == nullptr || bias->shape == normalized);
  std::vector<Value*> operands{x};
  Json attrs{{"normalized_shape", normalized}, {"eps", eps}};
  if (is_plain) operands.push_back(weight);
  if (is_plain && bias != nullptr) operands.push_back(bias);
  Value* value = nullptr;
  const DType stash = stash_type(op);
  if (op.wants(1) || op.wants(2)) {
    Shape statistics = x->shape;
    std::fill(statistics.begin() + axis, statistics.end(), 1);
    if (operands.size() == 1) attrs["_none_args"] = {"weight", "bias"};
    if (operands.size() == 2) attrs["_none_args"] = {"bias"};
    const auto results = op.draft().emit_several(
        "aten.native_layer_norm.default", operands, std::move(attrs),
        {{x->dtype, x->shape}, {x->dtype, statistics}, {x->dtype, statistics}});
    value = results[0];
    op.set(1, op.cast(results[1], stash));
    op.set(2, op.cast(results[2], stash));
  } else {
    value = op.emit_like("aten.layer_norm.default", operands, std::move(attrs));
  }
  if (!is_plain) {
    value = op.binary("mul", value, weight);
    if (bias != nullptr) value = op.binary("add", value, bias);
  }
  op.set(0, value);
}

void import_rms_norm(Op& op) {
  Value* x = op.in(0);
  Value* weight = op.in(1);
  stash_type(op);
  const std::int64_t axis = Op::axis_of(op.integer("axis", -1), x->rank());
  const Shape normalized(x->shape.begin() + axis, x->shape.end());
  Json attrs{{"normalized_shape", normalized}, {"eps", op.real("epsilon", from_float(1e-5F))}};
  if (weight->shape == normalized) {
    return op.set(0, op.emit_like("aten.rms_norm.default", {x, weight}, std::move(attrs)));
  }
  Value* value = op.emit_like("aten.rms_norm.default", {x}, std::move(attrs));
  op.set(0, op.binary("mul", value, weight));
}

void import_group_norm(Op& op) {
  Value* x = op.in(0);
  const std::int64_t groups = op.integer("num_groups", 0);
  if (x->rank() < 2 || groups < 1 || x->shape[1] % groups != 0) {
    Op::refuse("'num_groups' does not fit its operand");
  }
  const Json attrs{{"num_groups", groups}, {"eps", op.real("epsilon", from_float(1e-5F))}};
  stash_type(op);
  // Before opset 21 scale and bias were those of groups.
  const auto of_channels = [&](Value* vector) {
    if (vector->shape == Shape{x->shape[1]}) return vector;
    if (op.opset() >= 21 || vector->shape != Shape{groups}) {
      Op::refuse("a scale or bias of shape " + shape_text(vector->shape) +
                 " does not fit the channels of " + shape_text(x->shape));
    }
    Value* wide = op.expand(op.view(vector, {groups, 1}), {groups, x->shape[1] / groups});
    return op.view(wide, {x->shape[1]});
  };
  op.set(0, op.emit_like("aten.group_norm.default",
                         {x, of_channels(op.in(1)), of_channels(op.in(2))}, attrs));
}

void import_mean_variance_norm(Op& op) {
  Value* x = op.in(0);
  Ints axes;
  for (const std::int64_t axis : op.list("axes").value_or(Ints{0, 2, 3})) {
    axes.push_back(Op::axis_of(axis, x->rank()));
  }
  Value* mean = op.reduce("mean.dim", x, axes, true);
  Value* centred = op.binary("sub", x, mean);
  Value* square = op.binary("mul", centred, centred);
  Value* deviation = op.emit_like("aten.sqrt.default", {op.reduce("mean.dim", square, axes, true)});
  op.set(0, op.binary("div", centred, op.scalar("add", deviation, 1e-9)));
}

void import_lp_norm(Op& op) {
  Value* x = op.in(0);
  const std::int64_t axis = Op::axis_of(op.integer("axis", -1), x->rank());
  const std::int64_t p = op.integer("p", 2);
  const NormalRange range = normal_range(x->dtype);
  if (p < 1) Op::refuse("a norm of order " + std::to_string(p) + ", expected 1 or 2");
  if (x->count() == 0) return op.set(0, x);
  // The operand by its largest element first, so that no power overflows or is lost; a divisor of
  // at least the smallest number makes zeros of zeros.
  Value* largest =
      op.reduce("amax.default", op.emit_like("aten.abs.default", {x}), Ints{axis}, true);
  largest = op.emit_like("aten.clamp.default", {largest},
                         Json{{"min", range.least}, {"max", range.most}});
  Value* scaled = op.binary("div", x, largest);
  Value* norm =
      op.emit("aten.linalg_vector_norm.default", {scaled},
              Json{{"ord", p}, {"dim", Ints{axis}}, {"keepdim", true}}, x->dtype, largest->shape);
  norm = op.emit_like("aten.clamp.default", {norm}, Json{{"min", range.least}});
  op.set(0, op.binary("div", scaled, norm));
}

void import_lrn(Op& op) {
  Value* x = op.in(0);
  const std::int64_t size = op.integer("size", 0);
  if (x->rank() < 2 || size < 1 || size > 1 << 16) Op::refuse("'size' does not fit its operand");
  const std::int64_t n = x->shape[0];
  const std::int64_t c = x->shape[1];
  const std::int64_t rest = product(x->shape, 2, x->shape.size());
  Value* square = op.view(op.binary("mul", x, x), {n, 1, c, rest});
  Value* padded = op.pad(square, {{0, 0}, {0, 0}, {(size - 1) / 2, size / 2}, {0, 0}}, 0);
  Value* average = op.emit("aten.avg_pool2d.default", {padded},
                           Json{{"kernel_size", Ints{size, 1}}, {"stride", Ints{1, 1}}}, x->dtype,
                           {n, 1, c, rest});
  Value* scaled = op.scalar("mul", op.view(average, x->shape), op.real("alpha", from_float(1e-4F)));
  Value* base = op.scalar("add", scaled, op.real("bias", 1));
  Value* power =
      op.emit_like("aten.pow.Tensor_Scalar", {base}, Json{{"exponent", op.real("beta", 0.75)}});
  op.set(0, op.binary("div", x, power));
}

void import_softmax(Op& op) {
  Value* x = op.in(0);
  const std::string name =
      op.node().op_type == "Softmax" ? "aten.softmax.int" : "aten.log_softmax.int";
  const std::int64_t axis = op.integer("axis", op.opset() < 13 ? 1 : -1);
  if (op.opset() >= 13) {
    return op.set(0, op.emit_like(name, {x}, Json{{"dim", Op::axis_of(axis, x->rank())}}));
  }
  // All axes from `axis` on are one.
  const std::int64_t at = axis < 0 ? axis + x->rank() : axis;
  if (at < 0 || at > x->rank()) Op::refuse("the axis is out of range");
  if (at + 1 == x->rank()) return op.set(0, op.emit_like(name, {x}, Json{{"dim", at}}));
  const auto split = static_cast<std::size_t>(at);
  Value* flat =
      op.view(x, {product(x->shape, 0, split), product(x->shape, split, x->shape.size())});
  op.set(0, op.view(op.emit_like(name, {flat}, Json{{"dim", 1}}), x->shape));
}

void import_hardmax(Op& op) {
  Value* x = op.in(0);
  Value* flat = x;
  std::int64_t axis = op.integer("axis", op.opset() < 13 ? 1 : -1);
  if (op.opset() < 13) {
    const auto split = static_cast<std::size_t>(axis < 0 ? axis + x->rank() : axis);
    if (split > x->shape.size()) Op::refuse("the axis is out of range");
    flat = op.view(x, {product(x->shape, 0, split), product(x->shape, split, x->shape.size())});
    axis = 1;
  }
  axis = Op::axis_of(axis, flat->rank());
  Shape reduced = flat->shape;
  reduced[static_cast<std::size_t>(axis)] = 1;
  Value* best = op.emit("aten.argmax.default", {flat}, Json{{"dim", axis}, {"keepdim", true}},
                        DType::kInt64, reduced);
  const std::int64_t extent = flat->shape[static_cast<std::size_t>(axis)];
  if (extent > Importer::kMostKnown) Op::refuse("an axis that is too long");
  Ints places;
  for (std::int64_t i = 0; i < extent; ++i) places.push_back(i);
  Shape place_shape(flat->shape.size(), 1);
  place_shape[static_cast<std::size_t>(axis)] = extent;
  Value* hit = op.compare("eq", best, op.integer_constant(places, place_shape));
  op.set(0, op.view(op.cast(hit, x->dtype), x->shape));
}

}  // namespace npu::onnx
