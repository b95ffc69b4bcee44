// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "kernels/base/fields.hpp"
#include "kernels/base/footprint.hpp"
#include "kernels/base/operands.hpp"
#include "kernels/base/simd.hpp"
#include "npu/tensor/dtype.hpp"

namespace npu::onednn {

/// One element of a source dimension, and the factor that it counts with.
struct Tap {
  std::int64_t index = 0;
  float weight = 1.0F;
};

/// Resamples the last dimensions of [planes, extents.., lanes]: each element of the result is a sum
/// of products along every dimension, as nearest, linear and cubic interpolation are. Lanes lie
/// together: those of a block of channels, else 1.
struct Resample {
  static constexpr std::string_view kName = "resample";
  static constexpr std::int64_t kMaxWidth = 4;
  DType type = DType::kFloat32;
  std::int64_t planes = 1;
  std::int64_t lanes = 1;
  std::int64_t extents[3]{1, 1, 1};
  std::int64_t width[3]{1, 1, 1};  ///< taps of one element of the result
  std::array<std::vector<Tap>, 3> taps{{{Tap{}}, {Tap{}}, {Tap{}}}};
  bool adds = false;  ///< to what the target holds; float32
  bool relu = false;  ///< negative results become 0
  int threads = 1;
  VectorIsa isa = VectorIsa::kAny;

  /// The extent of the result.
  std::int64_t target_extent(int i) const {
    return static_cast<std::int64_t>(taps[i].size()) / width[i];
  }
  /// True if the result is the source.
  bool is_copy() const;
  /// Each thread keeps the rows that it has resampled along the last dimension.
  std::size_t scratch_bytes() const {
    return static_cast<std::size_t>(threads * width[0] * width[1] * target_extent(2) * lanes) *
           sizeof(float);
  }

  struct Operands {
    const std::byte* source;
    std::byte* target;
    float* scratch;  ///< of scratch_bytes()
  };
  static Operands bind(Addresses addresses);
  void run(const Operands& operands) const;
};

NPU_FIELDS(Tap, index, weight);
NPU_FIELDS(Resample, type, planes, lanes, extents, width, taps, adds, relu, isa);
Footprint footprint(const Resample& kernel);

/// Throws Error kInvalidGraph unless the taps of one dimension lie in it.
void require_taps(const std::vector<Tap>& taps, std::int64_t width, std::int64_t extent);

}  // namespace npu::onednn
