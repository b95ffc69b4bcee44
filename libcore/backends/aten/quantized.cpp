// SPDX-License-Identifier: Apache-2.0
// PyTorch's quantized_decomposed ops, written with plain ones.
//
// PyTorch computes round(x * (1 / s)) + z in float32, which this follows op by op; ONNX computes
// round(x / s) + z, with the quotient in the type of its operands, which `divide_by_scale` asks
// for. The two differ where x / s is close to a tie; both round ties to even. A NaN becomes
// the smallest number with ONNX's definition, and whatever the conversion of the CPU gives with
// PyTorch's, as there. Cost: four to six passes over the tensor.
#include "quantized.hpp"

#include <ATen/ATen.h>

#include <cmath>
#include <limits>
#include <tuple>
#include <utility>
#include <vector>

#include "boxed.hpp"
#include "npu/support/ids.hpp"

namespace npu::aten {
namespace {

using at::Tensor;
using QParams = std::tuple<Tensor, Tensor>;  // scale and zero point

bool is_half(at::ScalarType type) { return type == at::kHalf || type == at::kBFloat16; }

void check_range(std::int64_t quant_min, std::int64_t quant_max, at::ScalarType dtype) {
  std::int64_t low = 0;
  std::int64_t high = 0;
  switch (dtype) {
    case at::kByte:
      high = std::numeric_limits<std::uint8_t>::max();
      break;
    case at::kChar:
      low = std::numeric_limits<std::int8_t>::min();
      high = std::numeric_limits<std::int8_t>::max();
      break;
    case at::kShort:
      low = std::numeric_limits<std::int16_t>::min();
      high = std::numeric_limits<std::int16_t>::max();
      break;
    case at::kInt:
      low = std::numeric_limits<std::int32_t>::min();
      high = std::numeric_limits<std::int32_t>::max();
      break;
    default:
      TORCH_CHECK(false, "dtype is ", dtype, ", expected uint8, int8, int16 or int32");
  }
  TORCH_CHECK(low <= quant_min && quant_min <= quant_max && quant_max <= high,
              "quant_min and quant_max are ", quant_min, " and ", quant_max,
              ", which is no range within ", low, " to ", high);
}

void check_scale(double scale) {
  TORCH_CHECK(!std::isnan(scale) && scale != 0.0, "scale is ", scale, ", expected another number");
}

// What PyTorch asserts of a dequantized operand; its numbers do not depend on quant_min and _max.
void check_operand(const Tensor& input, at::ScalarType dtype) {
  TORCH_CHECK(input.scalar_type() == dtype, "dtype is ", dtype, ", but the operand is ",
              input.scalar_type());
}

Tensor widened(const Tensor& input) {
  return is_half(input.scalar_type()) ? input.to(at::kFloat) : input;
}

// `quotient` is x / s, or x * (1 / s); `zero_point` a number or a tensor that fits it.
template <typename ZeroPoint>
Tensor round_and_cut(const Tensor& quotient, const ZeroPoint& zero_point, std::int64_t quant_min,
                     std::int64_t quant_max, at::ScalarType dtype) {
  return at::clamp(at::add(at::round(quotient), zero_point), quant_min, quant_max).to(dtype);
}

// ONNX's: the sum is exact in float32 for all results of 16 bits, and a NaN is the least number.
template <typename ZeroPoint>
Tensor cut_exactly(const Tensor& quotient, const ZeroPoint& zero_point, std::int64_t quant_min,
                   std::int64_t quant_max, at::ScalarType dtype) {
  Tensor whole = at::round(quotient);
  if (dtype == at::kInt) whole = whole.to(at::kDouble);
  whole = at::add(widened(whole), zero_point);
  return at::clamp(at::nan_to_num(whole, static_cast<double>(quant_min)), quant_min, quant_max)
      .to(dtype);
}

// One number for each element of `axis`, in the rank of `input`.
Tensor along(const Tensor& numbers, const Tensor& input, std::int64_t axis, const char* what) {
  TORCH_CHECK(numbers.dim() == 1 && numbers.numel() == input.size(axis), what, " has shape ",
              numbers.sizes(), ", expected [", input.size(axis), "]");
  std::vector<std::int64_t> shape(index_of(input.dim()), 1);
  shape[index_of(axis)] = numbers.numel();
  return numbers.view(shape);
}

std::int64_t checked_axis(const Tensor& input, std::int64_t axis) {
  TORCH_CHECK(axis >= -input.dim() && axis < input.dim(), "axis is ", axis,
              ", but the operand has rank ", input.dim());
  return axis < 0 ? axis + input.dim() : axis;
}

double only_number(const Tensor& tensor, const char* what) {
  TORCH_CHECK(tensor.numel() == 1, what, " has ", tensor.numel(), " elements, expected 1");
  return tensor.item().toDouble();
}

std::int64_t only_integer(const Tensor& tensor, const char* what) {
  TORCH_CHECK(tensor.numel() == 1, what, " has ", tensor.numel(), " elements, expected 1");
  return tensor.item().toLong();
}

// Whole numbers less their zero points, exactly: int8 less int8 would wrap.
Tensor centred(const Tensor& input, const Tensor& zero_points) {
  const bool is_narrow =
      at::isIntegralType(input.scalar_type(), true) && input.scalar_type() != at::kLong;
  return at::sub(is_narrow ? input.to(at::kInt) : input, zero_points);
}

// The least and the greatest element, and zero.
std::pair<Tensor, Tensor> range_with_zero(const Tensor& input) {
  return {input.min().clamp_max(0), input.max().clamp_min(0)};
}

Tensor in_groups(const Tensor& input, const Tensor& scales, std::int64_t group_size) {
  TORCH_CHECK(input.dim() == 2 && scales.dim() == 2, "expected matrices");
  TORCH_CHECK(group_size > 1, "group_size is ", group_size, ", expected at least 2");
  // One group may be longer than its row.
  if (scales.size(1) == 1 && group_size > input.size(1)) group_size = input.size(1);
  TORCH_CHECK(group_size > 0 && input.size(1) % group_size == 0 &&
                  scales.numel() == input.numel() / group_size,
              "groups of ", group_size, " and scales of shape ", scales.sizes(),
              " do not fit shape ", input.sizes());
  return input.reshape({-1, group_size});
}

// ---- the ops

Tensor quantize_per_tensor(const Tensor& input, double scale, std::int64_t zero_point,
                           std::int64_t quant_min, std::int64_t quant_max, at::ScalarType dtype,
                           bool divide_by_scale) {
  check_range(quant_min, quant_max, dtype);
  if (divide_by_scale) {
    return cut_exactly(at::div(input, scale), at::Scalar(zero_point), quant_min, quant_max, dtype);
  }
  check_scale(scale);
  return round_and_cut(at::mul(widened(input), 1.0 / scale), at::Scalar(zero_point), quant_min,
                       quant_max, dtype);
}

Tensor quantize_per_tensor_tensor(const Tensor& input, const Tensor& scale,
                                  const Tensor& zero_point, std::int64_t quant_min,
                                  std::int64_t quant_max, at::ScalarType dtype,
                                  bool divide_by_scale) {
  return quantize_per_tensor(input, only_number(scale, "scale"),
                             only_integer(zero_point, "zero_point"), quant_min, quant_max, dtype,
                             divide_by_scale);
}

Tensor quantize_per_tensor_tensor2(const Tensor& input, const Tensor& scale,
                                   const Tensor& zero_point, const Tensor& quant_min,
                                   const Tensor& quant_max, at::ScalarType dtype,
                                   bool divide_by_scale) {
  return quantize_per_tensor_tensor(input, scale, zero_point, only_integer(quant_min, "quant_min"),
                                    only_integer(quant_max, "quant_max"), dtype, divide_by_scale);
}

Tensor quantize_per_channel(const Tensor& input, const Tensor& scales, const Tensor& zero_points,
                            std::int64_t axis, std::int64_t quant_min, std::int64_t quant_max,
                            at::ScalarType dtype, bool divide_by_scale) {
  check_range(quant_min, quant_max, dtype);
  axis = checked_axis(input, axis);
  const Tensor scale = along(scales, input, axis, "scales");
  const Tensor zero_point = along(zero_points, input, axis, "zero_points");
  if (divide_by_scale) {
    return cut_exactly(at::div(input, scale), zero_point, quant_min, quant_max, dtype);
  }
  return round_and_cut(at::mul(widened(input), at::reciprocal(scale)), zero_point, quant_min,
                       quant_max, dtype);
}

Tensor quantize_per_token(const Tensor& input, const Tensor& scales, const Tensor& zero_points,
                          std::int64_t quant_min, std::int64_t quant_max, at::ScalarType dtype) {
  check_range(quant_min, quant_max, dtype);
  // The zero point is added before rounding.
  const Tensor number = input.mul(at::reciprocal(scales)).add(zero_points).round();
  return number.clamp(quant_min, quant_max).to(dtype);
}

Tensor quantize_per_channel_group(const Tensor& input, const Tensor& scales,
                                  const Tensor& zero_points, std::int64_t quant_min,
                                  std::int64_t quant_max, at::ScalarType dtype,
                                  std::int64_t group_size) {
  check_range(quant_min, quant_max, dtype);
  const Tensor groups = in_groups(input, scales, group_size);
  const Tensor number =
      groups.mul(at::reciprocal(scales.reshape({-1, 1}))).add(zero_points.reshape({-1, 1})).round();
  return number.clamp(quant_min, quant_max).to(dtype).reshape(input.sizes());
}

Tensor dequantize_per_tensor(const Tensor& input, double scale, std::int64_t zero_point,
                             std::int64_t quant_min, std::int64_t quant_max, at::ScalarType dtype,
                             c10::optional<at::ScalarType> out_dtype) {
  (void)quant_min;
  (void)quant_max;
  check_operand(input, dtype);
  return input.to(out_dtype.value_or(at::kFloat)).sub(zero_point).mul(scale);
}

Tensor dequantize_per_tensor_tensor(const Tensor& input, const Tensor& scale,
                                    const Tensor& zero_point, std::int64_t quant_min,
                                    std::int64_t quant_max, at::ScalarType dtype,
                                    c10::optional<at::ScalarType> out_dtype) {
  return dequantize_per_tensor(input, only_number(scale, "scale"),
                               only_integer(zero_point, "zero_point"), quant_min, quant_max, dtype,
                               out_dtype);
}

Tensor dequantize_per_tensor_tensor2(const Tensor& input, const Tensor& scale,
                                     const Tensor& zero_point, const Tensor& quant_min,
                                     const Tensor& quant_max, at::ScalarType dtype,
                                     c10::optional<at::ScalarType> out_dtype) {
  return dequantize_per_tensor_tensor(input, scale, zero_point,
                                      only_integer(quant_min, "quant_min"),
                                      only_integer(quant_max, "quant_max"), dtype, out_dtype);
}

Tensor dequantize_per_channel(const Tensor& input, const Tensor& scales,
                              const c10::optional<Tensor>& zero_points, std::int64_t axis,
                              std::int64_t quant_min, std::int64_t quant_max, at::ScalarType dtype,
                              c10::optional<at::ScalarType> out_dtype) {
  (void)quant_min;
  (void)quant_max;
  check_operand(input, dtype);
  axis = checked_axis(input, axis);
  const Tensor scale = along(scales, input, axis, "scales");
  const bool has_zero = zero_points && zero_points->defined();
  const Tensor whole =
      has_zero ? centred(input, along(*zero_points, input, axis, "zero_points")) : input;
  return at::mul(whole, scale).to(out_dtype.value_or(at::kFloat));
}

Tensor dequantize_per_token(const Tensor& input, const Tensor& scales, const Tensor& zero_points,
                            std::int64_t quant_min, std::int64_t quant_max, at::ScalarType dtype,
                            at::ScalarType output_dtype) {
  (void)quant_min;
  (void)quant_max;
  check_operand(input, dtype);
  return centred(input, zero_points).mul(scales).to(output_dtype);
}

Tensor dequantize_per_channel_group(const Tensor& input, const Tensor& scales,
                                    const c10::optional<Tensor>& zero_points,
                                    std::int64_t quant_min, std::int64_t quant_max,
                                    at::ScalarType dtype, std::int64_t group_size,
                                    at::ScalarType output_dtype) {
  (void)quant_min;
  (void)quant_max;
  check_operand(input, dtype);
  Tensor groups = in_groups(input, scales, group_size);
  if (zero_points && zero_points->defined()) {
    groups = centred(groups, zero_points->reshape({-1, 1}));
  }
  return groups.mul(scales.reshape({-1, 1})).reshape(input.sizes()).to(output_dtype);
}

// torch.ao.quantization.utils.determine_qparams, whose results are float64 and int64 of one
// element.
QParams choose_qparams(const Tensor& input, std::int64_t quant_min, std::int64_t quant_max,
                       double eps, at::ScalarType dtype) {
  check_range(quant_min, quant_max, dtype);
  const auto [low, high] = range_with_zero(input);
  const Tensor steps = high.sub(low).div(static_cast<double>(quant_max - quant_min));
  const Tensor scale = at::maximum(steps, at::full({}, eps, steps.options()));
  const Tensor zero = at::rsub(low.div(scale).round().to(at::kInt), at::Scalar(quant_min));
  return {scale.to(at::kDouble).reshape({1}),
          zero.clamp(quant_min, quant_max).to(at::kLong).reshape({1})};
}

QParams choose_qparams_symmetric(const Tensor& input, std::int64_t quant_min,
                                 std::int64_t quant_max, double eps, at::ScalarType dtype) {
  check_range(quant_min, quant_max, dtype);
  const auto [low, high] = range_with_zero(input);
  const Tensor steps =
      at::maximum(low.neg(), high).div(static_cast<double>(quant_max - quant_min) / 2);
  const Tensor scale = at::maximum(steps, at::full({}, eps, steps.options()));
  return {scale.to(at::kDouble).reshape({1}),
          at::full({1}, dtype == at::kByte ? 128 : 0, input.options().dtype(at::kLong))};
}

QParams choose_qparams_per_token(const Tensor& input, at::ScalarType dtype) {
  TORCH_CHECK(dtype == at::kChar, "dtype is ", dtype, ", expected int8");
  Tensor scales = input.abs().amax({-1}, true);
  if (scales.scalar_type() == at::kHalf) scales = scales.to(at::kFloat);
  scales = scales.clamp_min(1e-5).div(127);
  return {scales, at::zeros_like(scales)};
}

QParams choose_qparams_per_token_asymmetric(const Tensor& input, at::ScalarType dtype) {
  (void)dtype;  // PyTorch's range is that of int8, whatever dtype says
  constexpr double kMin = -128;
  constexpr double kMax = 127;
  const Tensor low = input.amin({-1}, true).clamp_max(0);
  const Tensor high = input.amax({-1}, true).clamp_min(0);
  const Tensor scale =
      high.sub(low).div(kMax - kMin).clamp_min(double{std::numeric_limits<float>::epsilon()});
  const Tensor least = low.div(scale);
  const Tensor most = high.div(scale);
  const Tensor error = least.add(kMin).add(most.add(kMax));
  const Tensor zero = at::where(error.gt(0), at::rsub(least, kMin), at::rsub(most, kMax));
  return {scale.to(at::kDouble), zero.clamp(kMin, kMax).round().to(at::kLong)};
}

Tensor convert_element_type(const Tensor& input, at::ScalarType dtype) { return input.to(dtype); }

// ---- the table

constexpr Decomposition::When kMissing = Decomposition::When::kMissing;

constexpr Decomposition kQuantizedDecompositions[] = {
    {"quantized_decomposed.quantize_per_tensor.default",
     "quantize_per_tensor(Tensor input, float scale, int zero_point, int quant_min, int quant_max, "
     "ScalarType dtype, *, bool divide_by_scale=False) -> Tensor",
     kMissing, &boxed<&quantize_per_tensor>},
    {"quantized_decomposed.quantize_per_tensor.tensor",
     "quantize_per_tensor.tensor(Tensor input, Tensor scale, Tensor zero_point, int quant_min, int "
     "quant_max, ScalarType dtype, *, bool divide_by_scale=False) -> Tensor",
     kMissing, &boxed<&quantize_per_tensor_tensor>},
    {"quantized_decomposed.quantize_per_tensor.tensor2",
     "quantize_per_tensor.tensor2(Tensor input, Tensor scale, Tensor zero_point, Tensor quant_min, "
     "Tensor quant_max, ScalarType dtype, *, bool divide_by_scale=False) -> Tensor",
     kMissing, &boxed<&quantize_per_tensor_tensor2>},
    {"quantized_decomposed.quantize_per_channel.default",
     "quantize_per_channel(Tensor input, Tensor scales, Tensor zero_points, int axis, int "
     "quant_min, int quant_max, ScalarType dtype, *, bool divide_by_scale=False) -> Tensor",
     kMissing, &boxed<&quantize_per_channel>},
    {"quantized_decomposed.quantize_per_token.default",
     "quantize_per_token(Tensor input, Tensor scales, Tensor zero_points, int quant_min, int "
     "quant_max, ScalarType dtype) -> Tensor",
     kMissing, &boxed<&quantize_per_token>},
    {"quantized_decomposed.quantize_per_channel_group.default",
     "quantize_per_channel_group(Tensor input, Tensor scales, Tensor zero_points, int quant_min, "
     "int quant_max, ScalarType dtype, int group_size=128) -> Tensor",
     kMissing, &boxed<&quantize_per_channel_group>},
    {"quantized_decomposed.dequantize_per_tensor.default",
     "dequantize_per_tensor(Tensor input, float scale, int zero_point, int quant_min, int "
     "quant_max, ScalarType dtype, *, ScalarType? out_dtype=None) -> Tensor",
     kMissing, &boxed<&dequantize_per_tensor>},
    {"quantized_decomposed.dequantize_per_tensor.tensor",
     "dequantize_per_tensor.tensor(Tensor input, Tensor scale, Tensor zero_point, int quant_min, "
     "int quant_max, ScalarType dtype, *, ScalarType? out_dtype=None) -> Tensor",
     kMissing, &boxed<&dequantize_per_tensor_tensor>},
    {"quantized_decomposed.dequantize_per_tensor.tensor2",
     "dequantize_per_tensor.tensor2(Tensor input, Tensor scale, Tensor zero_point, Tensor "
     "quant_min, Tensor quant_max, ScalarType dtype, *, ScalarType? out_dtype=None) -> Tensor",
     kMissing, &boxed<&dequantize_per_tensor_tensor2>},
    {"quantized_decomposed.dequantize_per_channel.default",
     "dequantize_per_channel(Tensor input, Tensor scales, Tensor? zero_points, int axis, int "
     "quant_min, int quant_max, ScalarType dtype, *, ScalarType? out_dtype=None) -> Tensor",
     kMissing, &boxed<&dequantize_per_channel>},
    {"quantized_decomposed.dequantize_per_token.default",
     "dequantize_per_token(Tensor input, Tensor scales, Tensor zero_points, int quant_min, int "
     "quant_max, ScalarType dtype, ScalarType output_dtype) -> Tensor",
     kMissing, &boxed<&dequantize_per_token>},
    {"quantized_decomposed.dequantize_per_channel_group.default",
     "dequantize_per_channel_group(Tensor input, Tensor scales, Tensor? zero_points, int "
     "quant_min, int quant_max, ScalarType dtype, int group_size=128, ScalarType "
     "output_dtype=float) -> Tensor",
     kMissing, &boxed<&dequantize_per_channel_group>},
    {"quantized_decomposed.choose_qparams.tensor",
     "choose_qparams.tensor(Tensor input, int quant_min, int quant_max, float eps, ScalarType "
     "dtype) -> (Tensor, Tensor)",
     kMissing, &boxed<&choose_qparams>},
    {"quantized_decomposed.choose_qparams_symmetric.tensor",
     "choose_qparams_symmetric.tensor(Tensor input, int quant_min, int quant_max, float eps, "
     "ScalarType dtype) -> (Tensor, Tensor)",
     kMissing, &boxed<&choose_qparams_symmetric>},
    {"quantized_decomposed.choose_qparams_per_token.default",
     "choose_qparams_per_token(Tensor input, ScalarType dtype) -> (Tensor, Tensor)", kMissing,
     &boxed<&choose_qparams_per_token>},
    {"quantized_decomposed.choose_qparams_per_token_asymmetric.default",
     "choose_qparams_per_token_asymmetric(Tensor input, ScalarType dtype) -> (Tensor, Tensor)",
     kMissing, &boxed<&choose_qparams_per_token_asymmetric>},
    {"quantized_decomposed.convert_element_type.no_fuse",
     "convert_element_type.no_fuse(Tensor input, ScalarType dtype) -> Tensor", kMissing,
     &boxed<&convert_element_type>},
};

}  // namespace

std::span<const Decomposition> quantized_decompositions() { return kQuantizedDecompositions; }

}  // namespace npu::aten
