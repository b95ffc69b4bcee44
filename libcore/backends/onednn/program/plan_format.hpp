// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/fields.hpp"
#include "program/plan_record.hpp"

namespace npu::onednn {

/// The number of the format of a plan, which is a part of the backend's fingerprint. It goes up
/// with every change after which an older plan would be read wrongly: fields, their order and what
/// they mean, the order in which a kernel reads packed weights, and which primitives compute what
/// they say. plan_format_test knows the digests that belong to it.
inline constexpr std::uint32_t kPlanFormat = 21;

/// The bytes of a plan. Numbers are the machine's own.
std::vector<std::byte> write_plan(const PlanRecord& plan);

/// A plan from bytes of any origin: names, enumerators and counts are checked, what the numbers
/// mean is not (see check_plan). Memory is bounded by the size of `bytes`. Throws Error
/// kInvalidGraph that names the place.
PlanRecord read_plan(std::span<const std::byte> bytes);

template <>
inline constexpr int kEnumerators<BufferKind> = 5;
template <>
inline constexpr int kEnumerators<PrimitiveKind> = 12;
template <>
inline constexpr int kEnumerators<PostOpRecord::Kind> = 3;

template <>
inline constexpr auto kFields<TensorBinding> = std::make_tuple(NPU_FIELD(TensorBinding, name),
                                                               NPU_FIELD(TensorBinding, dtype),
                                                               NPU_FIELD(TensorBinding, shape),
                                                               NPU_FIELD(TensorBinding, layout));

template <>
inline constexpr auto kFields<BufferRecord> = std::make_tuple(NPU_FIELD(BufferRecord, kind),
                                                              NPU_FIELD(BufferRecord, bytes),
                                                              NPU_FIELD(BufferRecord, index),
                                                              NPU_FIELD(BufferRecord, offset));

template <>
inline constexpr auto kFields<OperandRecord> =
    std::make_tuple(NPU_FIELD(OperandRecord, buffer), NPU_FIELD(OperandRecord, offset_bytes));

template <>
inline constexpr auto kFields<LayoutRecord> =
    std::make_tuple(NPU_FIELD(LayoutRecord, type), NPU_FIELD(LayoutRecord, extents),
                    NPU_FIELD(LayoutRecord, strides), NPU_FIELD(LayoutRecord, inner_blocks),
                    NPU_FIELD(LayoutRecord, inner_dimensions), NPU_FIELD(LayoutRecord, sums),
                    NPU_FIELD(LayoutRecord, sign_mask), NPU_FIELD(LayoutRecord, zero_point_mask),
                    NPU_FIELD(LayoutRecord, sum_bytes));

template <>
inline constexpr auto kFields<PostOpRecord> = std::make_tuple(NPU_FIELD(PostOpRecord, kind),
                                                              NPU_FIELD(PostOpRecord, algorithm),
                                                              NPU_FIELD(PostOpRecord, alpha),
                                                              NPU_FIELD(PostOpRecord, beta),
                                                              NPU_FIELD(PostOpRecord, zero_point),
                                                              NPU_FIELD(PostOpRecord, type));

template <>
inline constexpr auto kFields<PrimitiveRecord> = std::make_tuple(
    NPU_FIELD(PrimitiveRecord, kind), NPU_FIELD(PrimitiveRecord, algorithm),
    NPU_FIELD(PrimitiveRecord, alpha), NPU_FIELD(PrimitiveRecord, beta),
    NPU_FIELD(PrimitiveRecord, axis), NPU_FIELD(PrimitiveRecord, has_bias),
    NPU_FIELD(PrimitiveRecord, has_scale), NPU_FIELD(PrimitiveRecord, has_shift),
    NPU_FIELD(PrimitiveRecord, kernel), NPU_FIELD(PrimitiveRecord, strides),
    NPU_FIELD(PrimitiveRecord, dilation), NPU_FIELD(PrimitiveRecord, pad_begin),
    NPU_FIELD(PrimitiveRecord, pad_end), NPU_FIELD(PrimitiveRecord, output_scale),
    NPU_FIELD(PrimitiveRecord, right_scale), NPU_FIELD(PrimitiveRecord, channel_scales),
    NPU_FIELD(PrimitiveRecord, source_zero_point), NPU_FIELD(PrimitiveRecord, weights_zero_point),
    NPU_FIELD(PrimitiveRecord, target_zero_point), NPU_FIELD(PrimitiveRecord, post_ops),
    NPU_FIELD(PrimitiveRecord, layouts));

template <>
inline constexpr auto kFields<StepRecord> = std::make_tuple(NPU_FIELD(StepRecord, node),
                                                            NPU_FIELD(StepRecord, operands),
                                                            NPU_FIELD(StepRecord, scratch_bytes),
                                                            NPU_FIELD(StepRecord, scratch_offset),
                                                            NPU_FIELD(StepRecord, kernel),
                                                            NPU_FIELD(StepRecord, primitive));

template <>
inline constexpr auto kFields<TapRecord> = std::make_tuple(NPU_FIELD(TapRecord, tensor),
                                                           NPU_FIELD(TapRecord, type),
                                                           NPU_FIELD(TapRecord, layout),
                                                           NPU_FIELD(TapRecord, source),
                                                           NPU_FIELD(TapRecord, steps));

template <>
inline constexpr auto kFields<PlanRecord> = std::make_tuple(
    NPU_FIELD(PlanRecord, node_count), NPU_FIELD(PlanRecord, arena_bytes),
    NPU_FIELD(PlanRecord, inputs), NPU_FIELD(PlanRecord, outputs), NPU_FIELD(PlanRecord, buffers),
    NPU_FIELD(PlanRecord, steps), NPU_FIELD(PlanRecord, taps));

static_assert(lists_all_fields<TensorBinding>() && lists_all_fields<BufferRecord>() &&
                  lists_all_fields<OperandRecord>() && lists_all_fields<LayoutRecord>() &&
                  lists_all_fields<PostOpRecord>() && lists_all_fields<PrimitiveRecord>() &&
                  lists_all_fields<StepRecord>() && lists_all_fields<TapRecord>() &&
                  lists_all_fields<PlanRecord>(),
              "a field of a plan is not listed above");

}  // namespace npu::onednn
