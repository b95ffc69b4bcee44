// SPDX-License-Identifier: Apache-2.0
// Which part of a product's result a work group computes, and how its work items share it.
#pragma once

#include "ops/product_spec.hpp"

namespace npu::opencl {

struct Tiling {
  std::int64_t m;        ///< rows of the tile
  std::int64_t n;        ///< columns
  std::int64_t k;        ///< summands that are in local memory at a time
  std::int64_t items_m;  ///< work items along m
  std::int64_t items_n;
  std::int64_t slices = 1;  ///< sets of work items that share the summands of one tile among them

  std::int64_t items() const { return items_m * items_n; }  ///< of one slice
  std::int64_t rows() const { return m / items_m; }         ///< of a work item
  std::int64_t columns() const { return n / items_n; }
};

inline std::string text_of(std::int64_t number) { return std::to_string(number); }

/// Values that lie side by side in a tile, of the `count` that a work item has: as many as a load
/// of 16 bytes brings.
std::int64_t vector_width(DType dtype, std::int64_t count);
/// Elements behind each row of a tile, so that items that store columns meet other banks.
inline constexpr std::int64_t kTilePadding = 4;

/// Of a block of summands, where sums are sums of blocks.
inline constexpr std::int64_t kBlockSummands = 512;

/// Sizes that may be measured; those of the rule come first.
Tunable tunable_of(const Machine& machine, const ProductSpec& spec);
/// The measured sizes, else those of the rule. Throws Error if measured ones are none of the
/// device.
Tiling tiling_of(const Machine& machine, const ProductSpec& spec, const Tunable& tunable);

}  // namespace npu::opencl
