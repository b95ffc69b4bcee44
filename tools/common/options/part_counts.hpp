// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace npu::cli {

/// Parses a text that is an integer as a whole; one of more than 64 bits is the nearest that has
/// them.
bool parse_integer(std::string_view text, std::int64_t& value);

/// The texts between commas.
std::vector<std::string_view> comma_parts(std::string_view text);

/// Parses numbers of parts: "8..16", "4,8,16" or both. Returns what is wrong; empty if nothing is.
std::string parse_part_counts(const std::string& text, std::vector<std::int32_t>& counts);

}  // namespace npu::cli
