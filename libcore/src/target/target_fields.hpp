// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "npu/support/error.hpp"
#include "npu/support/json.hpp"
#include "npu/target/target.hpp"
#include "support/json_fields.hpp"

namespace npu {

/// Typed members of a target description. A fault is added to the diagnostics and a harmless value
/// is returned, so that one pass reports all faults. `pointer` is always the place of the first
/// argument. Refers to the file's name and the diagnostics.
class TargetFields : public FieldFaults {
 public:
  using FieldFaults::FieldFaults;

  /// Null if there is no such key, with a fault if it is required.
  const Json* member(const Json& object, const std::string& pointer, std::string_view key,
                     bool required);
  /// A required string must not be empty.
  std::string text(const Json& object, const std::string& pointer, std::string_view key,
                   bool required);
  /// Also nothing if there is no such key.
  std::optional<bool> flag(const Json& object, const std::string& pointer, std::string_view key);
  /// A finite number, greater than zero or at least zero.
  double rate(const Json& value, const std::string& pointer, bool zero_allowed);
  double rate_member(const Json& object, const std::string& pointer, std::string_view key,
                     bool required, bool zero_allowed);
  /// [min, max]; a max of null is open.
  CountRange range_member(const Json& object, const std::string& pointer, std::string_view key);
  std::optional<DType> dtype(const std::string& name, const std::string& pointer);
  /// As long as the list: an empty string stands for an element that is not a string.
  std::vector<std::string> strings(const Json& list, const std::string& pointer,
                                   bool empty_allowed);
  std::vector<DType> dtypes(const Json& list, const std::string& pointer);
  /// An op type that looks like PyTorch's but is not in the catalogue is usually a misspelling.
  /// Other names are custom ops. `pointer` is asked for the place only if there is a fault.
  void check_op_type(const std::string& op_type, const std::function<std::string()>& pointer);
};

/// An integer of at least 0 that fits in 63 bits.
std::optional<std::int64_t> count_of(const Json& json) noexcept;

}  // namespace npu
