// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace npu::gnn {

/// Parses a partition as METIS writes it: one part number per line, `node_count` lines.
std::vector<std::int32_t> parse_partition(std::string_view text, const std::string& file,
                                          std::int64_t node_count);
std::string partition_text(const std::vector<std::int32_t>& part_of);

}  // namespace npu::gnn
