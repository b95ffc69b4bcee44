// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "device/isa_level.hpp"

namespace npu {

/// CPUs that execute the same instructions at the same rates, for which a compiler takes the same
/// kernels: "intel-sapphire-rapids", "intel-granite-rapids", "amd-zen4" or "amd-zen5"; "other" for
/// those that no kernel is chosen for by name. A bundle runs on every family of its level of
/// instructions, with the same results; on another family other kernels might be faster.
std::string_view cpu_family(const CpuModel& model);

/// That of this CPU, whatever NPU_MAX_ISA is.
std::string_view cpu_family();

}  // namespace npu
