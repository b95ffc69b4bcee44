// SPDX-License-Identifier: Apache-2.0
#include "npu/target/select_devices.hpp"

#include "catch.hpp"
#include "npu/support/error.hpp"

using namespace npu;
using Names = std::vector<std::string>;

namespace {

Target three_devices() {
  Json json = {{"name", "three"}, {"devices", Json::array()}, {"links", Json::array()}};
  for (const char* name : {"npu", "gpu", "cpu"}) {
    json["devices"].push_back({{"name", name},
                               {"ops", "*"},
                               {"peak_flops", {{"float32", 1e9}}},
                               {"memory_bandwidth", 1e9}});
  }
  for (const auto& [from, to] : {std::pair{"npu", "gpu"}, {"gpu", "cpu"}, {"npu", "cpu"}}) {
    json["links"].push_back({{"from", from}, {"to", to}, {"bandwidth", 1e9}});
  }
  return parse_target(json, "three.json");
}

Names names_of(const Target& target) {
  Names names;
  for (const Device& device : target.devices) names.push_back(device.name);
  return names;
}

std::string refusal(const Names& wanted, const Names& excluded) {
  try {
    select_devices(three_devices(), wanted, excluded);
    return "good";
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kUsage);
    return error.message();
  }
}

}  // namespace

TEST_CASE("devices of a target in another order, and fewer of them") {
  const Target target = three_devices();
  CHECK(*select_devices(target, {}, {}).json == *target.json);
  const Target turned = select_devices(target, {"cpu", "npu"}, {});
  CHECK(names_of(turned) == Names{"cpu", "npu"});
  REQUIRE(turned.links.size() == 1);
  CHECK(turned.links[0].from == "npu");
  // The description says the same: who reads it gets the same target.
  CHECK(names_of(parse_target(*turned.json, "again")) == Names{"cpu", "npu"});
  CHECK(names_of(select_devices(target, {}, {"gpu"})) == Names{"npu", "cpu"});
  CHECK(names_of(select_devices(target, {"gpu", "cpu"}, {"gpu"})) == Names{"cpu"});
}

TEST_CASE("devices that are not there, stand twice, or leave nothing") {
  CHECK(refusal({"tpu"}, {}) ==
        "--devices tpu: target 'three' has no device of this name, only npu, gpu, cpu");
  CHECK(refusal({}, {"tpu"}) ==
        "--exclude-device tpu: target 'three' has no device of this name, only npu, gpu, cpu");
  CHECK(refusal({"npu", "npu"}, {}) == "--devices: device 'npu' stands twice");
  CHECK(refusal({"npu"}, {"npu"}) == "--exclude-device leaves no device of target 'three'");
}
