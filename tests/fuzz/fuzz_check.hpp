// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>

namespace npu::fuzz {

/// Ends the process if a property does not hold; both libFuzzer and the replay take that as a find.
inline void require(bool holds, const std::string& what) {
  if (holds) return;
  std::fprintf(stderr, "property does not hold: %s\n", what.c_str());
  std::abort();
}

}  // namespace npu::fuzz
