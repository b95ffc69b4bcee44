// SPDX-License-Identifier: Apache-2.0
// Convolutions that are others in disguise. O(dimensions).
#include <algorithm>
#include <cstddef>

#include "lowering/convolution/choose_convolution.hpp"

namespace npu::onednn {

namespace {

/// Without its dimension i behind the channels.
void drop_dimension(ConvolutionShape& shape, std::ptrdiff_t i) {
  Spatial& spatial = shape.spatial;
  for (auto* each : {&shape.source, &shape.weight, &shape.target}) {
    each->erase(each->begin() + 2 + i);
  }
  for (auto* each : {&spatial.stride, &spatial.pad_begin, &spatial.pad_end, &spatial.dilation}) {
    each->erase(each->begin() + i);
  }
}

}  // namespace

std::optional<ConvolutionShape> in_two_dimensions(const ConvolutionShape& shape) {
  if (shape.weight.size() == 4) return shape;
  if (shape.weight.size() != 5 || !all_are(shape.spatial.dilation, 1)) return std::nullopt;
  const auto is_trivial = [&](std::size_t i) {
    return shape.weight[i + 2] == 1 && shape.spatial.stride[i] == 1 &&
           shape.source[i + 2] == shape.target[i + 2];
  };
  ConvolutionShape result = shape;
  if (is_trivial(0)) {
    for (Shape* each : {&result.source, &result.target}) (*each)[0] *= (*each)[2];
    drop_dimension(result, 0);
    return result;
  }
  if (!is_trivial(1) || !is_trivial(2)) return std::nullopt;
  for (Shape* each : {&result.source, &result.target}) (*each)[3] *= (*each)[4];
  drop_dimension(result, 2);
  return result;
}

bool splits_into_phases(const ConvolutionShape& shape) {
  for (std::size_t i = 0; i < shape.spatial.dilation.size(); ++i) {
    const std::int64_t dilation = shape.spatial.dilation[i];
    if (shape.spatial.stride[i] != 1 || shape.source[i + 2] % dilation != 0 ||
        shape.target[i + 2] % dilation != 0 || shape.spatial.pad_begin[i] % dilation != 0) {
      return false;
    }
  }
  return true;
}

bool is_pointwise(const Shape& weight, const Spatial& spatial, std::int64_t groups) {
  return std::all_of(weight.begin() + 2, weight.end(), [](std::int64_t n) { return n == 1; }) &&
         groups == 1 && all_are(spatial.stride, 1) && all_are(spatial.pad_begin, 0) &&
         all_are(spatial.pad_end, 0);
}

}  // namespace npu::onednn
