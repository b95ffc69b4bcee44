// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace npu::conformance {

/// The environment variable that names the descriptor on which a case says that it goes on.
inline constexpr const char* kBeatVariable = "NPU_CHECK_BEATS";

/// Tells the process that watches this one that the case has got further, a few times a second at
/// most. From any thread; does nothing in a process that nobody watches.
void beat() noexcept;

/// The same as an npu_progress, which never stops a compile.
std::uint32_t beat_of_compile(void* context, std::uint64_t done, std::uint64_t total,
                              const char* phase);

}  // namespace npu::conformance
