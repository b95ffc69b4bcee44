// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace npu {

/// The type of npu/support/json.hpp, for headers that only name it: nlohmann/json accounts for most
/// of a small file's compile time.
using Json = nlohmann::ordered_json;

}  // namespace npu
