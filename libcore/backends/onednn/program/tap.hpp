// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "program/plan_record.hpp"

namespace npu::onednn {

/// Bytes of memory that a tap reads from. Throws Error kInvalidGraph if copy_tap could not copy it:
/// its layout is none of its tensor, or its elements cannot become the tensor's.
std::size_t tap_span(const TapRecord& tap);

/// Copies a tap for which tap_span does not throw, row-major and in the tensor's dtype. `source` is
/// where its first element lies. O(elements).
void copy_tap(const TapRecord& tap, const std::byte* source, std::byte* target);

}  // namespace npu::onednn
