// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "kernels/attention/key_ranges.hpp"
#include "npu/ir/graph.hpp"

namespace npu::onednn {

/// What a mask over the keys of a cache follows from. An attention reads that in place of the mask,
/// which is made only if something reads it as a tensor.
struct KeyMask {
  NodeId node;
  std::optional<TensorId> positions;  ///< int64 [queries]
  std::optional<TensorId> valid;      ///< int64
  KeyRanges ranges;
  std::int64_t queries = 1;  ///< rows of the mask
  bool is_opposite = false;  ///< true where a key is hidden
};

}  // namespace npu::onednn
