// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
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

/// As parse_json, and takes the bare Infinity, -Infinity and NaN that Python's json module writes,
/// as floats that are not finite; says whether there are any.
Json parse_python_json(std::string_view text, const std::string& file, bool* has_bare = nullptr);

/// How a document states numbers that JSON cannot write.
enum class NonFiniteForm : std::uint8_t {
  kText,  ///< the strings "inf", "-inf" and "nan"
  kBare,  ///< Infinity, -Infinity and NaN, which are floats here
};
/// Whether a float below `json`, or `json` itself, is not finite.
bool has_non_finite(const Json& json);
/// Brings all such numbers below `json` into one form. Strings that read inf, Infinity, nan, NaN or
/// their negatives count as numbers.
void set_non_finite_form(Json& json, NonFiniteForm form);

/// The member `key` of an object, or null if `json` is no object or has no such key.
const Json* find_member(const Json& json, std::string_view key) noexcept;
Json* find_member(Json& json, std::string_view key) noexcept;
/// Sets a member of an object, the last one if it is new. Copies nothing, while `json[key] = value`
/// copies all members, with everything below them, whenever their list grows. O(members).
void set_member(Json& object, std::string_view key, Json value);

/// "string", "array", "integer", ... for messages.
std::string_view json_type_name(const Json& json) noexcept;

/// `token` escaped for use in a JSON Pointer (RFC 6901).
std::string pointer_token(std::string_view token);

}  // namespace npu
