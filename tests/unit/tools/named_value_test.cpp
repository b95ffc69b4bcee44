// SPDX-License-Identifier: Apache-2.0
// Option values of the form NAME=VALUE.
#include "named_value.hpp"

#include "catch.hpp"

namespace npu::cli {
namespace {

TEST_CASE("NAME=VALUE splits at the first sign") {
  CHECK(split_named_value("x").name == std::nullopt);
  CHECK(split_named_value("x").value == "x");
  CHECK(split_named_value("a=b").name == "a");
  CHECK(split_named_value("a=b").value == "b");
  CHECK(split_named_value("a=b=c").value == "b=c");
  CHECK(split_named_value("=b").name == "");
  CHECK(split_named_value("a=").value.empty());
  CHECK(split_named_value("").name == std::nullopt);
}

TEST_CASE("--inputs: only .npy files have a name") {
  const InputFile named = parse_input_file("x=folder/y.npy");
  CHECK(named.input == "x");
  CHECK(named.path == "folder/y.npy");
  CHECK(parse_input_file("y.npy").input == std::nullopt);
  CHECK(parse_input_file("y.npy").path == "y.npy");
  CHECK(parse_input_file("=y.npy").input == "");
  // A file of many tensors has their names inside.
  CHECK(parse_input_file("x=y.safetensors").input == std::nullopt);
  CHECK(parse_input_file("x=y.safetensors").path == "x=y.safetensors");
}

}  // namespace
}  // namespace npu::cli
