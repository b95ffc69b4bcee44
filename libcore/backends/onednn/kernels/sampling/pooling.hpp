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

/// One output position of a pooling window in one dimension.
struct Window {
  std::int64_t begin = 0;    ///< first input element inside the input
  std::int64_t end = 0;      ///< one past the last
  std::int64_t divisor = 1;  ///< this dimension's part of the divisor
};

/// Averages or maxima of windows of `planes` row-major planes of up to three dimensions; those that
/// are missing in front have one element and one window. A maximum keeps NaN, and of an empty
/// window it is -inf.
struct WindowPool {
  static constexpr std::string_view kName = "window-pool";
  static constexpr std::int64_t kMostStep = 1 << 30;
  bool is_maximum = false;
  DType type = DType::kFloat32;
  std::int64_t planes = 1;
  std::int64_t extents[3]{1, 1, 1};
  std::array<std::vector<Window>, 3> windows{{{{0, 1, 1}}, {{0, 1, 1}}, {{0, 1, 1}}}};
  std::int64_t step[3]{1, 1, 1};      ///< from one element of a window to the next
  std::int64_t divisor_override = 0;  ///< 0: the product of the windows' divisors
  VectorIsa isa = VectorIsa::kAny;

  using Operands = UnaryOperands;
  static Operands bind(Addresses addresses) { return bind_unary(addresses); }
  void run(const Operands& operands) const;
};

NPU_FIELDS(Window, begin, end, divisor);
NPU_FIELDS(WindowPool, is_maximum, type, planes, extents, windows, step, divisor_override, isa);
Footprint footprint(const WindowPool& kernel);

/// Throws Error kInvalidGraph unless the windows of one dimension lie in it, and the product of
/// three divisors does not overflow.
void require_windows(const std::vector<Window>& windows, std::int64_t extent);

}  // namespace npu::onednn
