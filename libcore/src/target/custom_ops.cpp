// SPDX-License-Identifier: Apache-2.0
// Makes a target's devices accept the ops of loaded libraries, by rules that stay in `npu.target`,
// so that later tools see the same target and need no option. O(devices x ops).
#include "target/custom_ops.hpp"

#include <algorithm>

#include "device/custom_op_library.hpp"
#include "npu/support/error.hpp"

namespace npu {

Target with_custom_ops(const Target& target, const std::vector<std::string>& libraries) {
  if (libraries.empty()) return target;
  std::vector<std::string> names;
  for (const std::string& library : libraries) {
    for (const npu_custom_op& op : load_custom_ops(library)) names.emplace_back(op.name);
  }
  const bool has_taker = std::any_of(target.devices.begin(), target.devices.end(),
                                     [](const Device& device) { return device.any_op; });
  if (!has_taker) {
    throw Error(ErrorCode::kUsage, "--load-ops: no device of target '" + target.name +
                                       "' runs every op (ops \"*\"), so none takes custom ops");
  }
  Json json = *target.json;
  for (std::size_t d = 0; d < target.devices.size(); ++d) {
    const Device& device = target.devices[d];
    if (!device.any_op) continue;
    Json types = Json::array();
    for (const std::string& name : names) {
      const bool is_known = name.starts_with("aten.") || device.rules_by_type.contains(name) ||
                            std::find(types.begin(), types.end(), name) != types.end();
      if (!is_known) types.push_back(name);
    }
    if (types.empty()) continue;
    Json& ops = json["devices"][d]["ops"];
    if (!ops.is_array()) ops = Json::array({"*"});
    ops.push_back(
        {{"types", std::move(types)}, {"dtypes", "*"}, {"rank", Json::array({0, nullptr})}});
  }
  return parse_target(json, target.name, {});
}

}  // namespace npu
