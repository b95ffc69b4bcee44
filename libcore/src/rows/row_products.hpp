// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "npu/tensor/tensor.hpp"

namespace npu {

/// Constant weights of a product in the order in which multiply_rows reads them: panels of 16
/// columns, in each all of `inner`.
struct ProductWeights {
  std::int64_t inner = 0;
  std::int64_t columns = 0;
  Tensor panels;  ///< [panels, inner, 16]; columns that there are not are 0
};

/// A matrix of weights: [columns, inner], or the other way round.
struct WeightMatrix {
  Tensor values;
  bool is_transposed = false;  ///< [inner, columns]
};

/// Packs matrices whose columns follow each other; O(elements).
ProductWeights pack_weights(const std::vector<WeightMatrix>& matrices);

/// Packed weights that several blocks multiply by. Any thread may call.
class PackedWeights {
 public:
  std::shared_ptr<const ProductWeights> take(const std::vector<WeightMatrix>& matrices);

 private:
  struct Entry {
    std::vector<WeightMatrix> matrices;  // as long as they live no others have their addresses
    std::shared_ptr<const ProductWeights> packed;
  };
  std::mutex mutex_;
  std::map<std::vector<const void*>, Entry> entries_;
};

/// out[r, c] = sum over k of x[r, k] * weight[c, k], + bias[c] + addend[r, c], of float32.
struct RowProduct {
  const ProductWeights* weights = nullptr;
  const float* x = nullptr;  ///< [rows, inner]
  std::int64_t rows = 0;
  const float* bias = nullptr;    ///< null: none
  const float* addend = nullptr;  ///< [rows, columns]; null: none
  bool relu = false;              ///< negative results become 0
  float* out = nullptr;           ///< [rows, columns]
};

/// Runs on `threads` threads (0: all cores). The bits of a row depend on that row, the weights and
/// the level of instructions alone: not on how many rows there are, where it is among them, or the
/// number of threads.
void multiply_rows(const RowProduct& product, std::int32_t threads);

}  // namespace npu
