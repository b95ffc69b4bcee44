// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "lowering/engine/candidate.hpp"
#include "lowering/engine/machine.hpp"
#include "npu/tensor/dtype.hpp"
#include "npu/tensor/tensor.hpp"

namespace npu::onednn {

/// How a convolution walks over its source.
struct Spatial {
  std::vector<std::int64_t> stride;
  std::vector<std::int64_t> pad_begin;
  std::vector<std::int64_t> pad_end;
  std::vector<std::int64_t> dilation;  ///< as PyTorch counts: 1 is none
};

inline bool all_are(const std::vector<std::int64_t>& values, std::int64_t value) {
  return std::all_of(values.begin(), values.end(), [&](auto each) { return each == value; });
}

/// A convolution as far as the choice of its kernel goes.
struct ConvolutionShape {
  DType type = DType::kFloat32;
  Shape source;
  Shape weight;  ///< [O, I / groups, ..]
  Shape target;
  Spatial spatial;
  std::int64_t groups = 1;
  bool has_constant_weight = true;
  bool is_pinned = false;     ///< npu-align keeps the node row-major
  std::int64_t depth = 1;     ///< consecutive convolutions, this one included, of the sub-IR
  double sub_ir_flops = 0.0;  ///< of all nodes of the sub-IR
};

/// All candidates, the one to take first. Each says whether it does the epilogue.
std::vector<Candidate> choose_convolution(const ConvolutionShape& shape, const Epilogue& epilogue,
                                          const Machine& machine);

/// A convolution in three dimensions as one in two, where it is that for each frame, each then an
/// image, or has its taps in time: then the pixels of a frame are the width.
std::optional<ConvolutionShape> in_two_dimensions(const ConvolutionShape& shape);

/// True if a convolution with dilation is the same as ones without, each of the pixels that are a
/// multiple of the dilation apart. Its kernel then has that many images more.
bool splits_into_phases(const ConvolutionShape& shape);

bool is_pointwise(const Shape& weight, const Spatial& spatial, std::int64_t groups);

}  // namespace npu::onednn
