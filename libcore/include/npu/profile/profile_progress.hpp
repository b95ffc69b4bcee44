// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace npu {

/// How far a measurement has got.
struct ProfileProgress {
  std::int32_t done = 0;  ///< of `total` points
  std::int32_t total = 0;
  double elapsed_s = 0;
  double remaining_s = 0;  ///< an estimate; 0 before the first point
  std::string what;        ///< being measured now
};

}  // namespace npu
