// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace npu {

/// The type of npu/support/json.hpp, for headers that only name it: the whole of nlohmann/json is
/// most of what a small file takes to compile.
using Json = nlohmann::ordered_json;

}  // namespace npu
