// SPDX-License-Identifier: Apache-2.0
// Rates by which kernels are weighed against each other, by the family of the CPU. They are a table
// and not a measurement, so that two machines of a family make the same bundle.
#include "lowering/cpu_rates.hpp"

#include <algorithm>
#include <array>

namespace npu::onednn {

namespace {

struct FamilyRate {
  std::string_view family;
  double pairs;  ///< vdpbf16ps
};

// Sapphire and Emerald Rapids, measured on the latter: 1.0 to 1.4. Zen 5, measured: 1.9. Zen 4 has
// one instruction of 512 bits a cycle either way, by its description.
constexpr std::array kRates{
    FamilyRate{"intel-sapphire-rapids", 1.2},
    FamilyRate{"intel-granite-rapids", 1.2},
    FamilyRate{"amd-zen4", 1.9},
    FamilyRate{"amd-zen5", 1.9},
};
constexpr double kPairs = 1.0;
// Tiles do 16 times as many as vectors of float32; what is left of that when operands come from the
// caches, in whole models.
constexpr double kTiles = 6.0;

}  // namespace

double bfloat16_rate_of(std::string_view family, BFloat16Products products) {
  if (products == BFloat16Products::kNone) return 0.0;
  if (products == BFloat16Products::kTiles) return kTiles;
  const auto* found = std::find_if(kRates.begin(), kRates.end(),
                                   [&](const FamilyRate& row) { return row.family == family; });
  return found == kRates.end() ? kPairs : found->pairs;
}

}  // namespace npu::onednn
