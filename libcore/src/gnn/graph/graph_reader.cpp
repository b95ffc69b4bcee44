// SPDX-License-Identifier: Apache-2.0
// Reads graphs: detects the format and calls the reader of that format.
//
// Every reader collects the two ends of the directed edges in file order, which then become rows by
// target (edge_rows.cpp). O(bytes + nodes + edges); while reading, a graph takes 8 bytes per edge
// (16 for edge lists, whose ids may have 64 bits), then 4 more for the rows. Values and weights of
// edges are checked but not stored, except for the weights of a METIS file.
#include "gnn/graph/graph_reader.hpp"

#include <algorithm>
#include <utility>

#include "gnn/graph/binary_graph.hpp"
#include "gnn/graph/edge_list.hpp"
#include "gnn/graph/edge_rows.hpp"
#include "gnn/graph/matrix_market.hpp"
#include "gnn/graph/metis_graph.hpp"
#include "gnn/graph/symmetrize.hpp"
#include "gnn/graph/tensor_graph.hpp"
#include "npu/support/file_io.hpp"
#include "npu/support/ids.hpp"

namespace npu::gnn {
namespace {

GraphFormat detect(std::string_view bytes, const std::string& file) {
  if (is_binary_graph(bytes)) return GraphFormat::kBinary;
  if (is_matrix_market(bytes, file)) return GraphFormat::kMatrixMarket;
  if (file.ends_with(".graph") || file.ends_with(".metis")) return GraphFormat::kMetis;
  if (file.ends_with(".safetensors")) return GraphFormat::kSafetensors;
  return GraphFormat::kEdgeList;
}

void add_reverses(DataGraph& data) {
  SymmetrizedGraph simple = symmetrize(data.in_edges);
  if (simple.added_reverses == 0) return;
  // Loops and parallel edges stay; only what has no reverse gets one.
  EdgeArrays edges;
  const CsrGraph& graph = data.in_edges;
  for (std::int32_t v = 0; v < graph.node_count(); ++v) {
    std::int32_t previous = -1;
    for (const std::int32_t u : graph.row(v)) {
      edges.add(u, v);
      const auto reverse = graph.row(u);
      if (u != previous && !std::binary_search(reverse.begin(), reverse.end(), v)) edges.add(v, u);
      previous = u;
    }
  }
  const std::int64_t nodes = graph.node_count();
  data.in_edges = rows_by_target(nodes, std::move(edges));
  data.notes.push_back(count_text(simple.added_reverses, "reverse edge", "reverse edges") +
                       " added");
}

/// Every node gets exactly one loop.
void keep_one_loop(DataGraph& data) {
  CsrGraph& graph = data.in_edges;
  const bool is_weighted = !graph.edge_weights.empty();
  CsrGraph result;
  result.node_weights = std::move(graph.node_weights);
  result.node_weight_count = graph.node_weight_count;
  result.neighbors.reserve(index_of(graph.entry_count() + graph.node_count()));
  std::int64_t added = 0;
  std::int64_t dropped = 0;
  for (std::int32_t v = 0; v < graph.node_count(); ++v) {
    const auto row = graph.row(v);
    const auto loops = std::equal_range(row.begin(), row.end(), v);
    const std::int64_t count = loops.second - loops.first;
    const auto add = [&](auto begin, auto end) {
      result.neighbors.insert(result.neighbors.end(), begin, end);
      if (!is_weighted) return;
      const auto weights = graph.edge_weights.begin() + graph.offsets[index_of(v)];
      result.edge_weights.insert(result.edge_weights.end(), weights + (begin - row.begin()),
                                 weights + (end - row.begin()));
    };
    add(row.begin(), loops.first);
    if (count > 0) {
      add(loops.first, loops.first + 1);
    } else {
      result.neighbors.push_back(v);
      if (is_weighted) result.edge_weights.push_back(1);
    }
    add(loops.second, row.end());
    result.offsets.push_back(static_cast<std::int64_t>(result.neighbors.size()));
    added += count == 0 ? 1 : 0;
    dropped += std::max<std::int64_t>(count - 1, 0);
  }
  if (added > 0) data.notes.push_back(count_text(added, "loop", "loops") + " added");
  if (dropped > 0) data.notes.push_back(count_text(dropped, "loop", "loops") + " dropped");
  graph = std::move(result);
}

std::string_view view_of(const MappedFile& file) {
  return {reinterpret_cast<const char*>(file.data()), file.size()};
}

// Whether a file is to be read as safetensors; a graph in binary form may have any name.
bool is_tensor_file(const std::string& path, const GraphReadOptions& options) {
  if (options.format != GraphFormat::kAuto) return options.format == GraphFormat::kSafetensors;
  if (!path.ends_with(".safetensors")) return false;
  return !is_regular_file(path) || !is_binary_graph(view_of(MappedFile(path)));
}

}  // namespace

DataGraph parse_graph(std::string_view bytes, const std::string& file,
                      const GraphReadOptions& options) {
  const GraphFormat format =
      options.format == GraphFormat::kAuto ? detect(bytes, file) : options.format;
  bool undirected = options.undirected;
  DataGraph data;
  switch (format) {
    case GraphFormat::kMatrixMarket:
      data = parse_matrix_market(bytes, file);
      break;
    case GraphFormat::kBinary:
      data = parse_binary_graph(bytes, file);
      break;
    case GraphFormat::kMetis:
      data = parse_metis(bytes, file);
      break;
    case GraphFormat::kSafetensors:
      data = parse_tensor_graph(bytes, file, options);
      break;
    default: {
      bool says_undirected = false;
      data = parse_edge_list(bytes, file, options, says_undirected);
      undirected = undirected || says_undirected;
    }
  }
  if (undirected && data.in_edges.edge_weights.empty()) add_reverses(data);
  if (options.one_loop) keep_one_loop(data);
  return data;
}

DataGraph read_graph_file(const std::string& path, const GraphReadOptions& options) {
  if (is_tensor_file(path, options)) {
    DataGraph data = read_tensor_graph(path, options);
    if (options.undirected) add_reverses(data);
    if (options.one_loop) keep_one_loop(data);
    return data;
  }
  if (path == "-") return parse_graph(read_stream(stdin, "<stdin>"), "<stdin>", options);
  return parse_graph(view_of(MappedFile(path)), path, options);
}

}  // namespace npu::gnn
