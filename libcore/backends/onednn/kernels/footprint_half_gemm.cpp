// SPDX-License-Identifier: Apache-2.0
// What products in float16 and what prepares their weights touch. O(1).
#include "kernels/footprint_builder.hpp"
#include "kernels/half_micro_kernel.hpp"

namespace npu::onednn {

namespace {

/// Columns, filled up to panels.
Count panel_columns(std::int64_t columns) {
  return (at_least_one(columns, "columns") + (kHalfColumns - 1)).value() / kHalfColumns *
         Count{kHalfColumns};
}

}  // namespace

Footprint footprint(const HalfGemm& kernel) {
  require(kernel.inner > 0 && kernel.inner % 16 == 0, "'inner' does not fill blocks");
  require(kernel.columns > 0 && kernel.columns % 16 == 0, "'columns' does not fill blocks");
  require_isa(kernel.isa, VectorIsa::kAvx2);
  const Count images = at_least_one(kernel.images, "images");
  const Count rows = at_least_one(kernel.rows, "rows");
  const std::int64_t lanes = lanes_of(kernel.isa);
  const Count target = span_of(kernel.target, images, rows, kernel.columns, lanes);
  require((images * rows * kernel.columns).value() <= target.value(),
          "steps of the target repeat elements");
  const Count columns = panel_columns(kernel.columns);
  FootprintBuilder builder;
  builder.read(span_of(kernel.source, images, rows, kernel.inner, lanes))
      .read(columns * kernel.inner, 2)
      .read(columns)
      .read_if(kernel.has_bias, kernel.columns)
      .read_epilogue(kernel.epilogue, target)
      .write(target);
  // Copies of up to 112 rows, or of 2^18 numbers; sums of a tile.
  return builder.with_scratch(kernel, (Count{128} * kernel.inner + (1 << 19)) * kFloat);
}

Footprint footprint(const HalfGemmWeights& kernel) {
  require(kernel.threads >= 1, "'threads' is below 1");
  const Count inner = at_least_one(kernel.inner, "inner");
  return FootprintBuilder()
      .read(inner * kernel.columns)
      .write(panel_columns(kernel.columns) * inner, 2)
      .done();
}

Footprint footprint(const ColumnScales& kernel) {
  const Count inner = at_least_one(kernel.inner, "inner");
  return FootprintBuilder()
      .read(inner * kernel.columns)
      .write(panel_columns(kernel.columns))
      .done();
}

}  // namespace npu::onednn
