// SPDX-License-Identifier: Apache-2.0
#include "device/cpu_family.hpp"

#include "catch.hpp"

namespace npu {

TEST_CASE("CPUs with the same rates are one family", "[isa]") {
  using enum CpuVendor;
  CHECK(cpu_family({kIntel, 6, 0x8F}) == "intel-sapphire-rapids");
  CHECK(cpu_family({kIntel, 6, 0xCF}) == "intel-sapphire-rapids");
  CHECK(cpu_family({kIntel, 6, 0xAD}) == "intel-granite-rapids");
  CHECK(cpu_family({kAmd, 25, 0x11}) == "amd-zen4");
  CHECK(cpu_family({kAmd, 26, 0x44}) == "amd-zen5");
  // Zen 3, whose family number is Zen 4's; Intel's numbers with another vendor; no x86-64.
  CHECK(cpu_family({kAmd, 25, 0x01}) == "other");
  CHECK(cpu_family({kOther, 6, 0x8F}) == "other");
  CHECK(cpu_family(CpuModel{}) == "other");
  CHECK(cpu_family() == cpu_family(cpu_model()));
}

}  // namespace npu
