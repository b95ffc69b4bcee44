// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "kernels/base/fields.hpp"
#include "kernels/base/footprint.hpp"
#include "kernels/base/operands.hpp"

namespace npu::onednn {

/// What a batch norm reads that is folded into the weights [groups, rows, channels, inner] in front
/// of it and their bias [groups * channels].
struct NormFold {
  float epsilon = 0.0F;
  std::int64_t groups = 1;
  std::int64_t rows = 1;
  std::int64_t channels = 1;
  std::int64_t inner = 1;
  bool has_scale = false;
  bool has_shift = false;
  bool has_bias = false;
};

/// The weights with the norm folded in.
struct FoldNormWeights {
  static constexpr std::string_view kName = "fold-norm-weights";
  NormFold fold;

  struct Operands {
    const float* weight;
    const float* variance;
    const float* scale;  ///< null without
    float* target;
  };
  Operands bind(Addresses addresses) const;
  void run(const Operands& operands) const;
};

/// And the bias.
struct FoldNormBias {
  static constexpr std::string_view kName = "fold-norm-bias";
  NormFold fold;

  struct Operands {
    const float* variance;
    const float* mean;
    const float* scale;  ///< null without, as the next
    const float* shift;
    const float* bias;
    float* target;
  };
  Operands bind(Addresses addresses) const;
  void run(const Operands& operands) const;
};

/// The factors and terms of a batch norm, [2, padded channels], zero behind the channels.
struct NormVectors {
  static constexpr std::string_view kName = "norm-vectors";
  float epsilon = 0.0F;
  std::int64_t channels = 1;
  std::int64_t padded_channels = 1;
  bool has_scale = false;
  bool has_shift = false;

  struct Operands {
    const float* variance;
    const float* mean;
    const float* scale;  ///< null without, as the next
    const float* shift;
    float* target;
  };
  Operands bind(Addresses addresses) const;
  void run(const Operands& operands) const;
};

NPU_FIELDS(NormFold, epsilon, groups, rows, channels, inner, has_scale, has_shift, has_bias);
NPU_FIELDS(FoldNormWeights, fold);
NPU_FIELDS(FoldNormBias, fold);
NPU_FIELDS(NormVectors, epsilon, channels, padded_channels, has_scale, has_shift);
Footprint footprint(const FoldNormWeights& kernel);
Footprint footprint(const FoldNormBias& kernel);
Footprint footprint(const NormVectors& kernel);

}  // namespace npu::onednn
