// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "npu/support/error.hpp"
#include "support/json_fwd.hpp"

namespace npu {

// ---- A value of unknown type. Every function takes null for "there is none". ----

/// The string, or null.
const std::string* json_text(const Json* value) noexcept;
/// Any number.
std::optional<double> json_double(const Json* value) noexcept;
/// An integer that fits in 64 bits with sign.
std::optional<std::int64_t> json_integer(const Json* value) noexcept;
/// An integer of at least 0.
std::optional<std::uint64_t> json_unsigned(const Json* value) noexcept;
std::optional<bool> json_flag(const Json* value) noexcept;
/// The value itself if it is an array or object, else null.
const Json* json_list(const Json* value) noexcept;
const Json* json_object(const Json* value) noexcept;
/// Members of an object that have the type; null or nothing if there is no such member.
const std::string* member_text(const Json& object, std::string_view key) noexcept;
std::optional<double> member_double(const Json& object, std::string_view key) noexcept;
std::optional<std::int64_t> member_integer(const Json& object, std::string_view key) noexcept;
std::optional<bool> member_flag(const Json& object, std::string_view key) noexcept;
const Json* member_list(const Json& object, std::string_view key) noexcept;
const Json* member_object(const Json& object, std::string_view key) noexcept;

/// set_member for a key that is known to be new. O(1).
void append_member(Json& object, std::string_view key, Json value);

// ---- Parts of messages. ----

/// "3.5" for a number, "string", "array", ... for other types, "nothing" for null.
std::string number_or_type(const Json* value);
/// "3.5", "\"text\"" for values, "array", "object" for structures, "nothing" for null.
std::string value_or_type(const Json* value);
/// "; did you mean 'stride'?", or nothing if no candidate is close.
std::string spelling_hint(std::string_view name, const std::vector<std::string>& candidates);
/// "unknown key 'strid'; did you mean 'stride'?"
std::string unknown_key_text(std::string_view key, const std::vector<std::string>& known);
/// `pointer` extended by one key.
std::string pointer_below(std::string_view pointer, std::string_view key);
std::string pointer_below(std::string_view pointer, std::size_t index);

// ---- An object whose members must be right: reading ends at the first fault. ----

/// The wording of JsonFields' messages. Each document has kept its wording since its first version,
/// since users' scripts look for it.
struct FieldStyle {
  ErrorCode code = ErrorCode::kParse;
  /// "expected a string 'name'" instead of "expected a string".
  bool names_key = false;
  /// Whether a string may be empty.
  bool takes_empty_text = true;
  /// What follows "expected ...": ", found integer", ", found 3", or nothing.
  enum class Found : std::uint8_t { kType, kValue, kNothing } found = Found::kType;
  /// The text for a missing key, {} being the key; empty: the same as for a wrong type.
  std::string_view missing = "is missing";
  /// Whether a missing key is located at its own place or at the object's.
  bool missing_at_key = true;
  /// Whether a text of another type is located at its own place or at the object's.
  bool text_at_key = true;
};

/// The members of one object, with its place in every message. Refers to the JSON, the file's name
/// and the style, which must outlive it. All accessors throw Error with the style's code.
class JsonFields {
 public:
  /// Throws if `json` is not an object.
  JsonFields(const Json& json, const std::string& file, std::string pointer,
             const FieldStyle& style);

  bool has(std::string_view key) const noexcept { return find(key) != nullptr; }
  /// Null if there is no such key.
  const Json* find(std::string_view key) const noexcept;

  std::string text(std::string_view key) const;
  std::string text_or(std::string_view key, std::string otherwise) const;
  bool flag(std::string_view key) const;
  /// Any integer of at least 0.
  std::uint64_t unsigned_integer(std::string_view key) const;
  /// An integer in min..max; messages state this range.
  std::int64_t integer(std::string_view key, std::int64_t min, std::int64_t max) const;
  /// A number of at least 0 and at most `max`; messages only state the 0.
  double number(std::string_view key, double max) const;
  double number_or(std::string_view key, double max, double otherwise) const;
  const Json& list(std::string_view key) const;
  const Json& object(std::string_view key) const;
  /// Calls `read` for each element of a list of objects, in order.
  void for_each(std::string_view key, const std::function<void(const JsonFields&)>& read) const;

  const Json& json() const noexcept { return *json_; }
  const std::string& file() const noexcept { return *file_; }
  const std::string& pointer() const noexcept { return pointer_; }
  /// Throws at the member `key`, or at the object itself if the key is empty.
  [[noreturn]] void refuse(std::string_view key, std::string text) const;

 private:
  /// The member, or throws in the given style; `expected` and `range` form "a number 'us' of at
  /// least 0".
  const Json& member(std::string_view key, std::string_view expected, std::string_view range) const;
  [[noreturn]] void fail(std::string_view key, std::string_view expected, std::string_view range,
                         const Json* found) const;

  const Json* json_;
  const std::string* file_;
  std::string pointer_;
  const FieldStyle* style_;
};

// ---- A document whose faults are all reported. ----

/// Collects the faults of one file. Refers to both arguments.
class FieldFaults {
 public:
  FieldFaults(const std::string& file, Diagnostics& diagnostics)
      : file_(file), diagnostics_(diagnostics) {}

  void add(const std::string& pointer, std::string text);
  /// False, after adding a fault, if `json` is not an object.
  bool check_object(const Json& json, const std::string& pointer);
  /// Adds a fault for every key of an object that is not in `known`.
  void check_keys(const Json& object, const std::string& pointer,
                  std::initializer_list<std::string_view> known);
  bool any() const noexcept { return diagnostics_.has_errors(); }

 private:
  const std::string& file_;
  Diagnostics& diagnostics_;
};

}  // namespace npu
