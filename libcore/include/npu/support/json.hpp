// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

// Instantiated only in support/json.cpp, which saves files that use it a
// quarter of their compile time.
extern template class nlohmann::basic_json<nlohmann::ordered_map>;

namespace npu {

/// JSON whose objects keep their keys in the order in which they were read or added.
using Json = nlohmann::ordered_json;

/// Parses one JSON document. Stricter than the underlying library: duplicate keys, numbers that no
/// 64-bit integer or finite double can hold, nesting deeper than 200, and bytes after the document
/// are errors. Throws Error kParse with line and column; messages call the input `file`.
Json parse_json(std::string_view text, const std::string& file);

/// The member `key` of an object, or null if `json` is not an object or has no such key.
const Json* find_member(const Json& json, std::string_view key) noexcept;
Json* find_member(Json& json, std::string_view key) noexcept;

/// "string", "array", "integer", ... for messages.
std::string_view json_type_name(const Json& json) noexcept;

/// `token` escaped for use in a JSON Pointer (RFC 6901).
std::string pointer_token(std::string_view token);

}  // namespace npu
