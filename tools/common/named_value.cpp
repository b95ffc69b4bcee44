// SPDX-License-Identifier: Apache-2.0
// Parses option values of the form NAME=VALUE.
#include "named_value.hpp"

namespace npu::cli {

NamedValue split_named_value(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos) return {.name = std::nullopt, .value = text};
  return {.name = text.substr(0, equals), .value = text.substr(equals + 1)};
}

InputFile parse_input_file(const std::string& text) {
  if (!text.ends_with(".npy") && !text.ends_with(".pb"))
    return {.input = std::nullopt, .path = text};
  NamedValue named = split_named_value(text);
  return {.input = std::move(named.name), .path = std::move(named.value)};
}

}  // namespace npu::cli
