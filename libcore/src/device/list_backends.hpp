// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "device/backend.hpp"
#include "npu/support/json.hpp"

namespace npu {

/// A backend that was found, whether or not it can be used.
struct ListedBackend {
  std::string name;
  std::string version;
  std::vector<std::string> features;
  std::vector<DeviceFacts> devices;
  std::string why_not;  ///< empty if it loads
};

/// Every npu_backend_NAME.so in the folders that Backend::load searches, by name; of several with
/// one name the first, which is the one that load takes.
std::vector<ListedBackend> list_backends();

Json listed_backends_json(const std::vector<ListedBackend>& backends);
std::string format_listed_backends(const std::vector<ListedBackend>& backends);

}  // namespace npu
