// SPDX-License-Identifier: Apache-2.0
#include "runtime/generate/source_tensors.hpp"

#include <string>

#include "catch.hpp"
#include "npu/support/error.hpp"
#include "npu/tensor/safetensors.hpp"
#include "support/temporary_folder.hpp"
#include "tensor/npy.hpp"

namespace npu {
namespace {

const SourceInput kFeatures{.name = "x", .dtype = DType::kFloat32, .shape = {1, 2, 3}};

Tensor numbers(const Shape& shape) {
  Tensor tensor(DType::kFloat32, shape);
  for (std::int64_t i = 0; i < tensor.element_count(); ++i) {
    tensor.as_mutable<float>()[i] = static_cast<float>(i);
  }
  return tensor;
}

std::string fault(const std::vector<InputFile>& files) {
  try {
    read_sources(files, kFeatures);
  } catch (const Error& error) {
    return error.message();
  }
  return "no fault";
}

TEST_CASE("a tensor is the source of one request, or a stack of several", "[generate][source]") {
  const test::TemporaryFolder folder;
  write_npy(folder / "one.npy", numbers({1, 2, 5}));
  write_npy(folder / "two.npy", numbers({2, 1, 2, 5}));
  write_safetensors(folder / "x.safetensors", {{"x", numbers({1, 2, 5})}, {"y", numbers({1})}});
  const auto one = read_sources({{{}, folder / "one.npy"}}, kFeatures);
  REQUIRE(one.size() == 1);
  CHECK(one[0].shape() == Shape{1, 2, 5});
  CHECK(one[0].as<float>()[9] == 9);
  const auto two = read_sources({{"x", folder / "two.npy"}}, kFeatures);
  REQUIRE(two.size() == 2);
  CHECK(two[1].shape() == Shape{1, 2, 5});
  CHECK(two[1].as<float>()[0] == 10);
  CHECK(read_sources({{{}, folder / "x.safetensors"}}, kFeatures).size() == 1);
  CHECK(read_sources({}, kFeatures).empty());
}

TEST_CASE("what is no source of the encoder is refused", "[generate][source]") {
  const test::TemporaryFolder folder;
  write_npy(folder / "one.npy", numbers({1, 2, 5}));
  write_npy(folder / "flat.npy", numbers({5}));
  write_safetensors(folder / "y.safetensors", {{"y", numbers({1})}});
  CHECK_THAT(fault({{"y", folder / "one.npy"}}),
             Catch::Contains("the encoder reads the input 'x'"));
  CHECK_THAT(fault({{{}, folder / "y.safetensors"}}), Catch::Contains("has no source"));
  CHECK_THAT(fault({{"x", folder / "one.npy"}, {"x", folder / "one.npy"}}),
             Catch::Contains("gives 'x' twice"));
  CHECK_THAT(fault({{"x", folder / "flat.npy"}}),
             Catch::Contains("is float32 [5], expected float32 [1, 2, 3] or one more dimension"));
}

TEST_CASE("a line of ids is a source of one row of them", "[generate][source]") {
  const Tensor tensor = source_of_ids({4, 5, 6});
  CHECK(tensor.shape() == Shape{1, 3});
  CHECK(tensor.as<std::int64_t>()[2] == 6);
}

}  // namespace
}  // namespace npu
