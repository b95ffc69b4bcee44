// SPDX-License-Identifier: Apache-2.0
#include "lowering/cpu_rates.hpp"

#include "catch.hpp"

namespace npu::onednn {

TEST_CASE("bfloat16's rate is the family's, and that of tiles where there are some", "[onednn]") {
  using enum BFloat16Products;
  CHECK(bfloat16_rate_of("amd-zen5", kNone) == 0.0);
  CHECK(bfloat16_rate_of("amd-zen5", kPairs) > 1.5);
  CHECK(bfloat16_rate_of("intel-sapphire-rapids", kPairs) < 1.5);
  CHECK(bfloat16_rate_of("other", kPairs) == 1.0);  // so that float32 is never slower
  CHECK(bfloat16_rate_of("intel-sapphire-rapids", kTiles) > 2.0);
}

}  // namespace npu::onednn
