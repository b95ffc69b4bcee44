// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "npu/compile/memory_needs.hpp"
#include "npu/runtime/executor.hpp"
#include "npu/target/target.hpp"
#include "runtime/executor/loaded_programs.hpp"

namespace npu {

/// What there is for a plan's devices, in the order of the target, before anything is loaded.
std::vector<DeviceMemoryNeed> memory_there(const RunDevices& devices, const Target& target,
                                           const Json& backend_options);

/// Asks the blobs what so many runs at once take, if anything limits it. Throws Error kInfeasible
/// if it does not fit.
void check_program_memory(const PlanToLoad& from, const Target& target,
                          const std::vector<DeviceMemoryNeed>& there, std::int32_t runs);

/// What the loaded models take, beside what was there.
std::vector<DeviceMemoryNeed> loaded_memory(const PlanToLoad& from, const Target& target,
                                            const LoadedPrograms& programs,
                                            const std::vector<DeviceMemoryNeed>& there);

}  // namespace npu
