// SPDX-License-Identifier: Apache-2.0
// Convolutions that are others in disguise. O(dimensions).
#include <algorithm>

#include "lowering/choose_kernel.hpp"

namespace npu::onednn {

/// A convolution in three dimensions as one in two, where it is that for each frame, or has its
/// taps in time: then the pixels of a frame are the width.
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
    for (Shape* each : {&result.source, &result.weight, &result.target}) {
      each->erase(each->begin() + 2);
    }
    for (auto* each : {&result.spatial.stride, &result.spatial.pad_begin, &result.spatial.pad_end,
                       &result.spatial.dilation}) {
      each->erase(each->begin());
    }
    return result;
  }
  if (!is_trivial(1) || !is_trivial(2)) return std::nullopt;
  for (Shape* each : {&result.source, &result.weight, &result.target}) {
    (*each)[3] *= each->back();
    each->pop_back();
  }
  for (auto* each : {&result.spatial.stride, &result.spatial.pad_begin, &result.spatial.pad_end,
                     &result.spatial.dilation}) {
    each->pop_back();
  }
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
