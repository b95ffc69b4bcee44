// SPDX-License-Identifier: Apache-2.0
#include "lowering/engine/cpu_rates.hpp"

#include "catch.hpp"

namespace npu::onednn {

TEST_CASE("rates are the family's, else those of its vectors", "[onednn]") {
  const auto pairs = [](std::string_view family) {
    return cpu_rates(family, VectorIsa::kAvx512).bfloat16_pairs;
  };
  CHECK(pairs("amd-zen5") > 1.5);
  CHECK(pairs("intel-sapphire-rapids") < 1.0);
  CHECK(pairs("other") == 1.0);  // so that float32 is never slower
  CHECK(cpu_rates("intel-sapphire-rapids", VectorIsa::kAvx512).bfloat16_tiles > 2.0);
  // A family keeps what its vectors have; limited to shorter ones, it has the rates of these.
  const CpuRates& wide = cpu_rates("other", VectorIsa::kAvx512);
  const CpuRates& narrow = cpu_rates("other", VectorIsa::kAvx2);
  CHECK(cpu_rates("amd-zen5", VectorIsa::kAvx512).implicit == wide.implicit);
  CHECK(&cpu_rates("amd-zen5", VectorIsa::kAvx2) == &narrow);
  CHECK(narrow.strided > wide.strided);
}

}  // namespace npu::onednn
