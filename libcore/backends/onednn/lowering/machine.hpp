// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/simd.hpp"

namespace npu::onednn {

/// What lowering depends on besides the sub-IR. Two machines that are equal make the same plan.
struct Machine {
  VectorIsa isa = VectorIsa::kAny;  ///< of oneDNN's primitives and of our own kernels
  bool native_bfloat16 = false;     ///< oneDNN has bfloat16 primitives for this CPU
  /// Compute with bfloat16 where the sub-IR has float32.
  bool prefer_bfloat16 = false;
  int threads = 1;

  /// Channels lie best in blocks of 16, and kernels that need 32 registers of 16 floats are fast.
  bool has_avx512() const noexcept { return isa == VectorIsa::kAvx512; }
};

/// This CPU, as far as oneDNN uses it: DNNL_MAX_CPU_ISA limits both.
Machine detect_machine();
/// oneDNN's name of the instruction set that it uses.
const char* isa_name();

}  // namespace npu::onednn
