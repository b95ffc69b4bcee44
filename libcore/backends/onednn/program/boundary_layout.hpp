// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "npu/tensor/tensor.hpp"

namespace npu::onednn {

/// A layout that values between programs may have: channels (dimension 1) in blocks, or behind
/// everything else. None has gaps or padding, so that bytes are as many as in the row-major tensor.
struct BoundaryLayout {
  std::string_view name;
  std::int64_t lanes;  ///< channels in a block; 0: they are last
};
inline constexpr BoundaryLayout kBoundaryLayouts[]{{"onednn:channels_last", 0},
                                                   {"onednn:blocked/4", 4},
                                                   {"onednn:blocked/8", 8},
                                                   {"onednn:blocked/16", 16}};

/// Names of layouts by those of inputs and outputs; a tensor that is not there is row-major.
using LayoutNames = std::map<std::string, std::string, std::less<>>;

inline bool suits(const BoundaryLayout& layout, const Shape& shape, DType type) {
  const bool has_type = type == DType::kFloat32 || type == DType::kBFloat16 ||
                        type == DType::kInt8 || type == DType::kUInt8;
  return has_type && shape.size() >= 3 && shape.size() <= 5 &&
         std::all_of(shape.begin(), shape.end(),
                     [](std::int64_t extent) { return extent > 0 && extent <= INT32_MAX; }) &&
         (layout.lanes == 0 || shape[1] % layout.lanes == 0);
}

/// Null if there is no layout of that name for such a tensor.
inline const BoundaryLayout* find_boundary_layout(std::string_view name, const Shape& shape,
                                                  DType type) {
  const auto* found = std::find_if(
      std::begin(kBoundaryLayouts), std::end(kBoundaryLayouts),
      [&](const auto& layout) { return layout.name == name && suits(layout, shape, type); });
  return found == std::end(kBoundaryLayouts) ? nullptr : found;
}

}  // namespace npu::onednn
