// SPDX-License-Identifier: Apache-2.0
// Reads edge lists. Ids may be any 64-bit integers: those that occur are numbered in ascending
// order, through a table where they are dense, else by sorting. O(bytes), and O(edges log edges)
// for the sorting; 16 bytes per edge while reading.
#include "gnn/graph/edge_list.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "gnn/graph/edge_rows.hpp"
#include "gnn/graph/line_reader.hpp"
#include "npu/support/ids.hpp"

namespace npu::gnn {
namespace {

struct IdArrays {
  std::vector<std::int64_t> sources;
  std::vector<std::int64_t> targets;
};

// Numbers the ids that occur in ascending order. Dense ids through a table, others by sorting.
std::vector<std::int64_t> distinct_ids(const IdArrays& edges) {
  std::int64_t least = 0;
  std::int64_t largest = -1;
  for (const auto* ends : {&edges.sources, &edges.targets}) {
    for (const std::int64_t id : *ends) {
      least = std::min(least, id);
      largest = std::max(largest, id);
    }
  }
  std::vector<std::int64_t> ids;
  const auto count = static_cast<std::int64_t>(edges.sources.size());
  if (least >= 0 && largest / 16 <= count + 1024) {
    std::vector<bool> seen(index_of(largest) + 1, false);
    for (const std::int64_t id : edges.sources) seen[index_of(id)] = true;
    for (const std::int64_t id : edges.targets) seen[index_of(id)] = true;
    for (std::int64_t id = 0; id <= largest; ++id) {
      if (seen[index_of(id)]) ids.push_back(id);
    }
    return ids;
  }
  ids.reserve(2 * index_of(count));
  ids.insert(ids.end(), edges.sources.begin(), edges.sources.end());
  ids.insert(ids.end(), edges.targets.begin(), edges.targets.end());
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids;
}

bool is_comment(std::string_view line) {
  return line.starts_with('#') || line.starts_with('%') || line.starts_with("//");
}

bool starts_like_a_number(std::string_view word) {
  if (word.starts_with('-') || word.starts_with('+')) word.remove_prefix(1);
  return !word.empty() && word.front() >= '0' && word.front() <= '9';
}

// Checks that the ids are nodes 0 .. count - 1.
void check_ids(LineReader& lines, std::int64_t source, std::int64_t target, std::int64_t count) {
  for (const std::int64_t id : {source, target}) {
    if (id >= 0 && id < count) continue;
    lines.fail("id " + std::to_string(id) + " is not in 0.." + std::to_string(count - 1));
  }
}

// Whether the line is a head that names the columns.
bool is_head(std::string_view line, const std::string& file) {
  LineReader head(line, file);
  head.separate_by_commas();
  head.next();
  return !starts_like_a_number(head.word());
}

// The ends of all edges, with the ids of the file.
IdArrays read_ids(LineReader& lines, const std::string& file, const GraphReadOptions& options,
                  DataGraph& data, bool& says_undirected) {
  IdArrays ends;
  bool first = true;
  bool has_more_columns = false;
  while (lines.next()) {
    if (is_comment(lines.line())) {
      if (lower(lines.line()).find("undirected graph") != std::string::npos) says_undirected = true;
      continue;
    }
    if (lines.is_blank()) continue;
    if (std::exchange(first, false) && is_head(lines.line(), file)) {
      data.notes.push_back("the first line names the columns");
      continue;
    }
    const std::int64_t source = lines.integer("the id of a source");
    const std::int64_t target = lines.integer("the id of a target");
    if (options.node_count) check_ids(lines, source, target, *options.node_count);
    if (!lines.at_end_of_line()) {
      lines.number_value("a weight");
      has_more_columns = true;
    }
    ends.sources.push_back(source);
    ends.targets.push_back(target);
  }
  if (ends.sources.empty() && !options.node_count) lines.fail_file("the graph has no edges");
  if (has_more_columns) data.notes.push_back("the columns after the second are left out");
  return ends;
}

}  // namespace

DataGraph parse_edge_list(std::string_view bytes, const std::string& file,
                          const GraphReadOptions& options, bool& says_undirected) {
  LineReader lines(bytes, file);
  lines.separate_by_commas();
  DataGraph data;
  data.format = "edge-list";
  IdArrays ends = read_ids(lines, file, options, data, says_undirected);
  EdgeArrays edges;
  edges.sources.reserve(ends.sources.size());
  edges.targets.reserve(ends.sources.size());
  if (options.node_count) {
    check_node_count(lines, *options.node_count, bytes);
    for (std::size_t e = 0; e < ends.sources.size(); ++e) {
      edges.add(ends.sources[e], ends.targets[e]);
    }
    data.in_edges = rows_by_target(*options.node_count, std::move(edges));
    return data;
  }
  std::vector<std::int64_t> ids = distinct_ids(ends);
  check_node_count(lines, static_cast<std::int64_t>(ids.size()), bytes);
  const bool is_identity = ids.front() == 0 && index_of(ids.back()) + 1 == ids.size();
  const auto number_of_id = [&](std::int64_t id) {
    return is_identity ? id : std::lower_bound(ids.begin(), ids.end(), id) - ids.begin();
  };
  for (std::size_t e = 0; e < ends.sources.size(); ++e) {
    edges.add(number_of_id(ends.sources[e]), number_of_id(ends.targets[e]));
  }
  ends = {};
  data.in_edges = rows_by_target(static_cast<std::int64_t>(ids.size()), std::move(edges));
  if (!is_identity) {
    data.notes.push_back("ids " + std::to_string(ids.front()) + ".." + std::to_string(ids.back()) +
                         " are numbered 0.." + std::to_string(ids.size() - 1) +
                         " in ascending order");
    data.ids = std::move(ids);
  }
  return data;
}

}  // namespace npu::gnn
