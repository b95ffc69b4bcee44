// SPDX-License-Identifier: Apache-2.0
// The footprints of norms over groups of channels.
#include "kernels/footprint_builder.hpp"

namespace npu::onednn {

Footprint footprint(const GroupNorm& kernel) {
  require(is_float(kernel.type), "'type' is no float type");
  const Count channels = at_least_one(kernel.channels, "channels");
  static_cast<void>(at_least_one(kernel.group_size, "group_size"));
  require(kernel.lanes == 1 || kernel.lanes == GroupNorm::kMaxLanes, "'lanes' is not 1 or 16");
  require(GroupNorm::supports(kernel.lanes, kernel.group_size),
          "'group_size' neither divides 16 nor is a multiple of it");
  require(kernel.channels % std::max(kernel.group_size, kernel.lanes) == 0,
          "'channels' is no multiple of 'group_size' and 'lanes'");
  require(kernel.vector >= 1 && kernel.vector <= kernel.channels,
          "'vector' is not in 1..'channels'");
  const Count elements =
      at_least_one(kernel.outer, "outer") * channels * at_least_one(kernel.spatial, "spatial");
  return FootprintBuilder()
      .read(elements, size_of(kernel.type), true)
      .read_if(kernel.has_weight, kernel.vector)
      .read_if(kernel.has_bias, kernel.vector)
      .write(elements, size_of(kernel.type))
      .done();
}

}  // namespace npu::onednn
