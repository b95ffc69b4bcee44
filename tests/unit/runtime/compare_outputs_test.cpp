// SPDX-License-Identifier: Apache-2.0
// Outputs against a file: by name, with the tolerance of their dtype.
#include "runtime/compare_outputs.hpp"

#include "catch.hpp"
#include "npu/tensor/safetensors.hpp"
#include "support/temporary_folder.hpp"

using namespace npu;
using namespace npu::test;

namespace {

Tensor one_float(float value) {
  Tensor tensor(DType::kFloat32, {1});
  tensor.as_mutable<float>()[0] = value;
  return tensor;
}

const std::vector<std::string> kOneOutput{"y"};

}  // namespace

TEST_CASE("compare: the tolerance is the dtype's unless it is given") {
  // 1 % off: more than 1e-3, less than 2e-2.
  const std::vector<Tensor> outputs{one_float(1.01F)};
  const std::vector<std::optional<Tensor>> expected{one_float(1)};
  CHECK_FALSE(compare_outputs(kOneOutput, outputs, expected, {}).ok());
  const ComparisonReport narrow =
      compare_outputs(kOneOutput, outputs, expected, {.is_narrow = true});
  CHECK(narrow.ok());
  CHECK(narrow.outputs[0].tolerance.rtol == 2e-2);
  CHECK(narrow.outputs[0].tolerance.atol == 2e-2);
  CHECK(compare_outputs(kOneOutput, outputs, expected, {.rtol = 0.5}).ok());
  CHECK_FALSE(
      compare_outputs(kOneOutput, outputs, expected, {.rtol = 0, .atol = 0, .is_narrow = true})
          .ok());

  Tensor half(DType::kBFloat16, {1});
  half.as_mutable<std::uint16_t>()[0] = 0x3f80;  // 1
  CHECK(compare_outputs(kOneOutput, {half}, {half}, {}).outputs[0].tolerance.rtol == 2e-2);
}

TEST_CASE("compare: an output that the file lacks differs") {
  const ComparisonReport report = compare_outputs(kOneOutput, {one_float(1)}, {std::nullopt}, {});
  CHECK_FALSE(report.ok());
  CHECK(report.outputs[0].name == "y");
  CHECK(report.outputs[0].comparison.mismatch == "is not in the file");
}

TEST_CASE("expected outputs are found by name, a single one by any") {
  const TemporaryFolder folder;
  const auto expected = [&](const char* file) {
    return expected_outputs(kOneOutput, {{.input = std::nullopt, .path = folder / file}});
  };
  write_safetensors(folder / "named", {{"y", one_float(2)}, {"z", one_float(3)}});
  CHECK(expected("named")[0]->as<float>()[0] == 2);
  write_safetensors(folder / "other", {{"z", one_float(3)}});
  CHECK(expected("other")[0]->as<float>()[0] == 3);
  write_safetensors(folder / "two", {{"z", one_float(3)}, {"w", one_float(4)}});
  CHECK(expected("two")[0] == std::nullopt);
}
