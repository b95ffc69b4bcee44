// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/bind_sizes.hpp"
#include "npu/ir/graph.hpp"
#include "npu/support/error.hpp"

namespace npu {

/// A template of what a graph has become: `graph` is `model`, bound to `values` and changed since
/// by a pass that keeps the names of tensors and the shapes of what it adds. Shapes and integer
/// attributes that the template states are its own again, and a tensor that it does not have gets
/// the sizes of the first operand of its node that has its shape. Adds an error for a tensor of
/// which neither says the sizes, and for a result that is another graph at `values`.
Template restored_template(const Template& model, Graph graph, const SizeBindings& values,
                           Diagnostics& diagnostics);

}  // namespace npu
