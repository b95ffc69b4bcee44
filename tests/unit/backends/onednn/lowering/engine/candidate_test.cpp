// SPDX-License-Identifier: Apache-2.0
// How candidates are ranked.
#include "lowering/engine/candidate.hpp"

#include <optional>
#include <string>

#include "backends/onednn/lowering/choice_fixture.hpp"
#include "catch.hpp"

namespace npu::onednn {

using namespace test;

TEST_CASE("a kernel that does not do the epilogue is not chosen", "[onednn][choose]") {
  const Epilogue tanh{{function("tanh", std::nullopt)}};
  const std::string why = "it does not compute 'tanh' behind the node";
  const auto convolutions =
      choose_convolution(convolution(64, 64, 3, 56), tanh, machine(VectorIsa::kAvx512));
  CHECK(convolutions.front().name == "onednn");
  CHECK(refusal_of("winograd", convolutions) == why);
  // What is no candidate anyway keeps its own reason.
  CHECK(refusal_of("gemv", convolutions) == "the convolution is not one of one by one");
  const auto products = choose_product({1, 512, 960, 512}, tanh, machine(VectorIsa::kAvx512));
  CHECK(products.front().name == "onednn");
  CHECK(refusal_of("gemv", products) == why);
  const Epilogue residual{{kResidual}};
  CHECK(choose_product({1, 512, 960, 512}, residual, machine(VectorIsa::kAvx512)).front().name ==
        "gemv");
}

TEST_CASE("a choice that lowering refuses falls to the next candidate", "[onednn][choose]") {
  auto candidates = choose_convolution(convolution(64, 64, 3, 56), {}, machine(VectorIsa::kAvx512));
  KernelChoice choice = choice_of(candidates);
  REQUIRE(choice.rejected.size() == 5);
  CHECK(choice.rejected[0].kernel == "onednn");
  CHECK(choice.rejected[0].reason.starts_with("its estimate is "));
  // Of oneDNN's primitive, whatever else was refused.
  REQUIRE(choice.primitive_cycles);
  CHECK(*choice.primitive_cycles > *choice.cycles);
  refuse_first(candidates, "for a reason");
  CHECK(candidates.front().name == "onednn");
  choice = choice_of(candidates);
  CHECK(choice.rejected[0].kernel == "winograd");
  CHECK(choice.rejected[0].reason == "for a reason");
}

}  // namespace npu::onednn
