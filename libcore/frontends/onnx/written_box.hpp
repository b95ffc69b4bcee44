// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "op.hpp"

namespace npu::onnx {

/// `x` with `updates` at ScatterND's indices, where these count along each axis: what exporters
/// make of an assignment to a part of a tensor. One aten.slice_scatter for each axis of which only
/// a part is written; `updates` itself if all is. Null if the indices are something else.
Value* write_box(Op& op, Value* x, Value* index, Value* updates);

}  // namespace npu::onnx
