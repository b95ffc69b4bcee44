// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace npu::cli {

/// An option's value for one device: "DEVICE=BYTES", "NAME=BACKEND".
struct KeyValue {
  std::string key;
  std::string value;
};

/// `text`, split at its first '='; neither side may be empty. Throws Error kUsage
/// "--memory 'cpu': expected DEVICE=VALUE", with the option and the form of its values.
KeyValue split_key_value(const std::string& text, const std::string& option,
                         const std::string& form);

/// Integers separated by commas. Throws Error kUsage.
std::vector<std::int64_t> parse_integers(const std::string& text, const std::string& option);

}  // namespace npu::cli
