// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "kernels/operands.hpp"

namespace npu::onednn {

/// GELU by the error function (absolute error of erf below 2e-7) on float32 values.
struct Gelu {
  static constexpr std::string_view kName = "gelu";
  std::int64_t count = 0;
  VectorIsa isa = VectorIsa::kAny;

  struct Operands {
    const float* source;
    float* target;  ///< may be the source
  };
  static Operands bind(Addresses addresses);
  void run(const Operands& operands) const;
};

}  // namespace npu::onednn
