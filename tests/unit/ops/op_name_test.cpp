// SPDX-License-Identifier: Apache-2.0
#include "ops/op_name.hpp"

#include "catch.hpp"

using namespace npu;

TEST_CASE("A base name has neither library nor overload") {
  CHECK(base_name("aten.conv2d.default") == "conv2d");
  CHECK(base_name("aten.relu_.default") == "relu_");
  CHECK(base_name("npu.channel_norm") == "channel_norm");
  CHECK(base_name("custom") == "custom");
  CHECK(base_name("") == "");
}

TEST_CASE("An op and its in-place form share a functional name") {
  CHECK(family_name("aten.relu_.default") == "aten.relu");
  CHECK(family_name("aten.__and__.Tensor") == "aten.__and__");
  CHECK(family_name("aten.relu") == "aten.relu");
  CHECK(family_name("custom.relu_.default") == "custom.relu_");
  CHECK(family_name("npu.channel_norm") == "npu.channel_norm");
  CHECK(family_name(kGetitem) == kGetitem);
  CHECK(family_name("") == "");
  CHECK(is_in_place("aten.relu_.default"));
  CHECK_FALSE(is_in_place("aten.relu.default"));
  CHECK_FALSE(is_in_place("aten.__and__.Tensor"));
  CHECK_FALSE(is_in_place("custom.relu_.default"));
  CHECK(functional_name("aten.relu_.default") == "relu");
  CHECK(functional_name("aten.relu.default") == "relu");
  CHECK(functional_name("aten.__and__.Tensor") == "__and__");
  CHECK(functional_name("custom.relu_.default") == "");
  CHECK(functional_name(kGetitem) == "");
}

TEST_CASE("Short names are for people") {
  CHECK(short_name("aten.conv2d.default") == "conv2d");
  CHECK(short_name("aten.max.dim") == "max.dim");
  CHECK(short_name("custom.op") == "custom.op");
}

TEST_CASE("A spatial rank comes from the op's name alone") {
  CHECK(spatial_rank("aten.conv1d.padding") == 1);
  CHECK(spatial_rank("aten.conv_transpose3d.input") == 3);
  CHECK(spatial_rank("aten.max_pool2d_with_indices.default") == 2);
  CHECK(spatial_rank("aten.convolution.default") == 0);
  CHECK(spatial_rank("aten.linear.default") == 0);
  CHECK(spatial_rank("2d") == 2);
  CHECK(spatial_rank("d") == 0);
}
