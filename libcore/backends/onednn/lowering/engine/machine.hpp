// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "kernels/base/simd.hpp"
#include "lowering/engine/cpu_rates.hpp"
#include "npu/tensor/dtype.hpp"

namespace npu::onednn {

/// What lowering depends on besides the sub-IR. Two machines that are equal make the same plan.
struct Machine {
  VectorIsa isa = VectorIsa::kAny;    ///< of oneDNN's primitives and of our kernels
  std::string_view family = "other";  ///< of CPUs; a literal (device/cpu_family.hpp)
  bool native_bfloat16 = false;       ///< oneDNN has bfloat16 primitives for this CPU
  /// The CPU multiplies pairs of bfloat16 numbers: without, oneDNN's primitives emulate that.
  bool multiplies_bfloat16 = false;
  /// Multiply-adds of bfloat16 in the time of one of float32; 0 without such instructions.
  double bfloat16_rate = 0.0;
  /// Compute with bfloat16 where the sub-IR has float32.
  bool prefer_bfloat16 = false;
  /// Of constant weights of our products where the sub-IR has float32: float16 or bfloat16
  /// numbers are multiplied as floats, or, float16, as such.
  DType weight_type = DType::kFloat32;
  /// The CPU multiplies tiles of bfloat16 numbers (AMX), at several times the rate of pairs;
  /// oneDNN's convolutions do where channels lie last.
  bool multiplies_tiles = false;
  /// The CPU computes in float16: our products do, where weights are float16.
  bool multiplies_float16 = false;
  /// oneDNN multiplies int8 numbers exactly: without VNNI sums of two products are cut to 16 bits.
  bool exact_int8 = false;
  int threads = 1;
  bool only_checks = false;  ///< the plan is thrown away, and weights need no data

  bool has_avx512() const noexcept { return isa == VectorIsa::kAvx512; }
  /// AVX2 or more, or NEON: our own products and convolutions are fast, on channels in blocks of
  /// lanes().
  bool has_avx2() const noexcept { return isa >= VectorIsa::kAvx2; }
  std::int64_t lanes() const noexcept { return lanes_of(isa); }
  const CpuRates& rates() const { return cpu_rates(family, isa); }
};

/// This CPU, as far as oneDNN uses it and NPU_MAX_ISA allows. Throws Error if that names no level.
Machine detect_machine();
/// The level of its instruction set, one of kIsaLevels.
std::string_view isa_name();

}  // namespace npu::onednn
