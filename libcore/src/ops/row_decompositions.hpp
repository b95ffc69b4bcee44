// SPDX-License-Identifier: Apache-2.0
#pragma once

// Decompositions of ops that tell rows apart by their number.

#include "ops/part_writer.hpp"

namespace npu::decompositions {

/// npu.tail: rows chosen by their number, or read again from the last valid one.
Value tail(PartWriter& w);
/// npu.length_mask: keys in a row of numbers, compared with what restricts them.
Value length_mask(PartWriter& w);

}  // namespace npu::decompositions
