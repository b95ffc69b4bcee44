// SPDX-License-Identifier: Apache-2.0
// Asks backends for their ops, for npu-run --list-ops. npu-tag lists what a target promises; this
// is what the loaded libraries have.
#include "runtime/backend_ops.hpp"

#include <algorithm>

#include "device/device_instance.hpp"
#include "npu/support/error.hpp"
#include "support/text.hpp"

namespace npu {

std::string format_backend_ops(const Target& target, const std::string& device,
                               const ExecutorOptions& options) {
  if (!device.empty() && target.find_device(device) == nullptr) {
    std::string names;
    for (const Device& candidate : target.devices) {
      names += (names.empty() ? "" : ", ") + candidate.name;
    }
    throw Error(ErrorCode::kUsage,
                "--list-ops " + device + ": target '" + target.name + "' has the devices " + names);
  }
  std::vector<std::vector<std::string>> rows{{"device", "op", "kind"}};
  for (const Device& candidate : target.devices) {
    if (!device.empty() && candidate.name != device) continue;
    if (candidate.backend.empty()) {
      if (device.empty()) continue;
      throw Error(ErrorCode::kUnsupported, "device '" + device + "' of target '" + target.name +
                                               "' has no backend: it is for planning only");
    }
    const auto instance =
        DeviceInstance::open(Backend::load(candidate.backend), device_options(candidate, options));
    std::vector<std::vector<std::string>> own;
    instance->list_ops([&](std::string_view op_type, std::string_view kind) {
      own.push_back({candidate.name, std::string(op_type), std::string(kind)});
    });
    std::sort(own.begin(), own.end());
    rows.insert(rows.end(), own.begin(), own.end());
  }
  return table_text(rows);
}

}  // namespace npu
