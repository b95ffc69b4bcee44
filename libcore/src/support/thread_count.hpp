// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <thread>

namespace npu {

/// As many threads as asked for; 0 or fewer: one for each CPU.
inline std::size_t thread_count(std::int64_t asked) {
  return asked > 0 ? static_cast<std::size_t>(asked)
                   : std::max<std::size_t>(1, std::thread::hardware_concurrency());
}

}  // namespace npu
