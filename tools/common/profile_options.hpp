// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "npu/gnn/profile_gnn.hpp"
#include "npu/profile/profile_machine.hpp"
#include "npu/profile/profile_model.hpp"
#include "tool.hpp"

namespace npu::cli {

/// What npu-profile takes. Options that staged and ordinary models share are read into `staged`.
struct ProfileOptions {
  gnn::ProfileOptions staged;
  ProfileModelOptions ordinary;
  ProfileMachineOptions machine;
  std::vector<std::string> devices;  ///< NAME or NAME=BACKEND
  std::string import;
  std::string bandwidths;
  bool quick = false;
  bool of_machine = false;  ///< --machine

  /// Copies what is shared, splits --devices and applies --quick; after parsing. Throws Error
  /// kUsage.
  void finish(Tool& tool);
  /// Whether the machine is to be measured, and not a model; fills `machine`. Throws Error kUsage
  /// if it is neither, or both.
  bool measures_machine(Tool& tool);
};

void add_profile_options(Tool& tool, ProfileOptions& options);

}  // namespace npu::cli
