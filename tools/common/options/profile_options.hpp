// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "gnn/profile/profile_gnn.hpp"
#include "profile/calibrate_model.hpp"
#include "profile/profile_backend.hpp"
#include "profile/profile_machine.hpp"
#include "profile/profile_model.hpp"
#include "tool.hpp"

namespace npu::cli {

/// The options of npu-profile. Those that staged and ordinary models share are read into `staged`.
struct ProfileOptions {
  gnn::ProfileStagesOptions staged;
  ProfileModelOptions ordinary;
  ProfileMachineOptions machine;
  ProfileBackendOptions vendor;  ///< --backend
  CalibrateOptions calibrate;
  std::vector<std::string> devices;  ///< NAME or NAME=BACKEND
  std::string import;
  std::string bandwidths;
  std::string ranges;  ///< a file of calibration
  bool quick = false;
  bool of_machine = false;  ///< --machine
  std::string links;        ///< file for links between ranks, which alone are measured

  bool calibrates() const noexcept { return !calibrate.samples.empty(); }
  /// Whether a model may be a staged one.
  bool takes_staged() const noexcept { return !calibrates() && ranges.empty(); }
  /// Copies shared options, splits --devices and applies --quick; call
  /// it after parsing. Throws Error kUsage.
  void finish(Tool& tool);
  /// Whether to measure the machine rather than a model; fills `machine`. Throws Error kUsage for
  /// neither or both.
  bool measures_machine(Tool& tool);
  /// Whether to write a target for a backend; fills `vendor`. Throws Error kUsage for --backend
  /// without --machine, or with what is not about backends.
  bool measures_backend(Tool& tool);
  /// Whether to measure links between ranks rather than a model. Throws Error kUsage for both.
  bool measures_links(Tool& tool) const;
};

void add_profile_options(Tool& tool, ProfileOptions& options);

}  // namespace npu::cli
