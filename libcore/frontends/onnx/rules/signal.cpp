// SPDX-License-Identifier: Apache-2.0
// Windows of signal processing, which are constants, and sampling on a grid.
#include <cmath>
#include <numbers>

#include "rules/rules.hpp"

namespace npu::onnx {

void import_window(Op& op) {
  const auto size = static_cast<std::int64_t>(op.number(0, "the size"));
  const auto dtype = onnx_dtype(op.integer("output_datatype", 1));
  if (size < 1 || size > Importer::kMostKnown || !dtype || !is_floating_point(*dtype)) {
    Op::refuse("a size of " + std::to_string(size) + ", or a type that is no float");
  }
  const double length = static_cast<double>(op.integer("periodic", 1) != 0 ? size : size - 1);
  const std::string_view name = op.node().op_type;
  Tensor window(DType::kFloat64, {size});
  for (std::int64_t i = 0; i < size; ++i) {
    const double turn = 2 * std::numbers::pi * static_cast<double>(i) / length;
    double value = 0.5 - 0.5 * std::cos(turn);
    if (name == "HammingWindow") value = 25.0 / 46 - 21.0 / 46 * std::cos(turn);
    if (name == "BlackmanWindow") value = 0.42 - 0.5 * std::cos(turn) + 0.08 * std::cos(2 * turn);
    window.as_mutable<double>()[i] = value;
  }
  op.set(0, op.cast(op.constant_value(std::move(window)), *dtype));
}

void import_grid_sample(Op& op) {
  Value* x = op.in(0);
  Value* grid = op.in(1);
  const std::string mode = op.text("mode", op.opset() < 20 ? "bilinear" : "linear");
  const std::string padding = op.text("padding_mode", "zeros");
  const int mode_number = mode == "bilinear" || mode == "linear" ? 0
                          : mode == "nearest"                    ? 1
                          : mode == "bicubic" || mode == "cubic" ? 2
                                                                 : -1;
  const int padding_number = padding == "zeros"        ? 0
                             : padding == "border"     ? 1
                             : padding == "reflection" ? 2
                                                       : -1;
  if (mode_number < 0 || padding_number < 0)
    Op::refuse("mode '" + mode + "' or padding_mode '" + padding + "'");
  const bool fits = (x->rank() == 4 || x->rank() == 5) && grid->rank() == x->rank() &&
                    grid->shape.back() == x->rank() - 2 && grid->shape[0] == x->shape[0];
  if (!fits || (x->rank() == 5 && mode_number == 2)) Op::refuse("operand and grid do not fit");
  Shape shape{x->shape[0], x->shape[1]};
  shape.insert(shape.end(), grid->shape.begin() + 1, grid->shape.end() - 1);
  op.set(0, op.emit("aten.grid_sampler.default", {x, grid},
                    Json{{"interpolation_mode", mode_number},
                         {"padding_mode", padding_number},
                         {"align_corners", op.integer("align_corners", 0) != 0}},
                    x->dtype, shape));
}

}  // namespace npu::onnx
