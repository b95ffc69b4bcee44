// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "gnn/plan/document/plan_document.hpp"

namespace npu::gnn {

/// The largest quantum of static shapes that is of any use for a graph of so many nodes and edges;
/// more would only take memory.
std::int64_t largest_pad(std::int64_t nodes, std::int64_t edges);

/// Throws Error kUsage, which names --pad, for a quantum above that.
void check_pad(std::int64_t pad, std::int64_t nodes, std::int64_t edges);

/// `value`, rounded up to a multiple of `pad`, at least once.
std::int64_t padded_size(std::int64_t value, std::int64_t pad);

/// Checks that the sections of a plan fit each other, so that running it reads nothing that is not
/// there and takes no more memory than the graph gives reason for. What only its inputs can tell is
/// for verify_plan and load_plan. Throws Error kInvalidGraph with the place of the first fault.
void check_plan(const GnnPlan& plan, const std::string& file);

}  // namespace npu::gnn
