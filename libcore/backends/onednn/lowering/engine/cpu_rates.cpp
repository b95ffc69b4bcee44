// SPDX-License-Identifier: Apache-2.0
// Rates by which kernels are weighed against each other, by the family of the CPU, else by its
// vectors. They are a table and not a measurement, so that two machines of a family make the same
// bundle. The commits that are named have the measurements.
#include "lowering/engine/cpu_rates.hpp"

#include <algorithm>
#include <array>

namespace npu::onednn {

namespace {

/// On a Xeon with AVX-512, unless another CPU is named.
constexpr CpuRates kWide{
    .multiply = 1.1,                // 5d5d1989
    .weight_bytes = 8.0,            // 5d5d1989
    .transform_source = 7.0,        // 5d5d1989
    .transform_flat_source = 4.5,   // 5d5d1989
    .transform_result = 5.0,        // 5d5d1989
    .copy_phase = 40.0,             // 2157c8f5
    .has_strided_winograd = false,  // not measured
    .implicit = 1.15,               // e97708e1, on Zen 3
    .copied = 1.0,                  // not measured
    .strided = 1.0,                 // not measured
    .grouped = 1.5,                 // e530a8c6, on Zen 3
    .permute = 3.0,                 // e530a8c6, on Zen 3
    .small_group = 10.0,            // e530a8c6, on Zen 3
    .narrow_pointwise = 1.1,        // cecb0987, on Zen 3
    .narrow_product = 1.1,          // cecb0987, from the same
    .min_rows = 32,                 // e71fb082
    .min_strassen_inner = 512,      // e71fb082
    .min_strassen_columns = 256,    // e71fb082
    .min_norm_inner = 256,          // e71fb082
    .max_norm_rows = 1024,          // e71fb082
    .bfloat16_pairs = 1.0,          // cecb0987: no CPU with such instructions is below
    .bfloat16_tiles = 6.0,          // cecb0987: 16 times as many, from the caches in whole models
};

/// AVX2 and NEON, measured on Zen 3; what was not is that of AVX-512, whose vectors have twice the
/// length.
constexpr CpuRates kNarrow = [] {
  CpuRates rates = kWide;
  rates.has_strided_winograd = true;  // ea1408f3
  rates.copied = 2.0;                 // e97708e1: oneDNN has a product whose left factor it copies
  rates.strided = 1.4;                // ea1408f3
  rates.narrow_product = 1.0;         // cecb0987: oneDNN's products are its GEMM
  return rates;
}();

constexpr CpuRates with_pairs(double pairs) {
  CpuRates rates = kWide;
  rates.bfloat16_pairs = pairs;
  return rates;
}

struct FamilyRow {
  std::string_view family;
  VectorIsa isa;
  CpuRates rates;
};

// cecb0987: Zen 5 1.9. An Emerald Rapids does 1.0 to 1.4 in registers, but oneDNN without AMX 0.42
// to 0.64 in whole models. Zen 4 has one instruction of 512 bits a cycle either way, by its
// description.
constexpr std::array kFamilies{
    FamilyRow{"intel-sapphire-rapids", VectorIsa::kAvx512, with_pairs(0.6)},
    FamilyRow{"intel-granite-rapids", VectorIsa::kAvx512, with_pairs(0.6)},
    FamilyRow{"amd-zen4", VectorIsa::kAvx512, with_pairs(1.9)},
    FamilyRow{"amd-zen5", VectorIsa::kAvx512, with_pairs(1.9)},
};

}  // namespace

const CpuRates& cpu_rates(std::string_view family, VectorIsa isa) {
  const auto* found = std::find_if(kFamilies.begin(), kFamilies.end(), [&](const FamilyRow& row) {
    return row.family == family && row.isa == isa;
  });
  if (found != kFamilies.end()) return found->rates;
  return isa == VectorIsa::kAvx512 ? kWide : kNarrow;
}

}  // namespace npu::onednn
