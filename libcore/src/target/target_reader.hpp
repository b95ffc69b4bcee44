// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "npu/support/error.hpp"
#include "npu/support/json.hpp"
#include "npu/target/target.hpp"

namespace npu {

/// The target that `json` describes, located at `pointer` of `file`. Adds an error for every fault;
/// the result is usable only if there is none. `diagnostics` must have no errors yet.
Target read_target(const Json& json, const std::string& file, const std::string& pointer,
                   Diagnostics& diagnostics);

}  // namespace npu
