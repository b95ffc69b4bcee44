// SPDX-License-Identifier: Apache-2.0
// Narrows a target to some of its devices, or changes their order, in its description, so that
// later tools see the same target and need no option. O(devices + links).
#include "npu/target/select_devices.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <set>
#include <string_view>

#include "npu/support/error.hpp"
#include "support/text.hpp"

namespace npu {
namespace {

std::vector<std::string> names_of(const Target& target) {
  std::vector<std::string> names;
  for (const Device& device : target.devices) names.push_back(device.name);
  return names;
}

// Names that stand once each and that the target has.
void check_names(const Target& target, const std::vector<std::string>& names,
                 std::string_view option) {
  std::set<std::string_view> seen;
  for (const std::string& name : names) {
    if (target.find_device(name) == nullptr) {
      throw Error(ErrorCode::kUsage,
                  fmt::format("{} {}: target '{}' has no device of this name, only {}", option,
                              name, target.name, fmt::join(names_of(target), ", ")));
    }
    if (!seen.insert(name).second) {
      throw Error(ErrorCode::kUsage, fmt::format("{}: device '{}' stands twice", option, name));
    }
  }
}

}  // namespace

Target select_devices(const Target& target, const std::vector<std::string>& wanted,
                      const std::vector<std::string>& excluded) {
  if (wanted.empty() && excluded.empty()) return target;
  check_names(target, wanted, "--devices");
  check_names(target, excluded, "--exclude-device");
  std::vector<std::string> names = wanted.empty() ? names_of(target) : wanted;
  std::erase_if(names, [&](const std::string& name) {
    return std::find(excluded.begin(), excluded.end(), name) != excluded.end();
  });
  if (names.empty()) {
    throw Error(ErrorCode::kUsage,
                fmt::format("--exclude-device leaves no device of target '{}'", target.name));
  }
  Json json = *target.json;
  Json devices = Json::array();
  for (const std::string& name : names) {
    const auto place = target.find_device(name) - target.devices.data();
    devices.push_back(target.json->at("devices")[static_cast<std::size_t>(place)]);
  }
  json["devices"] = std::move(devices);
  if (Json* links = find_member(json, "links")) {
    const auto is_gone = [&](const std::string& device) {
      return std::find(names.begin(), names.end(), device) == names.end();
    };
    Json kept = Json::array();
    for (std::size_t i = 0; i < target.links.size(); ++i) {
      if (!is_gone(target.links[i].from) && !is_gone(target.links[i].to)) {
        kept.push_back((*links)[i]);
      }
    }
    *links = std::move(kept);
  }
  return parse_target(json, target.name, {});
}

}  // namespace npu
