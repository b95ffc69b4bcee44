// SPDX-License-Identifier: Apache-2.0
// The part that each node belongs to: one number per line, as METIS writes it. O(bytes).
#include "gnn/graph/partition_file.hpp"

#include <array>
#include <charconv>

#include "gnn/graph/edge_rows.hpp"
#include "gnn/graph/line_reader.hpp"

namespace npu::gnn {

std::vector<std::int32_t> parse_partition(std::string_view text, const std::string& file,
                                          std::int64_t node_count) {
  LineReader lines(text, file);
  std::vector<std::int32_t> part_of;
  while (lines.next()) {
    if (lines.is_blank()) continue;
    const std::int64_t part = lines.integer("a part number");
    if (part < 0 || part > kMaxNodes) lines.fail("part " + std::to_string(part) + " is no part");
    if (!lines.at_end_of_line()) lines.fail("unexpected text after the part");
    part_of.push_back(static_cast<std::int32_t>(part));
  }
  if (static_cast<std::int64_t>(part_of.size()) != node_count) {
    lines.fail_file("the partition has " + std::to_string(part_of.size()) +
                    " lines, the graph has " + count_text(node_count, "node", "nodes"));
  }
  return part_of;
}

std::string partition_text(const std::vector<std::int32_t>& part_of) {
  std::string text;
  text.reserve(part_of.size() * 3);
  std::array<char, 16> digits{};
  for (const std::int32_t part : part_of) {
    const auto result = std::to_chars(digits.data(), digits.data() + digits.size(), part);
    text.append(digits.data(), result.ptr);
    text += '\n';
  }
  return text;
}

}  // namespace npu::gnn
