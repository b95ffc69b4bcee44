// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace npu::gnn {

/// Numbers that depend on nothing but the seed: a linear congruential generator (Knuth's
/// multiplier), of which the upper bits are used. Not a standard engine: the plans that the
/// searches find follow from these numbers, and the same input has to give the same bytes in every
/// version.
class RandomStream {
 public:
  explicit RandomStream(std::uint64_t seed = 0x9e3779b97f4a7c15) : state_(seed) {}
  /// In [0, bound).
  std::size_t below(std::size_t bound) { return static_cast<std::size_t>(next() % bound); }
  /// In [0, 1).
  double unit() { return static_cast<double>(next()) * 0x1p-31; }

 private:
  std::uint64_t next() {
    state_ = state_ * 6364136223846793005ULL + 1442695040888963407ULL;
    return state_ >> 33;
  }
  std::uint64_t state_;
};

}  // namespace npu::gnn
