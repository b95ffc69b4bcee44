// SPDX-License-Identifier: Apache-2.0
#include "runtime/session/saved_states.hpp"

#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <string>

#include "catch.hpp"
#include "npu/support/error.hpp"
#include "npu/tensor/safetensors.hpp"

namespace npu {
namespace {

std::string saved_path() { return "/tmp/npu-saved-states-" + std::to_string(::getpid()); }

TEST_CASE("states and their position come back bit for bit", "[generate]") {
  Tensor cache(DType::kFloat32, {1, 2, 3});
  for (int i = 0; i < 6; ++i) cache.as_mutable<float>()[i] = static_cast<float>(i) / 7;
  Tensor counter(DType::kInt64, {});
  *counter.as_mutable<std::int64_t>() = -5;
  write_saved_states(saved_path(), {{{"k0", cache}, {"steps", counter}}, 17});
  const SavedStates saved = read_saved_states(saved_path());
  CHECK(saved.position == 17);
  REQUIRE(saved.values.size() == 2);
  CHECK(saved.values[0].name == "k0");
  CHECK(saved.values[0].tensor.shape() == Shape{1, 2, 3});
  CHECK(std::memcmp(saved.values[0].tensor.data(), cache.data(), cache.bytes()) == 0);
  CHECK(*saved.values[1].tensor.as<std::int64_t>() == -5);
  std::remove(saved_path().c_str());
}

TEST_CASE("a file without a position is refused", "[generate]") {
  Tensor position(DType::kInt64, {1});
  *position.as_mutable<std::int64_t>() = -1;
  for (const char* name : {"npu.position", "k0"}) {
    write_safetensors(saved_path(), {{name, position}});
    CHECK_THROWS_AS(read_saved_states(saved_path()), Error);
  }
  std::remove(saved_path().c_str());
  CHECK_THROWS_AS(read_saved_states(saved_path()), Error);
}

}  // namespace
}  // namespace npu
