// SPDX-License-Identifier: Apache-2.0
// Signal processing: windows and mel weights, which are constants, and Fourier transforms, which
// are computed in float64: their exact results are often 0, and float32 would leave its rounding.
#include <cmath>
#include <numbers>

#include "rules/rules.hpp"

namespace npu::onnx {
namespace {

std::int64_t integer_operand(Op& op, std::size_t index, std::string_view what) {
  const Ints values = op.integers(index, what);
  if (values.size() != 1) Op::refuse(std::string(what) + " is expected to be one number");
  return values[0];
}

// A signal whose last axis is [real] or [real, imaginary], without that axis.
Value* complex_of(Op& op, Value* x) {
  Value* wide = op.cast(x, DType::kFloat64);
  if (x->shape.back() == 1) return op.view(wide, Shape(x->shape.begin(), x->shape.end() - 1));
  if (x->shape.back() != 2) Op::refuse("its last axis is not that of real and imaginary parts");
  return op.emit("aten.view_as_complex.default", {wide}, Json::object(), DType::kComplex128,
                 Shape(x->shape.begin(), x->shape.end() - 1));
}

// The transform along an axis, with real and imaginary parts as the last axis.
Value* transformed(Op& op, Value* x, std::int64_t axis, std::int64_t length, bool is_inverse,
                   bool is_onesided) {
  Value* signal = complex_of(op, x);
  Shape shape = signal->shape;
  shape[static_cast<std::size_t>(axis)] = length;
  Value* result = op.emit(is_inverse ? "aten.fft_ifft.default" : "aten.fft_fft.default", {signal},
                          Json{{"n", length}, {"dim", axis}}, DType::kComplex128, shape);
  if (is_onesided) result = op.slice(result, axis, 0, length / 2 + 1);
  shape = result->shape;
  shape.push_back(2);
  return op.emit("aten.view_as_real.default", {result}, Json::object(), DType::kFloat64, shape);
}

}  // namespace

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

void import_dft(Op& op) {
  Value* x = op.in(0);
  std::int64_t axis = op.opset() < 20 ? op.integer("axis", 1) : -2;
  if (op.opset() >= 20 && op.has_input(2)) axis = integer_operand(op, 2, "the axis");
  axis = Op::axis_of(axis, x->rank());
  if (axis == x->rank() - 1) Op::refuse("its axis is that of the real and imaginary parts");
  const std::int64_t extent = x->shape[static_cast<std::size_t>(axis)];
  const std::int64_t length = op.has_input(1) ? integer_operand(op, 1, "the length") : extent;
  const bool is_onesided = op.integer("onesided", 0) != 0;
  const bool is_inverse = op.integer("inverse", 0) != 0;
  if (length < 1 || length > 1 << 24) Op::refuse("a length of " + std::to_string(length));
  if (is_inverse && is_onesided && op.opset() >= 20) {
    // From one half back to real numbers.
    Value* signal = complex_of(op, x);
    Shape shape = signal->shape;
    shape[static_cast<std::size_t>(axis)] = op.has_input(1) ? length : 2 * (extent - 1);
    const std::int64_t size = shape[static_cast<std::size_t>(axis)];
    if (size < 1) Op::refuse("a length of " + std::to_string(size));
    Value* real = op.emit("aten.fft_irfft.default", {signal}, Json{{"n", size}, {"dim", axis}},
                          DType::kFloat64, shape);
    shape.push_back(1);
    return op.set(0, op.cast(op.view(real, shape), x->dtype));
  }
  Value* result = transformed(op, x, axis, length, is_inverse, is_onesided);
  op.set(0, op.cast(result, x->dtype));
}

void import_stft(Op& op) {
  Value* x = op.in(0);
  if (x->rank() == 2) x = op.view(x, {x->shape[0], x->shape[1], 1});
  if (x->rank() != 3) Op::refuse("a signal of rank " + std::to_string(x->rank()));
  const std::int64_t step = integer_operand(op, 1, "the step");
  Value* window = op.maybe_in(2);
  std::int64_t length = window != nullptr && window->rank() == 1 ? window->shape[0] : x->shape[1];
  if (op.has_input(3)) length = integer_operand(op, 3, "the length of frames");
  if (step < 1 || length < 1 || length > x->shape[1]) Op::refuse("frames do not fit the signal");
  if (window != nullptr && window->shape != Shape{length}) Op::refuse("the window does not fit");
  const std::int64_t frames = (x->shape[1] - length) / step + 1;
  // [batch, frames, parts, length]
  Value* cut = op.emit("aten.unfold.default", {op.cast(x, DType::kFloat64)},
                       Json{{"dimension", 1}, {"size", length}, {"step", step}}, DType::kFloat64,
                       {x->shape[0], frames, x->shape[2], length});
  if (window != nullptr) cut = op.binary("mul", cut, op.cast(window, DType::kFloat64));
  cut = op.permute(cut, {0, 1, 3, 2});
  const bool is_onesided = op.integer("onesided", 1) != 0;
  Value* result = transformed(op, cut, 2, length, false, is_onesided);
  op.set(0, op.cast(result, x->dtype));
}

void import_mel_weights(Op& op) {
  const std::int64_t bands = integer_operand(op, 0, "the number of bands");
  const std::int64_t length = integer_operand(op, 1, "the length of the transform");
  const std::int64_t rate = integer_operand(op, 2, "the sample rate");
  const double low = op.number(3, "the lower edge");
  const double high = op.number(4, "the upper edge");
  const auto dtype = onnx_dtype(op.integer("output_datatype", 1));
  const std::int64_t bins = length / 2 + 1;
  if (bands < 1 || length < 1 || rate < 1 || bands > 4096 || length > 1 << 20 ||
      bins * bands > Importer::kMostKnown || !dtype || !is_floating_point(*dtype) || low < 0 ||
      high <= low) {
    Op::refuse("its operands do not fit together");
  }
  const auto mel = [](double hertz) { return 2595 * std::log10(1 + hertz / 700); };
  const double step = (mel(high) - mel(low)) / static_cast<double>(bands + 2);
  Ints edges;
  for (std::int64_t i = 0; i < bands + 2; ++i) {
    const double hertz =
        700 * (std::pow(10, (static_cast<double>(i) * step + mel(low)) / 2595) - 1);
    const double bin =
        std::floor(static_cast<double>(length + 1) * hertz / static_cast<double>(rate));
    if (!(bin >= 0 && bin < static_cast<double>(bins)))
      Op::refuse("an edge above half of the rate");
    edges.push_back(static_cast<std::int64_t>(bin));
  }
  Tensor weights(DType::kFloat64, {bins, bands});
  for (std::int64_t b = 0; b < bands; ++b) {
    const auto at = static_cast<std::size_t>(b);
    const auto set = [&](std::int64_t bin, std::int64_t part, std::int64_t whole) {
      weights.as_mutable<double>()[bin * bands + b] =
          whole == 0 ? 1 : static_cast<double>(part) / static_cast<double>(whole);
    };
    const std::int64_t rise = edges[at + 1] - edges[at];
    const std::int64_t fall = edges[at + 2] - edges[at + 1];
    for (std::int64_t i = edges[at]; i <= edges[at + 1]; ++i) set(i, i - edges[at], rise);
    for (std::int64_t i = edges[at + 1]; i < edges[at + 2]; ++i) set(i, edges[at + 2] - i, fall);
  }
  op.set(0, op.cast(op.constant_value(std::move(weights)), *dtype));
}

}  // namespace npu::onnx
