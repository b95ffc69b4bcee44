// SPDX-License-Identifier: Apache-2.0
#include "device/isa_level.hpp"

#include <string>

#include "catch.hpp"
#include "npu/support/error.hpp"
#include "set_variable.hpp"

namespace npu {
namespace {

using Limit = test::IsaLimit;

template <typename Body>
std::string message_of(Body body) {
  try {
    body();
  } catch (const Error& error) {
    return error.message();
  }
  return "no error";
}

}  // namespace

TEST_CASE("levels of instructions have an order", "[isa]") {
  CHECK(find_isa_level("generic") == 0);
  CHECK(find_isa_level("avx2") < find_isa_level("avx512"));
  CHECK(find_isa_level("amx") == kIsaLevels.size() - 1);
  CHECK(!find_isa_level("AVX2"));
}

TEST_CASE("NPU_MAX_ISA limits the level of the CPU", "[isa]") {
  std::size_t highest = 0;
  {
    const test::SetVariable none("NPU_MAX_ISA", nullptr);
    CHECK(!isa_limit());
    highest = isa_level();
    REQUIRE(highest < kIsaLevels.size());
  }
  {
    const Limit empty("");
    CHECK(isa_level() == highest);
  }
  {
    const Limit lowest("generic");
    CHECK(isa_limit() == 0);
    CHECK(isa_level() == 0);
    const bool is_x86 = is_native_isa_level(*find_isa_level("avx2"));
    CHECK(message_of([&] { limit_isa_level(is_x86 ? "avx2" : "neon"); }) ==
          std::string("level '") + (is_x86 ? "avx2" : "neon") +
              "' is above 'generic', which is what there is here");
    CHECK(message_of([&] { limit_isa_level(is_x86 ? "neon" : "avx2"); }) ==
          std::string("level '") + (is_x86 ? "neon" : "avx2") + "' is one of another architecture");
  }
  {
    const Limit most("amx");
    CHECK(isa_level() == highest);
  }
  {
    const Limit other(is_native_isa_level(*find_isa_level("neon")) ? "avx2" : "neon");
    CHECK(is_native_isa_level(isa_level()));
  }
  const Limit wrong("avx3");
  CHECK(
      message_of([] { static_cast<void>(isa_level()); }) ==
      "NPU_MAX_ISA: unknown level 'avx3'; expected one of generic, neon, avx2, avx2_vnni, avx512, "
      "avx512_vnni, avx512_bf16, avx512_fp16, amx");
}

TEST_CASE("limit_isa_level sets the variable for backends", "[isa]") {
  const test::SetVariable none("NPU_MAX_ISA", nullptr);
  limit_isa_level("generic");
  CHECK(isa_limit() == 0);
  CHECK(message_of([] { limit_isa_level("sse"); }) ==
        "unknown level 'sse'; expected one of generic, neon, avx2, avx2_vnni, avx512, avx512_vnni, "
        "avx512_bf16, avx512_fp16, amx");
}

}  // namespace npu
