// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "lowering/engine/entry_rows.hpp"
#include "lowering/engine/machine.hpp"
#include "npu/ir/graph.hpp"
#include "program/plan.hpp"
#include "program/weight_view.hpp"

namespace npu::onednn {

/// Lowers a verified sub-IR. Throws Error kUnsupported that names node, op, argument and reason for
/// what this backend does not run, kInvalidGraph where the sub-IR contradicts itself or `weights`.
/// Creates primitive descriptors, but no code.
/// Calls `checkpoint` before each node with its number and the number of nodes; it may throw.
/// Inputs and outputs lie as `boundaries` say; kInvalidGraph for a layout that there is not.
/// Where the machine prefers bfloat16, the plan computes in it if that is estimated to take less
/// time than float32; else it only stores weights in bfloat16, where reading them takes longest.
/// `entries`: those that are compiled together with this one, whose weights are stored once.
Plan lower_graph(const Graph& graph, std::span<const WeightView> weights, const Machine& machine,
                 const dnnl::engine& engine, const Checkpoint& checkpoint = {},
                 const LayoutNames& boundaries = {}, const EntryRows& entries = {});

}  // namespace npu::onednn
