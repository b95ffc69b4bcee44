// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "npu/support/error.hpp"
#include "npu/support/json.hpp"
#include "npu/support/progress.hpp"

namespace npu {

/// The options of `npu-profile --machine --backend`.
struct ProfileBackendOptions {
  std::string backend;       ///< NAME of npu_backend_NAME.so
  std::int32_t threads = 0;  ///< of each device; 0: all cores
  double ask_seconds = 60;   ///< for questions to a backend without the feature "check"
};

/// One line of the report.
struct BackendFact {
  std::string device;  ///< or "FROM -> TO" of a link
  std::string what;
  std::string value;
  std::string source;  ///< "fact sheet", "asked", "measured" or "guess"
};

struct BackendProfile {
  Json target;  ///< npu-target(5)
  std::vector<BackendFact> facts;
};

/// A target for a backend that nobody has written one for: its usable devices, beside the device
/// "cpu" of libtorch. Memory, dtypes and what else it knows come from its fact sheets; the ops from
/// its answers to questions about single nodes; copies, launches and what the fact sheets leave
/// open are measured. `progress` is called for each step; if it returns false, Error kIo is thrown.
/// Warns of what could not be found out. Throws Error kUnsupported if the backend is missing or has
/// no usable device here.
BackendProfile profile_backend(const ProfileBackendOptions& options,
                               const ProgressCallback& progress, Diagnostics& diagnostics);

/// A table for people.
std::string format_backend_profile(const BackendProfile& profile);

}  // namespace npu
