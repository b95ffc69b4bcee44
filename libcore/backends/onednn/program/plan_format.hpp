// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "program/plan_record.hpp"

namespace npu::onednn {

/// The bytes of a plan. Numbers are the machine's own.
std::vector<std::byte> write_plan(const PlanRecord& plan);

/// A plan from bytes of any origin: names, enumerators and counts are checked, what the numbers
/// mean is not (see check_plan). Memory is bounded by the size of `bytes`. Throws Error
/// kInvalidGraph that names the place.
PlanRecord read_plan(std::span<const std::byte> bytes);

}  // namespace npu::onednn
