// SPDX-License-Identifier: Apache-2.0
#pragma once

// What footprints of products have in common.

#include <cstdint>

#include "kernels/base/footprint_builder.hpp"
#include "kernels/product/packed_gemm.hpp"
#include "npu/tensor/dtype.hpp"

namespace npu::onednn {

/// Elements from the first to the last one of the rows of a product, `width` of each in blocks.
inline Count span_of(const PackedGemm::Steps& steps, Count images, Count rows, std::int64_t width,
                     std::int64_t lanes) {
  return last_of(images, steps.image) + last_of(rows, steps.row) +
         last_of(width / lanes, steps.block) + lanes;
}

/// Of one constant weight, of the three types that products read.
inline Count weight_size(DType type) {
  require(type == DType::kFloat32 || type == DType::kFloat16 || type == DType::kBFloat16,
          "'weight_type' is none of float32, float16 and bfloat16");
  return size_of(type);
}

inline const PackedGemm& checked_blocks(const PackedGemm& kernel) {
  const std::int64_t inner = kernel.has_strassen_order() ? 32 : 16;
  const std::int64_t columns = kernel.has_strassen_order() ? 64 : 16;
  require(kernel.inner > 0 && kernel.inner % inner == 0, "'inner' does not fill blocks");
  require(kernel.columns > 0 && kernel.columns % columns == 0, "'columns' does not fill blocks");
  return kernel;
}

}  // namespace npu::onednn
