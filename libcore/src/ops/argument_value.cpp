// SPDX-License-Identifier: Apache-2.0
// Tests the types of argument values, and formats values for messages. O(size of the value).
#include "ops/argument_value.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>

#include "npu/support/json.hpp"
#include "support/json_fields.hpp"

namespace npu {

bool is_int(const Json& value) { return json_integer(&value).has_value(); }

bool is_list_of(const Json& value, bool (*element)(const Json&)) {
  return value.is_array() && std::all_of(value.begin(), value.end(), element);
}

std::string found_text(const Json& value) {
  const std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  const std::string_view type = json_type_name(value);
  if (value.is_null() || text.size() > 40) return std::string(type);
  return fmt::format("{} {}", type, text);
}

}  // namespace npu
