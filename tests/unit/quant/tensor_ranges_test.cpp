// SPDX-License-Identifier: Apache-2.0
#include "quant/tensor_ranges.hpp"

#include <string>
#include <vector>

#include "catch.hpp"
#include "npu/support/error.hpp"

namespace npu {
namespace {

TensorRanges example() {
  TensorRanges ranges;
  ranges.file = "ranges.json";
  ranges.model = "m";
  ranges.model_digest = "0123";
  ranges.samples = 2;
  TensorRange tensor;
  tensor.name = "x";
  tensor.shape = {1, 2};
  tensor.histogram.add(std::vector<float>{-1.0F, 0.0F, 0.3F});
  tensor.average_low = -0.5;
  tensor.average_high = 0.25;
  tensor.channels = {1, {-1, 0}, {0, 0.3F}};
  tensor.factors = {1, 0.25F};
  tensor.gain = 3.5;
  ranges.tensors.push_back(tensor);
  ranges.products.push_back({"op", {0.5F}, {0.25F}, {-1}, {2}});
  ranges.products.push_back({"plain", {0.5F, 1}, {}, {}, {}});
  ranges.weights.push_back({"w", {0, {-2, -3}, {2, 3}}});
  ranges.errors.push_back({"op", 0.25});
  return ranges;
}

std::string fault_of(const Json& json) {
  try {
    TensorRanges::parse(json, "r.json");
  } catch (const Error& error) {
    return error.location().pointer + ": " + error.message();
  }
  return {};
}

}  // namespace

TEST_CASE("ranges: what is written is read again", "[quant]") {
  const Json json = example().to_json();
  const TensorRanges again = TensorRanges::parse(json, "r.json");
  CHECK(again.to_json() == json);
  REQUIRE(again.find("x") != nullptr);
  CHECK(again.find("x")->histogram.low() == -1);
  CHECK(again.find("x")->channels.high == std::vector<float>{0, 0.3F});
  CHECK(again.find("x")->factors == std::vector<float>{1, 0.25F});
  CHECK(again.find("x")->gain == 3.5);
  CHECK(again.find("w") == nullptr);
  REQUIRE(again.find_product("op") != nullptr);
  CHECK(again.find_product("op")->factored_correction == std::vector<float>{0.25F});
  CHECK(again.find_product("op")->factored_high == std::vector<float>{2});
  REQUIRE(again.find_product("plain") != nullptr);
  CHECK(again.find_product("plain")->correction.size() == 2);
  CHECK(again.find_product("plain")->factored_low.empty());
  CHECK(again.find_product("x") == nullptr);
  REQUIRE(again.find_weight("w", 0) != nullptr);
  CHECK(again.find_weight("w", 1) == nullptr);
}

TEST_CASE("ranges: faults", "[quant]") {
  const auto with = [](const char* pointer, const Json& value) {
    Json json = example().to_json();
    json[Json::json_pointer(pointer)] = value;
    return fault_of(json);
  };
  CHECK(with("/npu/kind", "node-profile") ==
        "/npu/kind: expected a document of kind 'ranges', which npu-profile --calibrate writes");
  CHECK(with("/npu/version", 2) == "/npu/version: expected version 1");
  CHECK(with("/tensors/0/min", "x").find("expected a number 'min'") != std::string::npos);
  CHECK(with("/tensors/0/min", 1e39).find("within float32") != std::string::npos);
  CHECK(with("/tensors/0/min", 0.5).find("the bins do not cover") != std::string::npos);
  CHECK(with("/tensors/0/max", 2).find("the bins do not cover") != std::string::npos);
  CHECK(with("/tensors/0/first_bin", -3).find("the bins do not cover") != std::string::npos);
  CHECK(with("/tensors/0/bins/0", -1).find("expected integers of at least 0") != std::string::npos);
  CHECK(with("/tensors/0/bins/0", UINT64_MAX).find("the bins") != std::string::npos);
  CHECK(with("/tensors/0/shape/0", -1).find("expected integers") != std::string::npos);
  CHECK(with("/tensors/0/channel_axis", 2).find("0..1") != std::string::npos);
  CHECK(with("/tensors/0/channel_min", Json::array({1})).find("expected 2 numbers, found 1") !=
        std::string::npos);
  CHECK(with("/tensors/0/channel_min/0", 9).find("larger than its maximum") != std::string::npos);
  CHECK(with("/tensors/0/average_min", 9).find("is larger than 'average_max'") !=
        std::string::npos);
  CHECK(with("/errors/0/power", "x").find("power") != std::string::npos);
  CHECK(with("/tensors/0/factors/0", 3).find("expected powers of two, found 3") !=
        std::string::npos);
  CHECK(with("/tensors/0/factors", {1}).find("expected 2 numbers, found 1") != std::string::npos);
  CHECK(with("/products/1/node", "op").find("'op' is listed twice") != std::string::npos);
  CHECK(with("/products/0/factored_min/0", 9).find("larger than its maximum") != std::string::npos);
  CHECK(with("/samples", 0).find("samples") != std::string::npos);
  Json twice = example().to_json();
  twice["tensors"].push_back(twice["tensors"][0]);
  CHECK(fault_of(twice) == "/tensors/1/name: 'x' is listed twice");
  twice = example().to_json();
  twice["weights"].push_back(twice["weights"][0]);
  CHECK(fault_of(twice) == "/weights/1/name: 'w' is listed twice");
}

}  // namespace npu
