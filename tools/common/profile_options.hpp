// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "npu/gnn/profile_gnn.hpp"
#include "npu/profile/profile_model.hpp"
#include "tool.hpp"

namespace npu::cli {

/// The options of npu-profile. Those that staged and ordinary models share are read into `staged`.
struct ProfileOptions {
  gnn::ProfileOptions staged;
  ProfileModelOptions ordinary;
  std::vector<std::string> devices;  ///< NAME or NAME=BACKEND
  std::string import;
  std::string bandwidths;
  bool quick = false;

  /// Copies shared options, splits --devices and applies --quick; call
  /// it after parsing. Throws Error kUsage.
  void finish(Tool& tool);
};

void add_profile_options(Tool& tool, ProfileOptions& options);

}  // namespace npu::cli
