// SPDX-License-Identifier: Apache-2.0
// Where the channels of a layout lie: row-major planes, channels last, or blocks. O(rank).
#include "lowering/engine/channel_layout.hpp"

namespace npu::onednn {

std::optional<ScaleShift> channel_layout(const Layout& layout) {
  const auto& data = layout.data;
  if (data.ndims < 2 || !is_dense(layout)) return std::nullopt;
  const auto& blocks = data.format_desc.blocking;
  ScaleShift space;
  space.outer = data.dims[0];
  for (int i = 2; i < data.ndims; ++i) space.spatial *= data.dims[i];
  if (blocks.inner_nblks == 1 && blocks.inner_idxs[0] == 1) {
    space.lanes = blocks.inner_blks[0];
    space.groups = data.padded_dims[1] / space.lanes;
    std::int64_t expected = space.lanes;
    for (int i = data.ndims - 1; i >= 2; --i) {
      if (data.dims[i] != 1 && blocks.strides[i] != expected) return std::nullopt;
      expected *= data.dims[i];
    }
    if (space.groups != 1 && blocks.strides[1] != expected) return std::nullopt;
    if (space.outer != 1 && blocks.strides[0] != expected * space.groups) return std::nullopt;
    return space;
  }
  if (blocks.inner_nblks != 0) return std::nullopt;
  if (is_plain(layout)) {
    space.groups = data.dims[1];
    return space;
  }
  std::int64_t expected = data.dims[1];
  if (data.dims[1] != 1 && blocks.strides[1] != 1) return std::nullopt;
  for (int i = data.ndims - 1; i >= 2; --i) {
    if (data.dims[i] != 1 && blocks.strides[i] != expected) return std::nullopt;
    expected *= data.dims[i];
  }
  if (space.outer != 1 && blocks.strides[0] != expected) return std::nullopt;
  space.lanes = data.dims[1];
  return space;
}

}  // namespace npu::onednn
