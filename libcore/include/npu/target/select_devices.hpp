// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "npu/target/target.hpp"

namespace npu {

/// The devices that a user wants a document to run on that says nothing itself.
struct DeviceChoice {
  std::string target = {};                ///< as load_target takes it; empty: "host"
  std::vector<std::string> devices = {};  ///< in this order; empty: all
  std::vector<std::string> excluded = {};
};

/// The target with the devices `wanted` alone, in that order (all in their own order if it is
/// empty), and without those of `excluded`; links to others are gone, and `json` says the same.
/// Throws Error kUsage for a name that the target does not have or that stands twice, and if no
/// device is left.
Target select_devices(const Target& target, const std::vector<std::string>& wanted,
                      const std::vector<std::string>& excluded);

}  // namespace npu
