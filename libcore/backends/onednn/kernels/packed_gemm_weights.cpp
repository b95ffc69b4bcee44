// SPDX-License-Identifier: Apache-2.0
// Packs the weights of a product: for each KC block panels of two vectors of columns, one behind
// the other, in which the columns of one k lie together; rounds weights to 16 bits. O(weights).
#include "kernels/copies.hpp"
#include "kernels/packed_gemm_tasks.hpp"
#include "kernels/share_work.hpp"

namespace npu::onednn {

using packed_gemm::panel;
using packed_gemm::run_begin;
using packed_gemm::runs;
using packed_gemm::scratch_of;

std::size_t PackedGemm::scratch_bytes() const {
  return static_cast<std::size_t>(scratch_of(*this).all * threads) * sizeof(float);
}

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

}  // namespace npu::onednn
