// SPDX-License-Identifier: Apache-2.0
// Reads graphs in the format of METIS: undirected, every edge in the lines of both its ends, nodes
// counted from 1. What the header promises is checked against the lines. O(bytes + edges log
// degree).
#include "gnn/graph/metis_graph.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "gnn/graph/edge_rows.hpp"
#include "gnn/graph/line_reader.hpp"

namespace npu::gnn {
namespace {

struct Header {
  std::int64_t nodes = 0;
  std::int64_t edges = 0;
  std::int64_t node_weights = 0;  // a node
  bool has_edge_weights = false;
  bool has_sizes = false;
};

bool next_line(LineReader& lines) {
  while (lines.next()) {
    if (!lines.line().starts_with('%')) return true;
  }
  return false;
}

Header read_header(LineReader& lines, std::string_view bytes) {
  if (!next_line(lines)) lines.fail_file("the header line 'nodes edges [fmt [ncon]]' is missing");
  Header header;
  header.nodes = lines.integer("the number of nodes");
  header.edges = lines.integer("the number of edges");
  check_node_count(lines, header.nodes, bytes);
  if (header.edges < 0) lines.fail("a graph has no negative number of edges");
  const std::string format(lines.word());
  if (format.size() > 3 || format.find_first_not_of("01") != std::string::npos) {
    lines.fail("expected a format of up to three digits 0 and 1, found '" + format + "'");
  }
  const auto flag = [&](std::size_t from_right) {
    return format.size() >= from_right && format[format.size() - from_right] == '1';
  };
  header.has_edge_weights = flag(1);
  const bool has_node_weights = flag(2);
  header.has_sizes = flag(3);
  header.node_weights = has_node_weights ? 1 : 0;
  if (!lines.at_end_of_line()) {
    header.node_weights = lines.integer("the number of node weights");
    if (!has_node_weights) {
      lines.fail("the header gives a number of node weights, but format '" + format + "' has none");
    }
    if (header.node_weights < 1 || header.node_weights > 64) {
      lines.fail("the number of node weights is not in 1..64");
    }
  }
  if (!lines.at_end_of_line()) lines.fail("unexpected text after the header");
  return header;
}

std::int64_t read_weight(LineReader& lines, std::string_view what, std::int64_t least) {
  const std::int64_t value = lines.integer(what);
  if (value < least) {
    lines.fail(std::string(what) + " is " + std::to_string(value) + ", expected at least " +
               std::to_string(least));
  }
  return value;
}

// The line of one node.
void read_row(LineReader& lines, const Header& header, CsrGraph& graph) {
  if (header.has_sizes) read_weight(lines, "a node size", 0);
  for (std::int64_t c = 0; c < header.node_weights; ++c) {
    graph.node_weights.push_back(read_weight(lines, "a node weight", 0));
  }
  std::vector<std::pair<std::int32_t, std::int64_t>> row;
  while (!lines.at_end_of_line()) {
    const std::int64_t u = lines.integer("a neighbour");
    if (u < 1 || u > header.nodes) {
      lines.fail("neighbour " + std::to_string(u) + " is not in 1.." +
                 std::to_string(header.nodes));
    }
    row.emplace_back(static_cast<std::int32_t>(u - 1),
                     header.has_edge_weights ? read_weight(lines, "an edge weight", 1) : 1);
  }
  std::stable_sort(row.begin(), row.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  for (const auto& [u, w] : row) {
    graph.neighbors.push_back(u);
    if (header.has_edge_weights) graph.edge_weights.push_back(w);
  }
  graph.offsets.push_back(static_cast<std::int64_t>(graph.neighbors.size()));
}

}  // namespace

DataGraph parse_metis(std::string_view bytes, const std::string& file) {
  LineReader lines(bytes, file);
  const Header header = read_header(lines, bytes);
  DataGraph data;
  data.format = "metis";
  CsrGraph& graph = data.in_edges;
  graph.node_weight_count =
      static_cast<std::int32_t>(std::max<std::int64_t>(header.node_weights, 1));
  graph.neighbors.reserve(plausible_entries(header.edges, bytes) * 2);
  for (std::int64_t v = 0; v < header.nodes; ++v) {
    if (!next_line(lines)) {
      lines.fail("the header promises " + count_text(header.nodes, "node", "nodes") +
                 ", the file ends after " + std::to_string(v));
    }
    read_row(lines, header, graph);
  }
  while (next_line(lines)) {
    if (!lines.is_blank()) {
      lines.fail("the header promises " + count_text(header.nodes, "node", "nodes") +
                 ", here is a line more");
    }
  }
  if (graph.entry_count() != 2 * header.edges) {
    lines.fail_file("the header promises " + count_text(header.edges, "edge", "edges") +
                    ", the lines hold " + std::to_string(graph.entry_count()) +
                    " neighbours in place of " + std::to_string(2 * header.edges));
  }
  if (header.has_sizes) data.notes.push_back("the sizes of the nodes are left out");
  return data;
}

}  // namespace npu::gnn
