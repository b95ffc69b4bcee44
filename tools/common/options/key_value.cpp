// SPDX-License-Identifier: Apache-2.0
// Parses option values such as DEVICE=BYTES and lists of integers for the library's options.
#include "options/key_value.hpp"

#include <utility>

#include "named_value.hpp"
#include "npu/support/error.hpp"
#include "support/text.hpp"

namespace npu::cli {

KeyValue split_key_value(const std::string& text, const std::string& option,
                         const std::string& form) {
  NamedValue named = split_named_value(text);
  if (!named.name || named.name->empty() || named.value.empty()) {
    throw Error(ErrorCode::kUsage, option + " '" + text + "': expected " + form);
  }
  return {std::move(*named.name), std::move(named.value)};
}

std::vector<std::int64_t> parse_integers(const std::string& text, const std::string& option) {
  if (auto numbers = integer_list(text)) return *std::move(numbers);
  throw Error(ErrorCode::kUsage, option + " '" + text + "': expected numbers with commas between");
}

}  // namespace npu::cli
