// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "csr/csr_graph.hpp"
#include "gnn/graph/line_reader.hpp"

namespace npu::gnn {

inline constexpr std::int64_t kMaxNodes = std::numeric_limits<std::int32_t>::max() - 1;

/// The two ends of the directed edges of a file, in its order.
struct EdgeArrays {
  std::vector<std::int32_t> sources;
  std::vector<std::int32_t> targets;
  void add(std::int64_t source, std::int64_t target) {
    sources.push_back(static_cast<std::int32_t>(source));
    targets.push_back(static_cast<std::int32_t>(target));
  }
};

/// Rows by target, sources ascending; every end is below `node_count`. O(nodes + edges log degree).
CsrGraph rows_by_target(std::int64_t node_count, EdgeArrays edges);

/// Refuses no nodes, more than are possible, and many more than `bytes` can mean: a few digits must
/// not take all memory.
void check_node_count(LineReader& lines, std::int64_t nodes, std::string_view bytes);

/// As many entries as a header promises, but no more than the file can hold: what to reserve.
std::size_t plausible_entries(std::int64_t promised, std::string_view bytes);

/// ASCII letters in lower case.
std::string lower(std::string_view text);

/// "1 edge", "2 edges".
std::string count_text(std::int64_t count, const std::string& one, const std::string& many);

}  // namespace npu::gnn
