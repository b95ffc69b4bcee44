// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "kernels/fields.hpp"
#include "program/plan_record.hpp"

namespace npu::onednn {

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

NPU_FIELDS(TensorBinding, name, dtype, shape, layout);
NPU_FIELDS(BufferRecord, kind, bytes, index, offset);
NPU_FIELDS(OperandRecord, buffer, offset_bytes);
NPU_FIELDS(LayoutRecord, type, extents, strides, inner_blocks, inner_dimensions, sums, sign_mask,
           zero_point_mask, sum_bytes);
NPU_FIELDS(PostOpRecord, kind, algorithm, alpha, beta, zero_point, type);
NPU_FIELDS(PrimitiveRecord, kind, algorithm, alpha, beta, axis, has_bias, has_scale, has_shift,
           kernel, strides, dilation, pad_begin, pad_end, output_scale, right_scale, channel_scales,
           source_zero_point, weights_zero_point, target_zero_point, post_ops, layouts);
NPU_FIELDS(StepRecord, node, operands, scratch_bytes, scratch_offset, kernel, primitive);
NPU_FIELDS(TapRecord, tensor, type, layout, source, steps);
NPU_FIELDS(PlanRecord, node_count, arena_bytes, inputs, outputs, buffers, steps, taps);

}  // namespace npu::onednn
