// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

#include "program/plan_record.hpp"

namespace npu::onednn {

/// Bytes from the first to the last element of a layout, its padding included. Throws Error
/// kInvalidGraph if it is none that a primitive may see: extents and strides in range, one element
/// for one place.
std::size_t checked_span(const LayoutRecord& layout);

/// Checks a plan of any origin, whose kernels run on the threads that they have been set to: when
/// that returns, running the plan reads and writes only memory that is there and that is meant to
/// be written, initialised by an earlier step. Primitives are trusted to stay inside the layouts
/// of their operands; `scratch_bytes` says for each step what its primitive needs.
/// Scratch memory of steps grows where they need more than the plan says, and the arena is then
/// planned again. `constant_bytes` are the sizes of the blob's constants. Throws Error
/// kInvalidGraph that names step and operand.
void check_plan(PlanRecord& plan, std::span<const std::size_t> scratch_bytes,
                std::span<const std::size_t> constant_bytes);

}  // namespace npu::onednn
