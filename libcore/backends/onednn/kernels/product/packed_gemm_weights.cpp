// SPDX-License-Identifier: Apache-2.0
// Packs the weights of a product: for each KC block panels of two vectors of columns, one behind
// the other, in which the columns of one k lie together; rounds weights to 16 bits. O(weights).
#include "kernels/product/packed_gemm_weights.hpp"

#include "kernels/base/footprint_builder.hpp"
#include "kernels/base/share_work.hpp"
#include "kernels/movement/copies.hpp"
#include "kernels/product/packed_gemm_tasks.hpp"
#include "kernels/product/product_spans.hpp"

namespace npu::onednn {

using packed_gemm::panel;
using packed_gemm::run_begin;
using packed_gemm::runs;

PackedGemmWeights::Operands PackedGemmWeights::bind(Addresses addresses) {
  OperandReader in(addresses);
  return {in.next<const float>(), in.next<float>()};
}

HalfWeights::Operands HalfWeights::bind(Addresses addresses) {
  OperandReader in(addresses);
  return {in.next<const float>(), in.next<std::uint16_t>()};
}

void HalfWeights::run(const Operands& operands) const {
  const void* source = operands.source;
  void* target = operands.target;
  Convert{DType::kFloat32, type, count}.run(
      {static_cast<const std::byte*>(source), static_cast<std::byte*>(target)});
}

void PackedGemmWeights::run(const Operands& operands) const {
  const std::int64_t count = runs(gemm);
  const std::int64_t most = panel(gemm);
  for (std::int64_t run = 0; run < count; ++run) {
    const std::int64_t begin = run_begin(gemm, run);
    const std::int64_t length = run_begin(gemm, run + 1) - begin;
    share_range(gemm.columns, most, gemm.threads, [&](std::int64_t first, std::int64_t last) {
      const std::int64_t width = last - first;
      float* to = operands.target + gemm.columns * begin + first * length;
      for (std::int64_t column = 0; column < width; ++column) {
        const float* from = operands.source + (first + column) * gemm.inner + begin;
        for (std::int64_t k = 0; k < length; ++k) to[k * width + column] = from[k];
      }
    });
  }
}

Footprint footprint(const PackedGemmWeights& kernel) {
  const PackedGemm& call = checked_blocks(kernel.gemm);
  require(call.threads >= 1, "'threads' is below 1");
  const Count weights = Count{call.inner} * call.columns;
  return FootprintBuilder().read(weights).write(weights).done();
}

Footprint footprint(const HalfWeights& kernel) {
  const Count count = at_least_one(kernel.count, "count");
  require(kernel.type == DType::kFloat16 || kernel.type == DType::kBFloat16,
          "'type' is neither float16 nor bfloat16");
  return FootprintBuilder().read(count).write(count, 2).done();
}

}  // namespace npu::onednn
