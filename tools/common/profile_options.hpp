// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "npu/profile/profile_gnn.hpp"
#include "npu/profile/profile_model.hpp"
#include "tool.hpp"

namespace npu::cli {

/// What npu-profile takes. Options that staged and ordinary models share are read into `staged`.
struct ProfileOptions {
  ProfileGnnOptions staged;
  ProfileModelOptions ordinary;
  std::string import;
  std::string bandwidths;
  bool quick = false;

  /// Copies what is shared and applies --quick; after parsing.
  void finish(Tool& tool);
};

void add_profile_options(Tool& tool, ProfileOptions& options);

}  // namespace npu::cli
