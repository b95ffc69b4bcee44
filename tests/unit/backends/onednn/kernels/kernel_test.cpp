// SPDX-License-Identifier: Apache-2.0
// What all kernels have in common.
#include "kernels/kernel.hpp"

#include "catch.hpp"

namespace npu::onednn {

TEST_CASE("kernels have names, and run on the instruction set that they are given",
          "[onednn][kernels]") {
  Kernel kernel = Softmax{1, 4, 1};
  CHECK(kernel_name(kernel) == "softmax");
  set_isa(kernel, VectorIsa::kAvx2);
  CHECK(std::get<Softmax>(kernel).isa == VectorIsa::kAvx2);
  PackedGemm gemm;
  gemm.use_strassen = true;
  CHECK(kernel_name(gemm) == "strassen");
}

}  // namespace npu::onednn
