// SPDX-License-Identifier: Apache-2.0
// Which kernels OpenBLAS is told to take, by the numbers of CPUs and what they can do; and that it
// is told while a library is loaded only, and not against the user.
#include "device/blas_core.hpp"

#include <cstdlib>
#include <string>

#include "catch.hpp"
#include "set_variable.hpp"

using namespace npu;

namespace {

constexpr const char* kSse = "x86-64 sse4.1 sse4.2";
constexpr const char* kAvx2 = "x86-64 sse4.1 sse4.2 avx avx2 fma f16c";
constexpr const char* kAvx512 =
    "x86-64 sse4.1 sse4.2 avx avx2 fma f16c avx512f avx512bw avx512vl avx512dq avx512vnni";

std::string variable() {
  const char* value = std::getenv("OPENBLAS_CORETYPE");
  return value == nullptr ? "not set" : value;
}

}  // namespace

TEST_CASE("OpenBLAS is told what a CPU can do whose model it takes for a Pentium 4", "[blas]") {
  struct Case {
    const char* cpu;
    CpuModel model;
    const char* features;
    const char* core;
  };
  const Case each =
      GENERATE(Case{"Emerald Rapids", {CpuVendor::kIntel, 6, 0xCF}, kAvx512, "SkylakeX"},
               Case{"Raptor Lake", {CpuVendor::kIntel, 6, 0xB7}, kAvx2, "Haswell"},
               Case{"Lunar Lake", {CpuVendor::kIntel, 6, 0xBD}, kAvx2, "Haswell"},
               Case{"Arrow Lake", {CpuVendor::kIntel, 6, 0xC6}, kAvx2, "Haswell"},
               Case{"a family after it", {CpuVendor::kIntel, 19, 1}, kAvx512, "SkylakeX"},
               Case{"Jasper Lake", {CpuVendor::kIntel, 6, 0x9C}, kSse, "Nehalem"},
               Case{"Sapphire Rapids", {CpuVendor::kIntel, 6, 0x8F}, kAvx512, ""},
               Case{"Granite Rapids, which it goes by features for",
                    {CpuVendor::kIntel, 6, 0xAD},
                    kAvx512,
                    ""},
               Case{"Cascade Lake", {CpuVendor::kIntel, 6, 0x55}, kAvx512, ""},
               Case{"Haswell", {CpuVendor::kIntel, 6, 0x3C}, kAvx2, ""},
               Case{"Westmere", {CpuVendor::kIntel, 6, 0x2C}, kSse, ""},
               Case{"Pentium 4", {CpuVendor::kIntel, 15, 4}, "x86-64", ""},
               Case{"Zen 3", {CpuVendor::kAmd, 25, 1}, kAvx2, ""},
               Case{"Zen 5, which it goes by features for", {CpuVendor::kAmd, 26, 2}, kAvx512, ""},
               Case{"ARM", {}, "aarch64 neon", ""});
  INFO(each.cpu);
  CHECK(blas_core_for(each.model, each.features) == each.core);
}

TEST_CASE("OpenBLAS is told while a library is loaded, and not against the user", "[blas]") {
  const std::string here(blas_core_for(cpu_model(), cpu_features()));
  {
    const test::SetVariable none("OPENBLAS_CORETYPE", nullptr);
    {
      const BlasCoreScope scope;
      CHECK(variable() == (here.empty() ? "not set" : here));
    }
    CHECK(variable() == "not set");
  }
  const test::SetVariable chosen("OPENBLAS_CORETYPE", "Prescott");
  {
    const BlasCoreScope scope;
    CHECK(variable() == "Prescott");
  }
  CHECK(variable() == "Prescott");
}
