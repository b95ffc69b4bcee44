// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace npu::onednn {

/// Rows or columns [begin, end).
struct Range {
  std::int64_t begin;
  std::int64_t end;
  std::int64_t size() const { return end - begin; }
};

/// One of `parts` parts of [0, extent) that differ by one at most.
inline Range part_of(std::int64_t extent, std::int64_t part, std::int64_t parts) {
  return {extent * part / parts, extent * (part + 1) / parts};
}

}  // namespace npu::onednn
