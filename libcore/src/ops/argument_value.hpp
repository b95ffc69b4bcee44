// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "npu/support/json_fwd.hpp"

namespace npu {

/// An integer that 64 bits with sign hold.
bool is_int(const Json& value);
/// An array whose elements all are what `element` asks for; an empty one is.
bool is_list_of(const Json& value, bool (*element)(const Json&));

/// "string 'same'", "list [1, true]": the value itself where it is short enough to read.
std::string found_text(const Json& value);

}  // namespace npu
