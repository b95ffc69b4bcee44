// SPDX-License-Identifier: Apache-2.0
// The footprints of kernels that read elements at positions of their own.
#include "kernels/footprint_builder.hpp"

namespace npu::onednn {

Footprint footprint(const Resample& kernel) {
  require(is_float(kernel.type), "'type' is no float type");
  require(!kernel.adds || kernel.type == DType::kFloat32, "only float32 is added");
  const Count vectors = at_least_one(kernel.planes, "planes") * at_least_one(kernel.lanes, "lanes");
  Count source = vectors;
  Count target = vectors;
  for (int i = 0; i < 3; ++i) {
    require_taps(kernel.taps[i], kernel.width[i], kernel.extents[i]);
    source = source * at_least_one(kernel.extents[i], "extents");
    target = target * kernel.target_extent(i);
  }
  const Count row = Count{kernel.target_extent(2)} * kernel.lanes;
  FootprintBuilder builder;
  builder.read(source, size_of(kernel.type)).write(target, size_of(kernel.type));
  return builder.with_scratch(kernel, Count{kernel.width[0] * kernel.width[1]} * row * kFloat);
}

Footprint footprint(const GridSample& kernel) {
  constexpr std::int64_t kMostElements = 1 << 30;   // places in a plane have 32 bits
  constexpr std::int64_t kMostPositions = 1 << 22;  // float32 counts them with halves between
  Count plane = 1;
  Count result = 1;
  for (int i = 0; i < 2; ++i) {
    require(kernel.source_extent[i] <= kMostPositions, "'source_extent' is above 2^22");
    plane = plane * at_least_one(kernel.source_extent[i], "source_extent");
    result = result * at_least_one(kernel.target_extent[i], "target_extent");
  }
  require(plane.value() <= kMostElements, "a plane has too many elements");
  const Count batch = at_least_one(kernel.batch, "batch");
  const Count planes = batch * at_least_one(kernel.channels, "channels");
  return FootprintBuilder()
      .read(planes * plane)
      .read(batch * result * 2)
      .write(planes * result)
      .done();
}

}  // namespace npu::onednn
