// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <simdjson.h>

#include "npu/support/json.hpp"

namespace npu {

/// What parse_json allows, and how deep a part of a document may be.
inline constexpr std::size_t kMaxJsonDepth = 200;

/// simdjson's element as ours; false where an object has a duplicate key.
bool convert_element(const simdjson::dom::element& element, Json& json);

}  // namespace npu
