// SPDX-License-Identifier: Apache-2.0
#pragma once

// How the engine finds what lowers a node or a group. The tables are in lowering_table.cpp, which
// alone knows all families.

#include <string_view>
#include <variant>

#include "fusion/check_groups.hpp"
#include "lowering/engine/lowered.hpp"
#include "npu/ir/graph.hpp"
#include "ops/schema.hpp"

namespace npu::onednn {

class Lowering;
struct GroupContext;

/// Lowers one node of one op type, which is the same wherever it stands: it moves elements, or
/// computes in their own types.
using MoveFunction = void (*)(Lowering& lowering, const BoundNode& node);
/// Likewise for one that computes in floats.
using ComputeFunction = void (*)(Lowering& lowering, const GroupContext& context,
                                 const BoundNode& node);
/// Likewise for an op that may be the anchor of a group, and may then be refused with it.
using AnchorFunction = Lowered<Done> (*)(Lowering& lowering, const GroupContext& context,
                                         const BoundNode& node);
/// Likewise for an op without a schema.
using BareFunction = void (*)(Lowering& lowering, const Node& node);

/// One row of the table of ops.
struct LoweringRow {
  std::string_view op_type;
  std::variant<MoveFunction, ComputeFunction, AnchorFunction, BareFunction> lower;
};

/// Null for an op that this backend does not run.
const LoweringRow* find_lowering(std::string_view op_type);

/// Lowers a node by a row with a MoveFunction or a ComputeFunction.
void lower_bound(const LoweringRow& row, Lowering& lowering, const GroupContext& context,
                 const BoundNode& node);

/// Lowers the nodes of `context.group` together.
using GroupFunction = Lowered<Done> (*)(Lowering& lowering, const GroupContext& context);

/// Null for kEpilogue, whose anchor is lowered as a node is.
GroupFunction find_group_lowering(KernelGroup::Kind kind);

}  // namespace npu::onednn
