// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "op.hpp"

namespace npu::onnx {

/// Computes the results of a node whose operands are all known and small, so that shapes that are
/// worked out in the model are numbers here. False if the node is for its rule.
bool evaluate(Op& op);

}  // namespace npu::onnx
