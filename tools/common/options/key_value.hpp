// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace npu::cli {

/// An option's value that says something of a device: "DEVICE=BYTES", "NAME=BACKEND".
struct KeyValue {
  std::string key;
  std::string value;
};

/// `text`, cut at its first '='; neither side may be empty. Throws Error kUsage
/// "--memory 'cpu': expected DEVICE=VALUE", with the option and the form of its values.
KeyValue split_key_value(const std::string& text, const std::string& option,
                         const std::string& form);

/// Integers with commas between. Throws Error kUsage.
std::vector<std::int64_t> parse_integers(const std::string& text, const std::string& option);

}  // namespace npu::cli
