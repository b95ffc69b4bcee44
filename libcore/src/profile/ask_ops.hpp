// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "device/device_instance.hpp"
#include "profile/backend_rules.hpp"

namespace npu {

struct AskedOps {
  std::vector<OpAnswer> answers;
  std::size_t left = 0;              ///< questions for which there was no time
  std::vector<std::string> unasked;  ///< ops that the backend names and that no question is about
};

/// Asks a device which samples it takes in each of the dtypes that it lists: by the backend's
/// answers where it has the feature "check", otherwise by compiling them, for as long as `seconds`.
/// Ops that the backend's own list lacks are left out. `tell` is called with the op that is asked
/// about. `questions` outlive the result. Throws BackendError for what is no refusal.
AskedOps ask_ops(DeviceInstance& device, const std::vector<OpQuestion>& questions, double seconds,
                 const std::function<void(const std::string&)>& tell);

}  // namespace npu
