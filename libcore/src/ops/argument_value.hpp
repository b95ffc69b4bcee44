// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "support/json_fwd.hpp"

namespace npu {

/// An integer that fits in 64 bits with sign.
bool is_int(const Json& value);
/// An array all of whose elements satisfy `element`; true for an empty one.
bool is_list_of(const Json& value, bool (*element)(const Json&));

/// "string 'same'", "list [1, true]": with the value itself if it is short enough to read.
std::string found_text(const Json& value);

}  // namespace npu
