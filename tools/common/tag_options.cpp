// SPDX-License-Identifier: Apache-2.0
// Parses the option values of npu-tag that are not plain values.
#include "tag_options.hpp"

#include "npu/support/error.hpp"

namespace npu::cli {

ForceRule parse_force_rule(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size()) {
    throw Error(ErrorCode::kUsage,
                "--force " + text + ": expected DEVICE=GLOB, for example 'cpu=aten.add*'");
  }
  return {text.substr(0, equals), text.substr(equals + 1)};
}

void add_device_options(Tool& tool, DeviceChoice& where) {
  tool.app()
      .add_option("--devices", where.devices,
                  "use only these devices of the target, in this order of preference")
      ->type_name("DEVICE,...")
      ->delimiter(',')
      ->expected(1)
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  tool.app()
      .add_option("--exclude-device", where.excluded, "leave a device out; repeatable")
      ->type_name("DEVICE")
      ->expected(1)
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

}  // namespace npu::cli
