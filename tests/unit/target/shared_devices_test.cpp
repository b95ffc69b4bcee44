// SPDX-License-Identifier: Apache-2.0
// Devices that stand in several built-in targets are described once for all of them: a rule that
// one target has and another lacks would be run on one device here and on another there.
#include <algorithm>

#include "catch.hpp"
#include "npu/support/json.hpp"
#include "target/embedded_targets.hpp"

namespace npu {
namespace {

Json device_of(std::string_view target_name, std::string_view device_name) {
  const auto& targets = embedded_targets();
  const auto target =
      std::find_if(targets.begin(), targets.end(),
                   [&](const EmbeddedTarget& candidate) { return candidate.name == target_name; });
  REQUIRE(target != targets.end());
  const Json document = parse_json(std::string(target->text), std::string(target_name));
  for (const Json& device : document.at("devices")) {
    if (device.at("name") == device_name) return device;
  }
  FAIL("the target " << target_name << " has no device " << device_name);
  return {};
}

// Rules one by one, so that a failure shows the first that differs and not two whole devices.
void check_equal(const Json& device, const Json& other) {
  const Json& rules = device.at("ops");
  const Json& other_rules = other.at("ops");
  for (const Json& rule : rules) {
    INFO("only in one target: " << rule.dump());
    CHECK(std::find(other_rules.begin(), other_rules.end(), rule) != other_rules.end());
  }
  for (const Json& rule : other_rules) {
    INFO("only in the other target: " << rule.dump());
    CHECK(std::find(rules.begin(), rules.end(), rule) != rules.end());
  }
  CHECK(device == other);
}

TEST_CASE("the devices of trio are those of host and of opencl") {
  check_equal(device_of("trio", "npu"), device_of("host", "npu"));
  check_equal(device_of("trio", "gpu"), device_of("opencl", "gpu"));
  CHECK(device_of("trio", "cpu") == device_of("host", "cpu"));
  CHECK(device_of("opencl", "cpu") == device_of("host", "cpu"));
}

}  // namespace
}  // namespace npu
