// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <vector>

#include "passes/quantize/quantize.hpp"
#include "profile/profile_model.hpp"

namespace npu {

/// What the conversions of a quantized document take on each device of its measured `times`: what
/// its kernels take beyond `table`'s times of their nodes, each in its precision, is shared by the
/// conversions among their operands and results, by bytes. Kernels away from conversions tell how
/// much slower the machine was than for `table`. `document` is made of `model`, and `choice` says
/// how. No time is below 0.
std::vector<TensorConversion> conversions_of(const Graph& model, const Graph& document,
                                             const QuantizeResult& choice, const NodeTable& times,
                                             const NodeTable& table);

/// Chooses precisions by the table for several errors, measures those documents, and fills in the
/// table's `tensor_conversions`, until the choices are ones that have been measured. Before it, the
/// table has `int8` and `conversions`. `measure` runs a document, on the target's first device,
/// which is where precisions are chosen for.
void add_tensor_conversions(const Graph& model, const ProfileModelOptions& options,
                            const std::function<NodeTable(const Graph&)>& measure,
                            Diagnostics& diagnostics, NodeTable& table);

}  // namespace npu
