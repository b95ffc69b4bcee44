// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "npu/ir/graph.hpp"
#include "program/plan.hpp"
#include "program/stored_plan.hpp"

namespace npu::onednn {

/// What compile made of a sub-IR, as the JSON text of npu_backend::blob_report.
std::string compile_report(const Graph& graph, const Plan& plan, const StoredPlan& stored,
                           std::string_view precision);

}  // namespace npu::onednn
