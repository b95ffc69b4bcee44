// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "gnn/exchange/device_exchange.hpp"
#include "gnn/model/staged_model.hpp"
#include "gnn/plan/document/plan_document.hpp"

namespace npu::gnn {

/// By device plan: 1 if a device other than the host reads rows of other parts under it. Empty if
/// the plan has no exchange.
std::vector<char> crossing_device_plans(const GnnPlan& plan, const StagedModel& model);

/// What crosses in every layer of a plan whose sizes, device plans and assignments are there.
std::vector<LayerCrossing> count_crossings(const GnnPlan& plan, const StagedModel& model);

}  // namespace npu::gnn
