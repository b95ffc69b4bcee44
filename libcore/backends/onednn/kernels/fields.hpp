// SPDX-License-Identifier: Apache-2.0
#pragma once

// The fields of every kernel by name: the one list that writing, reading and comparing descriptors
// go by. A field that is missing here does not compile.

#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>

#include "kernels/kernel.hpp"

namespace npu::onednn {

template <typename Owner, typename Member>
struct Field {
  const char* name;
  Member Owner::*member;
};

template <typename Owner, typename Member>
constexpr Field<Owner, Member> make_field(const char* name, Member Owner::*member) {
  return {name, member};
}

/// The fields of a struct, as a tuple of Field.
template <typename T>
inline constexpr std::tuple<> kFields{};

/// True for a struct whose fields are listed.
template <typename T>
inline constexpr bool kHasFields = std::tuple_size_v<std::remove_cvref_t<decltype(kFields<T>)>> > 0;

/// Calls visit(name, field) for each, in their order.
template <typename T, typename Visit>
void for_each_field(T& value, Visit&& visit) {
  std::apply([&](const auto&... field) { (visit(field.name, value.*field.member), ...); },
             kFields<std::remove_const_t<T>>);
}

/// How many enumerators an enum has, which are 0, 1, ..
template <typename E>
inline constexpr int kEnumerators = 0;
template <>
inline constexpr int kEnumerators<DType> = kDTypeCount;
template <>
inline constexpr int kEnumerators<VectorIsa> = 3;
template <>
inline constexpr int kEnumerators<BinaryOp> = 7;
template <>
inline constexpr int kEnumerators<ReductionOp> = 7;
template <>
inline constexpr int kEnumerators<Elementwise::Function> = Elementwise::kFunctions;
template <>
inline constexpr int kEnumerators<TypedBinary::Op> = 21;
template <>
inline constexpr int kEnumerators<IntegerReduction::Op> = 6;
template <>
inline constexpr int kEnumerators<EpilogueStep::Kind> = 8;
template <>
inline constexpr int kEnumerators<Recurrence::Cell> = 4;
template <>
inline constexpr int kEnumerators<GridSample::Mode> = 3;
template <>
inline constexpr int kEnumerators<GridSample::Padding> = 3;

namespace detail {

/// Becomes any value, to count how many an aggregate takes.
struct AnyValue {
  template <typename T>
  operator T() const;
};

template <typename T, typename... Values>
constexpr std::size_t initializers() {
  if constexpr (requires { T{std::declval<Values>()..., AnyValue{}}; }) {
    return initializers<T, Values..., AnyValue>();
  } else {
    return sizeof...(Values);
  }
}

/// An array takes a value for each element.
template <typename Owner, typename Member>
constexpr std::size_t initializers_of(const Field<Owner, Member>& /*field*/) {
  return std::is_array_v<Member> ? std::extent_v<Member> : 1;
}

}  // namespace detail

/// True if every field of an aggregate is listed, but `threads`: that is the device's that runs.
template <typename T>
constexpr bool lists_all_fields() {
  const std::size_t listed = std::apply(
      [](const auto&... field) { return (std::size_t{0} + ... + detail::initializers_of(field)); },
      kFields<T>);
  constexpr std::size_t kThreads = requires(T value) { value.threads; }
  ? 1 : 0;
  return listed + kThreads == detail::initializers<T>();
}

// NOLINTBEGIN(cppcoreguidelines-macro-usage)
#define NPU_FIELD(Type, name) make_field(#name, &Type::name)
// NOLINTEND(cppcoreguidelines-macro-usage)

template <>
inline constexpr auto kFields<EpilogueStep> = std::make_tuple(NPU_FIELD(EpilogueStep, kind),
                                                              NPU_FIELD(EpilogueStep, alpha),
                                                              NPU_FIELD(EpilogueStep, beta));

template <>
inline constexpr auto kFields<Winograd::Filter> = std::make_tuple(NPU_FIELD(Winograd::Filter, tile),
                                                                  NPU_FIELD(Winograd::Filter, taps),
                                                                  NPU_FIELD(Winograd::Filter,
                                                                            stride));

template <>
inline constexpr auto kFields<Winograd> = std::make_tuple(
    NPU_FIELD(Winograd, filter), NPU_FIELD(Winograd, batch), NPU_FIELD(Winograd, frames),
    NPU_FIELD(Winograd, source_channels), NPU_FIELD(Winograd, target_channels),
    NPU_FIELD(Winograd, source_extent), NPU_FIELD(Winograd, target_extent),
    NPU_FIELD(Winograd, pad), NPU_FIELD(Winograd, has_bias), NPU_FIELD(Winograd, epilogue),
    NPU_FIELD(Winograd, isa));

template <>
inline constexpr auto kFields<ImplicitGemm> =
    std::make_tuple(NPU_FIELD(ImplicitGemm, batch), NPU_FIELD(ImplicitGemm, source_channels),
                    NPU_FIELD(ImplicitGemm, target_channels),
                    NPU_FIELD(ImplicitGemm, source_extent), NPU_FIELD(ImplicitGemm, target_extent),
                    NPU_FIELD(ImplicitGemm, taps), NPU_FIELD(ImplicitGemm, dilation),
                    NPU_FIELD(ImplicitGemm, pad), NPU_FIELD(ImplicitGemm, has_bias),
                    NPU_FIELD(ImplicitGemm, epilogue), NPU_FIELD(ImplicitGemm, isa));

template <>
inline constexpr auto kFields<GroupedConvolution> = std::make_tuple(
    NPU_FIELD(GroupedConvolution, batch), NPU_FIELD(GroupedConvolution, groups),
    NPU_FIELD(GroupedConvolution, source_channels), NPU_FIELD(GroupedConvolution, target_channels),
    NPU_FIELD(GroupedConvolution, source_extent), NPU_FIELD(GroupedConvolution, target_extent),
    NPU_FIELD(GroupedConvolution, taps), NPU_FIELD(GroupedConvolution, stride),
    NPU_FIELD(GroupedConvolution, dilation), NPU_FIELD(GroupedConvolution, pad),
    NPU_FIELD(GroupedConvolution, has_bias), NPU_FIELD(GroupedConvolution, epilogue),
    NPU_FIELD(GroupedConvolution, isa));

template <>
inline constexpr auto kFields<PackedGemm::Steps> =
    std::make_tuple(NPU_FIELD(PackedGemm::Steps, image), NPU_FIELD(PackedGemm::Steps, row),
                    NPU_FIELD(PackedGemm::Steps, block));

template <>
inline constexpr auto kFields<PackedGemm> = std::make_tuple(
    NPU_FIELD(PackedGemm, images), NPU_FIELD(PackedGemm, rows), NPU_FIELD(PackedGemm, inner),
    NPU_FIELD(PackedGemm, columns), NPU_FIELD(PackedGemm, source), NPU_FIELD(PackedGemm, target),
    NPU_FIELD(PackedGemm, use_strassen), NPU_FIELD(PackedGemm, float16_weights),
    NPU_FIELD(PackedGemm, has_norm), NPU_FIELD(PackedGemm, norm_relu),
    NPU_FIELD(PackedGemm, has_bias), NPU_FIELD(PackedGemm, epilogue), NPU_FIELD(PackedGemm, isa));

template <>
inline constexpr auto kFields<HalfGemm> = std::make_tuple(
    NPU_FIELD(HalfGemm, images), NPU_FIELD(HalfGemm, rows), NPU_FIELD(HalfGemm, inner),
    NPU_FIELD(HalfGemm, columns), NPU_FIELD(HalfGemm, source), NPU_FIELD(HalfGemm, target),
    NPU_FIELD(HalfGemm, has_bias), NPU_FIELD(HalfGemm, epilogue), NPU_FIELD(HalfGemm, isa));

template <>
inline constexpr auto kFields<Gemv> =
    std::make_tuple(NPU_FIELD(Gemv, rows), NPU_FIELD(Gemv, inner), NPU_FIELD(Gemv, columns),
                    NPU_FIELD(Gemv, source_row), NPU_FIELD(Gemv, float16_weights),
                    NPU_FIELD(Gemv, has_bias), NPU_FIELD(Gemv, epilogue), NPU_FIELD(Gemv, isa));

template <>
inline constexpr auto kFields<Attention> = std::make_tuple(
    NPU_FIELD(Attention, type), NPU_FIELD(Attention, mask_type), NPU_FIELD(Attention, queries),
    NPU_FIELD(Attention, keys), NPU_FIELD(Attention, width), NPU_FIELD(Attention, value_width),
    NPU_FIELD(Attention, scale), NPU_FIELD(Attention, causal), NPU_FIELD(Attention, has_mask),
    NPU_FIELD(Attention, zero_blocked), NPU_FIELD(Attention, query_strides),
    NPU_FIELD(Attention, key_strides), NPU_FIELD(Attention, value_strides),
    NPU_FIELD(Attention, mask_strides), NPU_FIELD(Attention, result_row),
    NPU_FIELD(Attention, query_offsets), NPU_FIELD(Attention, key_offsets),
    NPU_FIELD(Attention, value_offsets), NPU_FIELD(Attention, mask_offsets),
    NPU_FIELD(Attention, result_offsets), NPU_FIELD(Attention, isa));

template <>
inline constexpr auto kFields<ExpandDepthwise> = std::make_tuple(
    NPU_FIELD(ExpandDepthwise, batch), NPU_FIELD(ExpandDepthwise, source_channels),
    NPU_FIELD(ExpandDepthwise, channels), NPU_FIELD(ExpandDepthwise, source_extent),
    NPU_FIELD(ExpandDepthwise, target_extent), NPU_FIELD(ExpandDepthwise, taps),
    NPU_FIELD(ExpandDepthwise, stride), NPU_FIELD(ExpandDepthwise, pad),
    NPU_FIELD(ExpandDepthwise, bfloat16), NPU_FIELD(ExpandDepthwise, expand_has_bias),
    NPU_FIELD(ExpandDepthwise, depthwise_has_bias), NPU_FIELD(ExpandDepthwise, expand_epilogue),
    NPU_FIELD(ExpandDepthwise, depthwise_epilogue), NPU_FIELD(ExpandDepthwise, isa));

template <>
inline constexpr auto kFields<SqueezeExcite> =
    std::make_tuple(NPU_FIELD(SqueezeExcite, type), NPU_FIELD(SqueezeExcite, batch),
                    NPU_FIELD(SqueezeExcite, channels), NPU_FIELD(SqueezeExcite, lanes),
                    NPU_FIELD(SqueezeExcite, channels_last), NPU_FIELD(SqueezeExcite, spatial),
                    NPU_FIELD(SqueezeExcite, hidden), NPU_FIELD(SqueezeExcite, activation),
                    NPU_FIELD(SqueezeExcite, hard_gate), NPU_FIELD(SqueezeExcite, has_hidden_bias),
                    NPU_FIELD(SqueezeExcite, has_gate_bias), NPU_FIELD(SqueezeExcite, isa));

template <>
inline constexpr auto kFields<ScaleShift> = std::make_tuple(
    NPU_FIELD(ScaleShift, type), NPU_FIELD(ScaleShift, outer), NPU_FIELD(ScaleShift, groups),
    NPU_FIELD(ScaleShift, spatial), NPU_FIELD(ScaleShift, lanes), NPU_FIELD(ScaleShift, has_shift),
    NPU_FIELD(ScaleShift, relu), NPU_FIELD(ScaleShift, scale_by_outer),
    NPU_FIELD(ScaleShift, scale_type), NPU_FIELD(ScaleShift, isa));

template <>
inline constexpr auto kFields<Elementwise> = std::make_tuple(NPU_FIELD(Elementwise, function),
                                                             NPU_FIELD(Elementwise, type),
                                                             NPU_FIELD(Elementwise, count),
                                                             NPU_FIELD(Elementwise, isa),
                                                             NPU_FIELD(Elementwise, alpha));

template <>
inline constexpr auto kFields<Softmax> = std::make_tuple(NPU_FIELD(Softmax, outer),
                                                         NPU_FIELD(Softmax, count),
                                                         NPU_FIELD(Softmax, inner),
                                                         NPU_FIELD(Softmax, logarithm),
                                                         NPU_FIELD(Softmax, isa));

template <>
inline constexpr auto kFields<BroadcastBinary> = std::make_tuple(
    NPU_FIELD(BroadcastBinary, op), NPU_FIELD(BroadcastBinary, alpha),
    NPU_FIELD(BroadcastBinary, type), NPU_FIELD(BroadcastBinary, b_type),
    NPU_FIELD(BroadcastBinary, extents), NPU_FIELD(BroadcastBinary, a_strides),
    NPU_FIELD(BroadcastBinary, b_strides), NPU_FIELD(BroadcastBinary, target_strides));

template <>
inline constexpr auto kFields<RmsNorm> = std::make_tuple(NPU_FIELD(RmsNorm, type),
                                                         NPU_FIELD(RmsNorm, rows),
                                                         NPU_FIELD(RmsNorm, inner),
                                                         NPU_FIELD(RmsNorm, epsilon),
                                                         NPU_FIELD(RmsNorm, has_weight));

template <>
inline constexpr auto kFields<Window> = std::make_tuple(NPU_FIELD(Window, begin),
                                                        NPU_FIELD(Window, end),
                                                        NPU_FIELD(Window, divisor));

template <>
inline constexpr auto kFields<WindowAverage> =
    std::make_tuple(NPU_FIELD(WindowAverage, type), NPU_FIELD(WindowAverage, planes),
                    NPU_FIELD(WindowAverage, extents), NPU_FIELD(WindowAverage, windows),
                    NPU_FIELD(WindowAverage, divisor_override));

template <>
inline constexpr auto kFields<MiddleReduction> = std::make_tuple(NPU_FIELD(MiddleReduction, op),
                                                                 NPU_FIELD(MiddleReduction, type),
                                                                 NPU_FIELD(MiddleReduction, outer),
                                                                 NPU_FIELD(MiddleReduction, count),
                                                                 NPU_FIELD(MiddleReduction, inner),
                                                                 NPU_FIELD(MiddleReduction, isa));

template <>
inline constexpr auto kFields<GatherRows> = std::make_tuple(NPU_FIELD(GatherRows, count),
                                                            NPU_FIELD(GatherRows, rows),
                                                            NPU_FIELD(GatherRows, row_bytes),
                                                            NPU_FIELD(GatherRows, wide_indices),
                                                            NPU_FIELD(GatherRows, node));

template <>
inline constexpr auto kFields<Sequence> = std::make_tuple(NPU_FIELD(Sequence, start),
                                                          NPU_FIELD(Sequence, step),
                                                          NPU_FIELD(Sequence, count));

template <>
inline constexpr auto kFields<Tap> = std::make_tuple(NPU_FIELD(Tap, index), NPU_FIELD(Tap, weight));

template <>
inline constexpr auto kFields<Resample> = std::make_tuple(
    NPU_FIELD(Resample, type), NPU_FIELD(Resample, planes), NPU_FIELD(Resample, lanes),
    NPU_FIELD(Resample, extents), NPU_FIELD(Resample, width), NPU_FIELD(Resample, taps),
    NPU_FIELD(Resample, isa));

template <>
inline constexpr auto kFields<GridSample> =
    std::make_tuple(NPU_FIELD(GridSample, mode), NPU_FIELD(GridSample, padding),
                    NPU_FIELD(GridSample, align_corners), NPU_FIELD(GridSample, batch),
                    NPU_FIELD(GridSample, channels), NPU_FIELD(GridSample, source_extent),
                    NPU_FIELD(GridSample, target_extent), NPU_FIELD(GridSample, isa));

template <>
inline constexpr auto kFields<GroupNorm> = std::make_tuple(
    NPU_FIELD(GroupNorm, type), NPU_FIELD(GroupNorm, outer), NPU_FIELD(GroupNorm, channels),
    NPU_FIELD(GroupNorm, spatial), NPU_FIELD(GroupNorm, lanes), NPU_FIELD(GroupNorm, group_size),
    NPU_FIELD(GroupNorm, epsilon), NPU_FIELD(GroupNorm, has_weight), NPU_FIELD(GroupNorm, has_bias),
    NPU_FIELD(GroupNorm, vector), NPU_FIELD(GroupNorm, isa));

template <>
inline constexpr auto kFields<Recurrence> = std::make_tuple(
    NPU_FIELD(Recurrence, cell), NPU_FIELD(Recurrence, layers), NPU_FIELD(Recurrence, directions),
    NPU_FIELD(Recurrence, batch), NPU_FIELD(Recurrence, steps), NPU_FIELD(Recurrence, inputs),
    NPU_FIELD(Recurrence, hidden), NPU_FIELD(Recurrence, batch_first), NPU_FIELD(Recurrence, isa));

template <>
inline constexpr auto kFields<RecurrenceWeights> =
    std::make_tuple(NPU_FIELD(RecurrenceWeights, cell), NPU_FIELD(RecurrenceWeights, inputs),
                    NPU_FIELD(RecurrenceWeights, hidden), NPU_FIELD(RecurrenceWeights, has_biases));

template <>
inline constexpr auto kFields<Convert> = std::make_tuple(NPU_FIELD(Convert, from),
                                                         NPU_FIELD(Convert, to),
                                                         NPU_FIELD(Convert, count));

template <>
inline constexpr auto kFields<RoundToBFloat16> = std::make_tuple(NPU_FIELD(RoundToBFloat16, count));

template <>
inline constexpr auto kFields<CopyBytes> = std::make_tuple(NPU_FIELD(CopyBytes, bytes));

template <>
inline constexpr auto kFields<StridedCopy> =
    std::make_tuple(NPU_FIELD(StridedCopy, element_size), NPU_FIELD(StridedCopy, extents),
                    NPU_FIELD(StridedCopy, source_strides), NPU_FIELD(StridedCopy, target_strides));

template <>
inline constexpr auto kFields<PaddedCopy> = std::make_tuple(NPU_FIELD(PaddedCopy, type),
                                                            NPU_FIELD(PaddedCopy, number),
                                                            NPU_FIELD(PaddedCopy, count),
                                                            NPU_FIELD(PaddedCopy, offset),
                                                            NPU_FIELD(PaddedCopy, copy));

template <>
inline constexpr auto kFields<Cast> = std::make_tuple(NPU_FIELD(Cast, from), NPU_FIELD(Cast, to),
                                                      NPU_FIELD(Cast, count));

template <>
inline constexpr auto kFields<PlainConcat> = std::make_tuple(NPU_FIELD(PlainConcat, outer),
                                                             NPU_FIELD(PlainConcat, run_bytes));

template <>
inline constexpr auto kFields<TypedBinary> = std::make_tuple(
    NPU_FIELD(TypedBinary, op), NPU_FIELD(TypedBinary, type), NPU_FIELD(TypedBinary, alpha),
    NPU_FIELD(TypedBinary, extents), NPU_FIELD(TypedBinary, a_strides),
    NPU_FIELD(TypedBinary, b_strides), NPU_FIELD(TypedBinary, target_strides),
    NPU_FIELD(TypedBinary, node), NPU_FIELD(TypedBinary, isa));

template <>
inline constexpr auto kFields<Quantize> = std::make_tuple(
    NPU_FIELD(Quantize, to), NPU_FIELD(Quantize, divides), NPU_FIELD(Quantize, outer),
    NPU_FIELD(Quantize, channels), NPU_FIELD(Quantize, inner), NPU_FIELD(Quantize, least),
    NPU_FIELD(Quantize, most), NPU_FIELD(Quantize, isa));

template <>
inline constexpr auto kFields<Dequantize> = std::make_tuple(NPU_FIELD(Dequantize, from),
                                                            NPU_FIELD(Dequantize, outer),
                                                            NPU_FIELD(Dequantize, channels),
                                                            NPU_FIELD(Dequantize, inner),
                                                            NPU_FIELD(Dequantize, isa));

template <>
inline constexpr auto kFields<ByteTable> = std::make_tuple(NPU_FIELD(ByteTable, count),
                                                           NPU_FIELD(ByteTable, isa));

template <>
inline constexpr auto kFields<QuantizedAverage> =
    std::make_tuple(NPU_FIELD(QuantizedAverage, from), NPU_FIELD(QuantizedAverage, to),
                    NPU_FIELD(QuantizedAverage, batch), NPU_FIELD(QuantizedAverage, channels),
                    NPU_FIELD(QuantizedAverage, extents), NPU_FIELD(QuantizedAverage, windows),
                    NPU_FIELD(QuantizedAverage, divisor_override),
                    NPU_FIELD(QuantizedAverage, factor), NPU_FIELD(QuantizedAverage, source_zero),
                    NPU_FIELD(QuantizedAverage, zero), NPU_FIELD(QuantizedAverage, least),
                    NPU_FIELD(QuantizedAverage, most), NPU_FIELD(QuantizedAverage, isa));

template <>
inline constexpr auto kFields<QuantizedResample> =
    std::make_tuple(NPU_FIELD(QuantizedResample, from), NPU_FIELD(QuantizedResample, to),
                    NPU_FIELD(QuantizedResample, batch), NPU_FIELD(QuantizedResample, channels),
                    NPU_FIELD(QuantizedResample, extents), NPU_FIELD(QuantizedResample, width),
                    NPU_FIELD(QuantizedResample, taps), NPU_FIELD(QuantizedResample, factor),
                    NPU_FIELD(QuantizedResample, source_zero), NPU_FIELD(QuantizedResample, zero),
                    NPU_FIELD(QuantizedResample, least), NPU_FIELD(QuantizedResample, most),
                    NPU_FIELD(QuantizedResample, isa));

template <>
inline constexpr auto kFields<SplitRows> = std::make_tuple(NPU_FIELD(SplitRows, rows),
                                                           NPU_FIELD(SplitRows, count),
                                                           NPU_FIELD(SplitRows, isa));

template <>
inline constexpr auto kFields<IntegerRows> = std::make_tuple(
    NPU_FIELD(IntegerRows, type), NPU_FIELD(IntegerRows, batch), NPU_FIELD(IntegerRows, groups),
    NPU_FIELD(IntegerRows, channels), NPU_FIELD(IntegerRows, extents), NPU_FIELD(IntegerRows, taps),
    NPU_FIELD(IntegerRows, stride), NPU_FIELD(IntegerRows, dilation), NPU_FIELD(IntegerRows, pad),
    NPU_FIELD(IntegerRows, windows), NPU_FIELD(IntegerRows, isa));

template <>
inline constexpr auto kFields<IntegerPanels> = std::make_tuple(NPU_FIELD(IntegerPanels, type),
                                                               NPU_FIELD(IntegerPanels, batch),
                                                               NPU_FIELD(IntegerPanels, inner),
                                                               NPU_FIELD(IntegerPanels, columns));

template <>
inline constexpr auto kFields<IntegerProduct> =
    std::make_tuple(NPU_FIELD(IntegerProduct, type), NPU_FIELD(IntegerProduct, batch),
                    NPU_FIELD(IntegerProduct, rows), NPU_FIELD(IntegerProduct, inner),
                    NPU_FIELD(IntegerProduct, columns), NPU_FIELD(IntegerProduct, target_batch),
                    NPU_FIELD(IntegerProduct, target_row), NPU_FIELD(IntegerProduct, left_zeros),
                    NPU_FIELD(IntegerProduct, right_zeros), NPU_FIELD(IntegerProduct, left_shift),
                    NPU_FIELD(IntegerProduct, right_shift), NPU_FIELD(IntegerProduct, uses_vnni),
                    NPU_FIELD(IntegerProduct, isa));

template <>
inline constexpr auto kFields<AttentionSum> = std::make_tuple(
    NPU_FIELD(AttentionSum, to), NPU_FIELD(AttentionSum, rows), NPU_FIELD(AttentionSum, count),
    NPU_FIELD(AttentionSum, width), NPU_FIELD(AttentionSum, factor),
    NPU_FIELD(AttentionSum, source_zero), NPU_FIELD(AttentionSum, zero),
    NPU_FIELD(AttentionSum, least), NPU_FIELD(AttentionSum, most), NPU_FIELD(AttentionSum, isa));

template <>
inline constexpr auto kFields<QuantizedBinary> =
    std::make_tuple(NPU_FIELD(QuantizedBinary, a_type), NPU_FIELD(QuantizedBinary, b_type),
                    NPU_FIELD(QuantizedBinary, to), NPU_FIELD(QuantizedBinary, multiplies),
                    NPU_FIELD(QuantizedBinary, a_factor), NPU_FIELD(QuantizedBinary, b_factor),
                    NPU_FIELD(QuantizedBinary, a_zero), NPU_FIELD(QuantizedBinary, b_zero),
                    NPU_FIELD(QuantizedBinary, zero), NPU_FIELD(QuantizedBinary, least),
                    NPU_FIELD(QuantizedBinary, most), NPU_FIELD(QuantizedBinary, repeat),
                    NPU_FIELD(QuantizedBinary, outer), NPU_FIELD(QuantizedBinary, inner_repeat),
                    NPU_FIELD(QuantizedBinary, inner), NPU_FIELD(QuantizedBinary, isa));

template <>
inline constexpr auto kFields<Select> = std::make_tuple(
    NPU_FIELD(Select, element_size), NPU_FIELD(Select, extents),
    NPU_FIELD(Select, condition_strides), NPU_FIELD(Select, a_strides),
    NPU_FIELD(Select, b_strides), NPU_FIELD(Select, target_strides), NPU_FIELD(Select, isa));

template <>
inline constexpr auto kFields<IntegerReduction> =
    std::make_tuple(NPU_FIELD(IntegerReduction, op), NPU_FIELD(IntegerReduction, type),
                    NPU_FIELD(IntegerReduction, outer), NPU_FIELD(IntegerReduction, count),
                    NPU_FIELD(IntegerReduction, inner));

template <>
inline constexpr auto kFields<ArgReduction> = std::make_tuple(NPU_FIELD(ArgReduction, type),
                                                              NPU_FIELD(ArgReduction, greatest),
                                                              NPU_FIELD(ArgReduction, has_values),
                                                              NPU_FIELD(ArgReduction, outer),
                                                              NPU_FIELD(ArgReduction, count),
                                                              NPU_FIELD(ArgReduction, inner));

template <>
inline constexpr auto kFields<RunningSum> = std::make_tuple(NPU_FIELD(RunningSum, type),
                                                            NPU_FIELD(RunningSum, outer),
                                                            NPU_FIELD(RunningSum, count),
                                                            NPU_FIELD(RunningSum, inner));

template <>
inline constexpr auto kFields<CopyParts::Part> = std::make_tuple(NPU_FIELD(CopyParts::Part, source),
                                                                 NPU_FIELD(CopyParts::Part, from),
                                                                 NPU_FIELD(CopyParts::Part, to),
                                                                 NPU_FIELD(CopyParts::Part, copy));

template <>
inline constexpr auto kFields<CopyParts> = std::make_tuple(NPU_FIELD(CopyParts, sources),
                                                           NPU_FIELD(CopyParts, parts));

template <>
inline constexpr auto kFields<Triangle> = std::make_tuple(
    NPU_FIELD(Triangle, element_size), NPU_FIELD(Triangle, planes), NPU_FIELD(Triangle, rows),
    NPU_FIELD(Triangle, columns), NPU_FIELD(Triangle, diagonal), NPU_FIELD(Triangle, upper));

template <>
inline constexpr auto kFields<IndexedCopy::Index> =
    std::make_tuple(NPU_FIELD(IndexedCopy::Index, extent), NPU_FIELD(IndexedCopy::Index, step),
                    NPU_FIELD(IndexedCopy::Index, strides));

template <>
inline constexpr auto kFields<IndexedCopy> =
    std::make_tuple(NPU_FIELD(IndexedCopy, type), NPU_FIELD(IndexedCopy, scatters),
                    NPU_FIELD(IndexedCopy, accumulates), NPU_FIELD(IndexedCopy, wraps),
                    NPU_FIELD(IndexedCopy, count), NPU_FIELD(IndexedCopy, extents),
                    NPU_FIELD(IndexedCopy, indexed_strides), NPU_FIELD(IndexedCopy, other_strides),
                    NPU_FIELD(IndexedCopy, indices), NPU_FIELD(IndexedCopy, node));

template <>
inline constexpr auto kFields<WinogradWeights> = std::make_tuple(NPU_FIELD(WinogradWeights,
                                                                           winograd));

template <>
inline constexpr auto kFields<PackedGemmWeights> = std::make_tuple(NPU_FIELD(PackedGemmWeights,
                                                                             gemm));

template <>
inline constexpr auto kFields<HalfWeights> = std::make_tuple(NPU_FIELD(HalfWeights, count));

template <>
inline constexpr auto kFields<HalfGemmWeights> =
    std::make_tuple(NPU_FIELD(HalfGemmWeights, columns), NPU_FIELD(HalfGemmWeights, inner));

template <>
inline constexpr auto kFields<ColumnScales> = std::make_tuple(NPU_FIELD(ColumnScales, columns),
                                                              NPU_FIELD(ColumnScales, inner));

template <>
inline constexpr auto kFields<PanelWeights> = std::make_tuple(NPU_FIELD(PanelWeights, channels),
                                                              NPU_FIELD(PanelWeights, inner),
                                                              NPU_FIELD(PanelWeights, panel),
                                                              NPU_FIELD(PanelWeights, pairs));

template <>
inline constexpr auto kFields<GateWeights> = std::make_tuple(NPU_FIELD(GateWeights, channels),
                                                             NPU_FIELD(GateWeights, lanes),
                                                             NPU_FIELD(GateWeights, hidden));

template <>
inline constexpr auto kFields<NormFold> = std::make_tuple(
    NPU_FIELD(NormFold, epsilon), NPU_FIELD(NormFold, groups), NPU_FIELD(NormFold, rows),
    NPU_FIELD(NormFold, channels), NPU_FIELD(NormFold, inner), NPU_FIELD(NormFold, has_scale),
    NPU_FIELD(NormFold, has_shift), NPU_FIELD(NormFold, has_bias));

template <>
inline constexpr auto kFields<FoldNormWeights> = std::make_tuple(NPU_FIELD(FoldNormWeights, fold));

template <>
inline constexpr auto kFields<FoldNormBias> = std::make_tuple(NPU_FIELD(FoldNormBias, fold));

template <>
inline constexpr auto kFields<NormVectors> =
    std::make_tuple(NPU_FIELD(NormVectors, epsilon), NPU_FIELD(NormVectors, channels),
                    NPU_FIELD(NormVectors, padded_channels), NPU_FIELD(NormVectors, has_scale),
                    NPU_FIELD(NormVectors, has_shift));

template <typename... Kernels>
constexpr bool lists_all_kernels(const std::variant<Kernels...>* /*type*/) {
  return (lists_all_fields<Kernels>() && ...);
}
static_assert(lists_all_kernels(static_cast<const Kernel*>(nullptr)) &&
                  lists_all_fields<EpilogueStep>() && lists_all_fields<Winograd::Filter>() &&
                  lists_all_fields<PackedGemm::Steps>() && lists_all_fields<Window>() &&
                  lists_all_fields<Tap>() && lists_all_fields<CopyParts::Part>() &&
                  lists_all_fields<IndexedCopy::Index>() && lists_all_fields<NormFold>(),
              "a field of a kernel is not listed above");

}  // namespace npu::onednn
