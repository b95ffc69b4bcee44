// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernels/product/gemv.hpp"
#include "kernels/product/packed_gemm.hpp"
#include "lowering/engine/candidate.hpp"
#include "lowering/engine/entry_rows.hpp"
#include "lowering/engine/machine.hpp"
#include "npu/tensor/tensor.hpp"

namespace npu::onednn {

/// target [rows, columns] = source [rows, inner] * the transpose of a constant weight, in float32.
struct ProductShape {
  std::int64_t rows = 1;
  std::int64_t inner = 1;
  std::int64_t columns = 1;
  std::int64_t source_row = 1;  ///< floats from one row of the source to the next
  /// Not 0: rows of the source are cut into blocks of vectors that are so many floats apart.
  std::int64_t source_block{};
  bool blocked_target{};  ///< so are those of the target, whose blocks have all rows
  RowRange entries{};  ///< rows in all entries that read the weights; of one entry both are `rows`
};

/// All candidates, the one to take first. Each says whether it does the epilogue.
std::vector<Candidate> choose_product(const ProductShape& shape, const Epilogue& epilogue,
                                      const Machine& machine);

/// Whether Strassen's step is worth its sums.
bool suits_strassen(const PackedGemm& gemm, const Machine& machine);
/// Whether a product with a batch norm in front takes less time than both.
bool suits_norm(const PackedGemm& gemm, const Machine& machine);
/// The product that a pointwise convolution is, on channels in blocks.
PackedGemm pointwise_gemm(const Shape& target, std::int64_t source_channels,
                          const Machine& machine);

/// What a pointwise convolution has in place of oneDNN's: a few rows, Strassen's step, weights of
/// 16 bits, each unless `refusal` says why not.
std::vector<Candidate> pointwise_candidates(const PackedGemm& gemm, const std::string& refusal,
                                            const Machine& machine);

}  // namespace npu::onednn
