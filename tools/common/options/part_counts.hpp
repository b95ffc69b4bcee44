// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace npu::cli {

/// The whole text is an integer.
bool parse_integer(std::string_view text, std::int64_t& value);

/// What stands between commas.
std::vector<std::string_view> comma_parts(std::string_view text);

/// Numbers of parts: "8..16", "4,8,16" or both. Returns what is wrong; empty if nothing is.
std::string parse_part_counts(const std::string& text, std::vector<std::int32_t>& counts);

}  // namespace npu::cli
