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
inline constexpr int kEnumerators<IndexedCopy::Combine> = 4;
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
// A macro cannot name itself: what is left of a list is read again, at most 27 times.
#define NPU_READ_AGAIN(...) NPU_READ_9(NPU_READ_9(NPU_READ_9(__VA_ARGS__)))
#define NPU_READ_9(...) NPU_READ_3(NPU_READ_3(NPU_READ_3(__VA_ARGS__)))
#define NPU_READ_3(...) NPU_READ(NPU_READ(NPU_READ(__VA_ARGS__)))
#define NPU_READ(...) __VA_ARGS__
#define NPU_NEXT_FIELDS() NPU_EACH_FIELD
#define NPU_NO_ARGUMENTS ()
#define NPU_EACH_FIELD(Type, name, ...) \
  make_field(#name, &Type::name) __VA_OPT__(, NPU_NEXT_FIELDS NPU_NO_ARGUMENTS(Type, __VA_ARGS__))

/// NPU_FIELDS(Type, a, b, ..); lists the fields of a struct in the order in which they are written.
#define NPU_FIELDS(Type, ...)                                             \
  template <>                                                             \
  inline constexpr auto kFields<Type> =                                   \
      std::make_tuple(NPU_READ_AGAIN(NPU_EACH_FIELD(Type, __VA_ARGS__))); \
  static_assert(lists_all_fields<Type>(), "a field of " #Type " is not listed, but for 'threads'")
// NOLINTEND(cppcoreguidelines-macro-usage)

NPU_FIELDS(EpilogueStep, kind, alpha, beta);
NPU_FIELDS(Winograd::Filter, tile, taps, stride);
NPU_FIELDS(Winograd, filter, batch, frames, source_channels, target_channels, source_extent,
           target_extent, pad, has_bias, epilogue, isa);
NPU_FIELDS(ImplicitGemm, batch, source_channels, target_channels, source_extent, target_extent,
           taps, dilation, pad, has_bias, epilogue, isa);
NPU_FIELDS(GroupedConvolution, batch, groups, source_channels, target_channels, source_extent,
           target_extent, taps, stride, dilation, pad, has_bias, epilogue, isa);
NPU_FIELDS(PackedGemm::Steps, image, row, block);
NPU_FIELDS(PackedGemm, images, rows, inner, columns, source, target, use_strassen, weight_type,
           has_norm, norm_relu, has_bias, epilogue, isa);
NPU_FIELDS(HalfGemm, images, rows, inner, columns, source, target, has_bias, epilogue, isa);
NPU_FIELDS(Gemv, rows, inner, columns, source_row, weight_type, has_bias, epilogue, isa);
NPU_FIELDS(Attention, type, mask_type, queries, keys, width, value_width, scale, least_query_length,
           least_key_length, has_factor, causal, has_mask, mask_keeps, mask_fill, zero_nan,
           zero_blocked, query_strides, key_strides, value_strides, mask_strides, result_row,
           query_offsets, key_offsets, value_offsets, mask_offsets, factor_offsets, result_offsets,
           isa);
NPU_FIELDS(ExpandDepthwise, batch, source_channels, channels, source_extent, target_extent, taps,
           stride, pad, bfloat16, expand_has_bias, depthwise_has_bias, expand_epilogue,
           depthwise_epilogue, isa);
NPU_FIELDS(SqueezeExcite, type, batch, channels, lanes, channels_last, spatial, hidden, activation,
           hard_gate, has_hidden_bias, has_gate_bias, isa);
NPU_FIELDS(ScaleShift, type, outer, groups, spatial, lanes, has_shift, relu, scale_by_outer,
           scale_type, isa);
NPU_FIELDS(Elementwise, function, type, count, isa, alpha);
NPU_FIELDS(Softmax, outer, count, inner, logarithm, isa);
NPU_FIELDS(BroadcastBinary, op, alpha, type, b_type, extents, a_strides, b_strides, target_strides);
NPU_FIELDS(RmsNorm, type, rows, inner, epsilon, has_weight);
NPU_FIELDS(Window, begin, end, divisor);
NPU_FIELDS(WindowPool, is_maximum, type, planes, extents, windows, step, divisor_override, isa);
NPU_FIELDS(MiddleReduction, op, type, outer, count, inner, isa);
NPU_FIELDS(GatherRows, count, rows, row_bytes, wide_indices, node);
NPU_FIELDS(Sequence, start, step, count);
NPU_FIELDS(Tap, index, weight);
NPU_FIELDS(Resample, type, planes, lanes, extents, width, taps, adds, relu, isa);
NPU_FIELDS(GridSample, mode, padding, align_corners, batch, channels, source_extent, target_extent,
           isa);
NPU_FIELDS(GroupNorm, type, outer, channels, spatial, lanes, group_size, epsilon, has_weight,
           has_bias, vector, isa);
NPU_FIELDS(Recurrence, cell, layers, directions, batch, steps, inputs, hidden, batch_first, isa);
NPU_FIELDS(RecurrenceWeights, cell, inputs, hidden, has_biases);
NPU_FIELDS(Convert, from, to, count);
NPU_FIELDS(RoundToBFloat16, count);
NPU_FIELDS(CopyBytes, bytes);
NPU_FIELDS(StridedCopy, element_size, extents, source_strides, target_strides);
NPU_FIELDS(PaddedCopy, type, number, count, offset, copy);
NPU_FIELDS(Cast, from, to, count);
NPU_FIELDS(PlainConcat, outer, run_bytes);
NPU_FIELDS(TypedBinary, op, type, alpha, extents, a_strides, b_strides, target_strides, node, isa);
NPU_FIELDS(Quantize, to, divides, outer, channels, inner, least, most, isa);
NPU_FIELDS(Dequantize, from, outer, channels, inner, isa);
NPU_FIELDS(ByteTable, count, isa);
NPU_FIELDS(QuantizedAverage, from, to, batch, channels, extents, windows, divisor_override, factor,
           source_zero, zero, least, most, isa);
NPU_FIELDS(QuantizedResample, from, to, batch, channels, extents, width, taps, factor, source_zero,
           zero, least, most, isa);
NPU_FIELDS(SplitRows, rows, count, isa);
NPU_FIELDS(IntegerRows, type, batch, groups, channels, extents, taps, stride, dilation, pad,
           windows, isa);
NPU_FIELDS(IntegerPanels, type, batch, inner, columns);
NPU_FIELDS(IntegerProduct, type, batch, rows, inner, columns, target_batch, target_row, left_zeros,
           right_zeros, left_shift, right_shift, uses_vnni, isa);
NPU_FIELDS(AttentionSum, to, rows, count, width, factor, source_zero, zero, least, most, isa);
NPU_FIELDS(QuantizedBinary, a_type, b_type, to, multiplies, a_factor, b_factor, a_zero, b_zero,
           zero, least, most, repeat, outer, inner_repeat, inner, isa);
NPU_FIELDS(Select, element_size, extents, condition_strides, a_strides, b_strides, target_strides,
           isa);
NPU_FIELDS(IntegerReduction, op, type, outer, count, inner);
NPU_FIELDS(ArgReduction, type, greatest, has_values, outer, count, inner);
NPU_FIELDS(SortRows, type, descending, has_values, rows, count, kept);
NPU_FIELDS(GroupedProduct, groups, rows, inner, columns, node, isa);
NPU_FIELDS(RunningSum, type, outer, count, inner);
NPU_FIELDS(CopyParts::Part, source, from, to, copy);
NPU_FIELDS(CopyParts, sources, parts);
NPU_FIELDS(Triangle, element_size, planes, rows, columns, diagonal, upper);
NPU_FIELDS(IndexedCopy::Index, extent, step, strides);
NPU_FIELDS(IndexedCopy, type, scatters, combine, wraps, count, extents, indexed_strides,
           other_strides, indices, node);
NPU_FIELDS(WinogradWeights, winograd);
NPU_FIELDS(PackedGemmWeights, gemm);
NPU_FIELDS(HalfWeights, count, type);
NPU_FIELDS(HalfGemmWeights, columns, inner);
NPU_FIELDS(ColumnScales, columns, inner);
NPU_FIELDS(PanelWeights, channels, inner, panel, pairs);
NPU_FIELDS(GateWeights, channels, lanes, hidden);
NPU_FIELDS(NormFold, epsilon, groups, rows, channels, inner, has_scale, has_shift, has_bias);
NPU_FIELDS(FoldNormWeights, fold);
NPU_FIELDS(FoldNormBias, fold);
NPU_FIELDS(NormVectors, epsilon, channels, padded_channels, has_scale, has_shift);

}  // namespace npu::onednn
