// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace npu {

/// Where transports and partitioners are looked for: in the install, then in the folders of
/// NPU_TRANSPORT_PATH.
std::vector<std::string> transport_folders();

}  // namespace npu
