// SPDX-License-Identifier: Apache-2.0
// Typed access to the members of a target description. O(members) for each.
#include "target/target_fields.hpp"

#include <spdlog/fmt/fmt.h>

#include <cmath>

#include "ops/op_catalogue.hpp"
#include "ops/op_name.hpp"

namespace npu {

std::optional<std::int64_t> count_of(const Json& json) noexcept {
  const auto number = json_integer(&json);
  return number && *number >= 0 ? number : std::nullopt;
}

const Json* TargetFields::member(const Json& object, const std::string& pointer,
                                 std::string_view key, bool required) {
  const Json* found = find_member(object, key);
  if (found == nullptr && required) add(pointer, fmt::format("'{}' is missing", key));
  return found;
}

std::string TargetFields::text(const Json& object, const std::string& pointer, std::string_view key,
                               bool required) {
  const Json* found = member(object, pointer, key, required);
  if (found == nullptr) return {};
  if (!found->is_string() || (required && found->get_ref<const std::string&>().empty())) {
    add(fmt::format("{}/{}", pointer, key),
        fmt::format("expected a {}string, found {}", required ? "non-empty " : "",
                    json_type_name(*found)));
    return {};
  }
  return found->get<std::string>();
}

double TargetFields::rate(const Json& value, const std::string& pointer, bool zero_allowed) {
  const double number = value.is_number() ? value.get<double>() : -1;
  if (!std::isfinite(number) || number < 0 || (number == 0 && !zero_allowed)) {
    add(pointer, fmt::format("expected a number {} 0, found {}",
                             zero_allowed ? "of at least" : "above", number_or_type(&value)));
    return 0;
  }
  return number;
}
double TargetFields::rate_member(const Json& object, const std::string& pointer,
                                 std::string_view key, bool required, bool zero_allowed) {
  const Json* found = member(object, pointer, key, required);
  return found == nullptr ? 0 : rate(*found, fmt::format("{}/{}", pointer, key), zero_allowed);
}

CountRange TargetFields::range_member(const Json& object, const std::string& pointer,
                                      std::string_view key) {
  CountRange range;
  const Json* found = find_member(object, key);
  if (found == nullptr) return range;
  const bool pair = found->is_array() && found->size() == 2;
  const auto min = pair ? count_of((*found)[0]) : std::nullopt;
  const auto max = pair ? count_of((*found)[1]) : std::nullopt;
  if (!min || (!max && !(*found)[1].is_null()) || (max && *max < *min)) {
    add(fmt::format("{}/{}", pointer, key),
        "expected [min, max] with 0 <= min <= max, or null for max");
    return range;
  }
  range.min = *min;
  range.max = max;
  return range;
}

std::optional<DType> TargetFields::dtype(const std::string& name, const std::string& pointer) {
  const auto found = parse_dtype(name);
  if (!found) {
    add(pointer, fmt::format("unknown dtype '{}'; one of {}", name, dtype_names()));
  }
  return found;
}

std::vector<std::string> TargetFields::strings(const Json& list, const std::string& pointer,
                                               bool empty_allowed) {
  std::vector<std::string> result;
  if (!list.is_array() || (list.empty() && !empty_allowed)) {
    add(pointer,
        fmt::format("expected a {}list of strings, found {}", empty_allowed ? "" : "non-empty ",
                    list.is_array() ? "an empty one" : json_type_name(list)));
    return result;
  }
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (list[i].is_string()) {
      result.push_back(list[i].get<std::string>());
    } else {
      add(fmt::format("{}/{}", pointer, i),
          fmt::format("expected a string, found {}", json_type_name(list[i])));
      result.emplace_back();  // keeps indices for later messages
    }
  }
  return result;
}

std::vector<DType> TargetFields::dtypes(const Json& list, const std::string& pointer) {
  std::vector<DType> result;
  const std::vector<std::string> names = strings(list, pointer, false);
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i].empty()) continue;
    const auto known = parse_dtype(names[i]);
    const auto found = known ? known : dtype(names[i], fmt::format("{}/{}", pointer, i));
    if (found) result.push_back(*found);
  }
  return result;
}

void TargetFields::check_op_type(const std::string& op_type,
                                 const std::function<std::string()>& pointer) {
  if (op_type.empty() || !op_type.starts_with("aten.") || is_catalogued(op_type)) return;
  const std::vector<std::string_view> ops = catalogued_ops();
  add(pointer(), fmt::format("unknown op type '{}'{}", op_type,
                             spelling_hint(op_type, {ops.begin(), ops.end()})));
}

std::optional<bool> TargetFields::flag(const Json& object, const std::string& pointer,
                                       std::string_view key) {
  const Json* found = find_member(object, key);
  const auto flag = json_flag(found);
  if (found != nullptr && !flag) {
    add(fmt::format("{}/{}", pointer, key),
        fmt::format("expected a bool, found {}", json_type_name(*found)));
  }
  return flag;
}

}  // namespace npu
