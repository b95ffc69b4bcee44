// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace npu {

/// How far a measurement is.
struct ProfileProgress {
  std::int32_t done = 0;  ///< of `total` points
  std::int32_t total = 0;
  double elapsed_s = 0;
  double remaining_s = 0;  ///< as far as can be told; 0 before the first point
  std::string what;        ///< is measured now
};

}  // namespace npu
