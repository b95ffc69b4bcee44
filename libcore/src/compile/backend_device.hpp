// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "npu/target/target.hpp"

namespace npu {

/// A device of a target that has a backend. Throws Error kInvalidGraph if there is none of that
/// name, kUnsupported if it is for planning only.
const Device& backend_device(const Target& target, const std::string& name);

}  // namespace npu
