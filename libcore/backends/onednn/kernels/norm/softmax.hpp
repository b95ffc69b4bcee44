// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "kernels/base/fields.hpp"
#include "kernels/base/footprint.hpp"
#include "kernels/base/operands.hpp"

namespace npu::onednn {

/// Softmax along the middle dimension of a row-major float32 [outer, count, inner] tensor, or its
/// logarithm. A row with a NaN or +Inf in it, or of -Inf alone, is all NaN, as the definition says.
struct Softmax {
  static constexpr std::string_view kName = "softmax";
  std::int64_t outer = 1;
  std::int64_t count = 1;
  std::int64_t inner = 1;
  bool logarithm = false;
  VectorIsa isa = VectorIsa::kAny;

  struct Operands {
    const float* source;
    float* target;  ///< may be the source
  };
  static Operands bind(Addresses addresses) {
    OperandReader in(addresses);
    return {in.next<const float>(), in.next<float>()};
  }
  void run(const Operands& operands) const;
};

NPU_FIELDS(Softmax, outer, count, inner, logarithm, isa);
Footprint footprint(const Softmax& kernel);

}  // namespace npu::onednn
