// SPDX-License-Identifier: Apache-2.0
// Reads graphs: MatrixMarket, METIS, SNAP edge lists and safetensors.
//
// Every reader collects the two ends of the directed edges in file order; they are then sorted into
// rows by target with a counting sort. O(bytes + nodes + edges); while reading, a graph takes 8
// bytes an edge (16 for edge lists, whose ids may have 64 bits), then 4 more for the rows. Values
// and weights of edges are checked and left out; the weights of a METIS file are kept.
#include "npu/graph/graph_reader.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>

#include "graph/line_reader.hpp"
#include "npu/support/error.hpp"
#include "npu/support/file_io.hpp"
#include "npu/tensor/npy.hpp"
#include "npu/tensor/safetensors.hpp"

namespace npu {
namespace {

constexpr std::int64_t kMaxNodes = std::numeric_limits<std::int32_t>::max() - 1;

std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

struct EdgeArrays {
  std::vector<std::int32_t> sources;
  std::vector<std::int32_t> targets;
  void add(std::int64_t source, std::int64_t target) {
    sources.push_back(static_cast<std::int32_t>(source));
    targets.push_back(static_cast<std::int32_t>(target));
  }
};

// Rows by target, sources ascending. Two stable counting sorts: by source, then by target.
CsrGraph rows_by_target(std::int64_t node_count, EdgeArrays edges) {
  CsrGraph graph;
  const std::size_t count = edges.sources.size();
  graph.offsets.assign(at(node_count) + 1, 0);
  for (const std::int32_t target : edges.targets) ++graph.offsets[at(target) + 1];
  std::partial_sum(graph.offsets.begin(), graph.offsets.end(), graph.offsets.begin());
  graph.neighbors.resize(count);
  std::vector<std::int64_t> next(graph.offsets.begin(), graph.offsets.end() - 1);
  for (std::size_t e = 0; e < count; ++e) {
    graph.neighbors[at(next[at(edges.targets[e])]++)] = edges.sources[e];
  }
  for (std::int64_t v = 0; v < node_count; ++v) {
    const auto begin = graph.neighbors.begin() + graph.offsets[at(v)];
    const auto end = graph.neighbors.begin() + graph.offsets[at(v) + 1];
    if (!std::is_sorted(begin, end)) std::sort(begin, end);
  }
  return graph;
}

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return result;
}

std::string count_text(std::int64_t count, const std::string& one, const std::string& many) {
  return std::to_string(count) + " " + (count == 1 ? one : many);
}

struct MatrixMarketHeader {
  bool coordinate = true;
  std::string field;     // real, double, integer, pattern
  std::string symmetry;  // general, symmetric, skew-symmetric
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t entries = 0;
};

// Leaves `lines` behind the size line.
MatrixMarketHeader read_matrix_market_header(LineReader& lines) {
  MatrixMarketHeader header;
  if (!lines.next() || lower(lines.word()) != "%%matrixmarket") {
    lines.fail_file("not a MatrixMarket file: it does not start with %%MatrixMarket");
  }
  const std::string object = lower(lines.word());
  if (object != "matrix") lines.fail("expected 'matrix', found '" + object + "'");
  const std::string layout = lower(lines.word());
  if (layout != "coordinate" && layout != "array") {
    lines.fail("expected 'coordinate' or 'array', found '" + layout + "'");
  }
  header.coordinate = layout == "coordinate";
  header.field = lower(lines.word());
  if (header.field != "real" && header.field != "double" && header.field != "integer" &&
      header.field != "pattern") {
    lines.fail("expected real, double, integer or pattern, found '" + header.field + "'");
  }
  header.symmetry = lower(lines.word());
  if (header.symmetry != "general" && header.symmetry != "symmetric" &&
      header.symmetry != "skew-symmetric") {
    lines.fail("expected general, symmetric or skew-symmetric, found '" + header.symmetry + "'");
  }
  if (!header.coordinate && header.field == "pattern") lines.fail("an array has no pattern field");
  for (;;) {
    if (!lines.next()) lines.fail("the size line is missing");
    if (!lines.is_blank() && !lines.line().starts_with('%')) break;
  }
  header.rows = lines.integer("the number of rows");
  header.columns = lines.integer("the number of columns");
  if (header.rows < 0 || header.columns < 0) lines.fail("a matrix has no negative size");
  if (header.coordinate) {
    header.entries = lines.integer("the number of entries");
    if (header.entries < 0) lines.fail("a matrix has no negative number of entries");
  }
  if (!lines.at_end_of_line()) lines.fail("unexpected text after the sizes");
  return header;
}

// Calls `visit(row, column, value)` with 0-based indices for every entry of the file.
template <typename Visit>
void read_coordinates(LineReader& lines, const MatrixMarketHeader& header, Visit visit) {
  std::int64_t entries = 0;
  while (lines.next()) {
    if (lines.is_blank() || lines.line().starts_with('%')) continue;
    if (entries == header.entries) {
      lines.fail("the header promises " + count_text(header.entries, "entry", "entries") +
                 ", here is one more");
    }
    const std::int64_t row = lines.integer("a row");
    if (row < 1 || row > header.rows) {
      lines.fail("row " + std::to_string(row) + " is not in 1.." + std::to_string(header.rows));
    }
    const std::int64_t column = lines.integer("a column");
    if (column < 1 || column > header.columns) {
      lines.fail("column " + std::to_string(column) + " is not in 1.." +
                 std::to_string(header.columns));
    }
    const double value = header.field == "pattern" ? 1 : lines.number_value("a value");
    if (!lines.at_end_of_line()) lines.fail("unexpected text after the entry");
    visit(row - 1, column - 1, value);
    ++entries;
  }
  if (entries != header.entries) {
    lines.fail("the header promises " + count_text(header.entries, "entry", "entries") +
               ", the file ends after " + std::to_string(entries));
  }
}

// Nodes without edges may outnumber the bytes of a file, but not by far: a few digits must not
// take all memory.
void check_node_count(LineReader& lines, std::int64_t nodes, std::string_view bytes) {
  if (nodes < 1) lines.fail("the graph has no nodes");
  if (nodes > kMaxNodes) {
    lines.fail(std::to_string(nodes) + " nodes are more than the " + std::to_string(kMaxNodes) +
               " that npu-tools takes");
  }
  if (at(nodes) > 64 * bytes.size() + (std::size_t{1} << 20)) {
    lines.fail("a file of " + std::to_string(bytes.size()) + " bytes promises " +
               std::to_string(nodes) + " nodes");
  }
}

// A header can promise more than the file holds; memory is taken for what is there.
std::size_t plausible_entries(std::int64_t promised, std::string_view bytes) {
  return std::min(at(promised), bytes.size() / 4 + 1);
}

DataGraph parse_matrix_market(std::string_view bytes, const std::string& file) {
  LineReader lines(bytes, file);
  const MatrixMarketHeader header = read_matrix_market_header(lines);
  if (!header.coordinate) lines.fail("a graph has to be in coordinate form");
  if (header.rows != header.columns) {
    lines.fail("the matrix of a graph is square, this one has " + std::to_string(header.rows) +
               " rows and " + std::to_string(header.columns) + " columns");
  }
  check_node_count(lines, header.rows, bytes);
  const bool symmetric = header.symmetry != "general";
  DataGraph data;
  data.format = "matrix-market";
  EdgeArrays edges;
  edges.sources.reserve(plausible_entries(header.entries, bytes) * (symmetric ? 2 : 1));
  edges.targets.reserve(edges.sources.capacity());
  read_coordinates(lines, header, [&](std::int64_t row, std::int64_t column, double) {
    edges.add(row, column);
    if (symmetric && row != column) edges.add(column, row);
  });
  if (header.field != "pattern") data.notes.push_back("the values of the edges are left out");
  data.in_edges = rows_by_target(header.rows, std::move(edges));
  return data;
}

DataGraph parse_metis(std::string_view bytes, const std::string& file) {
  LineReader lines(bytes, file);
  const auto next_line = [&] {
    while (lines.next()) {
      if (!lines.line().starts_with('%')) return true;
    }
    return false;
  };
  if (!next_line()) lines.fail_file("the header line 'nodes edges [fmt [ncon]]' is missing");
  const std::int64_t nodes = lines.integer("the number of nodes");
  const std::int64_t edges = lines.integer("the number of edges");
  check_node_count(lines, nodes, bytes);
  if (edges < 0) lines.fail("a graph has no negative number of edges");
  const std::string format(lines.word());
  if (format.size() > 3 || format.find_first_not_of("01") != std::string::npos) {
    lines.fail("expected a format of up to three digits 0 and 1, found '" + format + "'");
  }
  const auto flag = [&](std::size_t from_right) {
    return format.size() >= from_right && format[format.size() - from_right] == '1';
  };
  const bool has_edge_weights = flag(1);
  const bool has_node_weights = flag(2);
  const bool has_sizes = flag(3);
  std::int64_t weight_count = has_node_weights ? 1 : 0;
  if (!lines.at_end_of_line()) {
    weight_count = lines.integer("the number of node weights");
    if (!has_node_weights) {
      lines.fail("the header gives a number of node weights, but format '" + format + "' has none");
    }
    if (weight_count < 1 || weight_count > 64) {
      lines.fail("the number of node weights is not in 1..64");
    }
  }
  if (!lines.at_end_of_line()) lines.fail("unexpected text after the header");
  DataGraph data;
  data.format = "metis";
  CsrGraph& graph = data.in_edges;
  graph.node_weight_count = static_cast<std::int32_t>(std::max<std::int64_t>(weight_count, 1));
  graph.neighbors.reserve(plausible_entries(edges, bytes) * 2);
  std::vector<std::pair<std::int32_t, std::int64_t>> row;
  std::int64_t loops = 0;
  for (std::int64_t v = 0; v < nodes; ++v) {
    if (!next_line()) {
      lines.fail("the header promises " + count_text(nodes, "node", "nodes") +
                 ", the file ends after " + std::to_string(v));
    }
    const auto weight = [&](std::string_view what, std::int64_t least) {
      const std::int64_t value = lines.integer(what);
      if (value < least) {
        lines.fail(std::string(what) + " is " + std::to_string(value) + ", expected at least " +
                   std::to_string(least));
      }
      return value;
    };
    if (has_sizes) weight("a node size", 0);
    for (std::int64_t c = 0; c < weight_count; ++c) {
      graph.node_weights.push_back(weight("a node weight", 0));
    }
    row.clear();
    while (!lines.at_end_of_line()) {
      const std::int64_t u = lines.integer("a neighbour");
      if (u < 1 || u > nodes) {
        lines.fail("neighbour " + std::to_string(u) + " is not in 1.." + std::to_string(nodes));
      }
      if (u - 1 == v) ++loops;
      row.emplace_back(static_cast<std::int32_t>(u - 1),
                       has_edge_weights ? weight("an edge weight", 1) : 1);
    }
    std::stable_sort(row.begin(), row.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    for (const auto& [u, w] : row) {
      graph.neighbors.push_back(u);
      if (has_edge_weights) graph.edge_weights.push_back(w);
    }
    graph.offsets.push_back(static_cast<std::int64_t>(graph.neighbors.size()));
  }
  while (next_line()) {
    if (!lines.is_blank()) {
      lines.fail("the header promises " + count_text(nodes, "node", "nodes") +
                 ", here is a line more");
    }
  }
  if (graph.entry_count() != 2 * edges) {
    lines.fail_file("the header promises " + count_text(edges, "edge", "edges") +
                    ", the lines hold " + std::to_string(graph.entry_count()) +
                    " neighbours in place of " + std::to_string(2 * edges));
  }
  if (has_sizes) data.notes.push_back("the sizes of the nodes are left out");
  return data;
}

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
    std::vector<bool> seen(at(largest) + 1, false);
    for (const std::int64_t id : edges.sources) seen[at(id)] = true;
    for (const std::int64_t id : edges.targets) seen[at(id)] = true;
    for (std::int64_t id = 0; id <= largest; ++id) {
      if (seen[at(id)]) ids.push_back(id);
    }
    return ids;
  }
  ids.reserve(2 * at(count));
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

DataGraph parse_edge_list(std::string_view bytes, const std::string& file,
                          const GraphReadOptions& options, bool& says_undirected) {
  LineReader lines(bytes, file);
  lines.separate_by_commas();
  DataGraph data;
  data.format = "edge-list";
  IdArrays ends;
  bool first = true;
  bool has_more_columns = false;
  while (lines.next()) {
    if (is_comment(lines.line())) {
      if (lower(lines.line()).find("undirected graph") != std::string::npos) says_undirected = true;
      continue;
    }
    if (lines.is_blank()) continue;
    if (first) {
      first = false;
      LineReader head(lines.line(), file);
      head.separate_by_commas();
      head.next();
      if (!starts_like_a_number(head.word())) {
        data.notes.push_back("the first line names the columns");
        continue;
      }
    }
    const std::int64_t source = lines.integer("the id of a source");
    const std::int64_t target = lines.integer("the id of a target");
    if (options.node_count) {
      for (const std::int64_t id : {source, target}) {
        if (id < 0 || id >= *options.node_count) {
          lines.fail("id " + std::to_string(id) + " is not in 0.." +
                     std::to_string(*options.node_count - 1));
        }
      }
    }
    if (!lines.at_end_of_line()) {
      lines.number_value("a weight");
      has_more_columns = true;
    }
    ends.sources.push_back(source);
    ends.targets.push_back(target);
  }
  if (ends.sources.empty() && !options.node_count) lines.fail_file("the graph has no edges");
  if (has_more_columns) data.notes.push_back("the columns after the second are left out");
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
  const bool is_identity = ids.front() == 0 && at(ids.back()) + 1 == ids.size();
  const auto index_of = [&](std::int64_t id) {
    return is_identity ? id : std::lower_bound(ids.begin(), ids.end(), id) - ids.begin();
  };
  for (std::size_t e = 0; e < ends.sources.size(); ++e) {
    edges.add(index_of(ends.sources[e]), index_of(ends.targets[e]));
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

// Element `index` of an int32 or int64 tensor.
std::int64_t element(const Tensor& tensor, std::int64_t index) {
  return tensor.dtype() == DType::kInt64 ? tensor.as<std::int64_t>()[index]
                                         : tensor.as<std::int32_t>()[index];
}

using TensorSource = std::function<std::optional<Tensor>(std::string_view)>;

DataGraph graph_of_tensors(const TensorSource& find, const std::string& file,
                           const GraphReadOptions& options) {
  const auto fail = [&](const std::string& text) {
    throw Error(ErrorCode::kParse, text, {.file = file});
  };
  const auto find_integers = [&](std::initializer_list<std::string_view> names) {
    for (const std::string_view name : names) {
      auto tensor = find(name);
      if (!tensor) continue;
      if (tensor->dtype() != DType::kInt64 && tensor->dtype() != DType::kInt32) {
        fail("tensor '" + std::string(name) + "' is " + std::string(dtype_name(tensor->dtype())) +
             ", expected int32 or int64");
      }
      return tensor;
    }
    return std::optional<Tensor>();
  };
  DataGraph data;
  data.format = "safetensors";
  EdgeArrays edges;
  std::int64_t nodes = options.node_count.value_or(0);
  const auto check_id = [&](std::int64_t id) {
    if (id < 0 || id >= nodes) {
      fail("node " + std::to_string(id) + " is not in 0.." + std::to_string(nodes - 1));
    }
  };
  if (const auto offsets = find_integers({"indptr", "crow_indices", "rowptr", "row_ptr"})) {
    const auto targets = find_integers({"indices", "col_indices", "col", "col_idx"});
    if (!targets) fail("the tensor 'indices' is missing beside 'indptr'");
    if (offsets->shape().size() != 1 || targets->shape().size() != 1 ||
        offsets->element_count() < 2) {
      fail("expected 'indptr' [n + 1] and 'indices' [m], found " + shape_text(offsets->shape()) +
           " and " + shape_text(targets->shape()));
    }
    nodes = offsets->element_count() - 1;
    if (nodes > kMaxNodes) fail("the graph has too many nodes");
    if (element(*offsets, 0) != 0 || element(*offsets, nodes) != targets->element_count()) {
      fail("'indptr' goes from " + std::to_string(element(*offsets, 0)) + " to " +
           std::to_string(element(*offsets, nodes)) + ", expected 0 to " +
           std::to_string(targets->element_count()));
    }
    edges.sources.reserve(at(targets->element_count()));
    edges.targets.reserve(at(targets->element_count()));
    for (std::int64_t v = 0; v < nodes; ++v) {
      const std::int64_t begin = element(*offsets, v);
      const std::int64_t end = element(*offsets, v + 1);
      if (end < begin || end > targets->element_count()) {
        fail("'indptr' descends at node " + std::to_string(v));
      }
      for (std::int64_t e = begin; e < end; ++e) {
        const std::int64_t target = element(*targets, e);
        check_id(target);
        edges.add(v, target);
      }
    }
  } else if (const auto pairs = find_integers({"edge_index"})) {
    if (pairs->shape().size() != 2 || pairs->shape()[0] != 2) {
      fail("expected 'edge_index' [2, m], found " + shape_text(pairs->shape()));
    }
    const std::int64_t count = pairs->shape()[1];
    if (!options.node_count) {
      for (std::int64_t e = 0; e < 2 * count; ++e) {
        nodes = std::max(nodes, std::min(element(*pairs, e), kMaxNodes) + 1);
      }
    }
    if (nodes > kMaxNodes) fail("the graph has too many nodes");
    for (std::int64_t e = 0; e < count; ++e) {
      check_id(element(*pairs, e));
      check_id(element(*pairs, count + e));
      edges.add(element(*pairs, e), element(*pairs, count + e));
    }
  } else {
    fail("found neither the tensors 'indptr' and 'indices' nor 'edge_index'");
  }
  if (nodes < 1) fail("the graph has no nodes");
  data.in_edges = rows_by_target(nodes, std::move(edges));
  return data;
}

DataGraph read_safetensors_graph(const std::string& path, const GraphReadOptions& options) {
  const SafetensorsFile file(path);
  return graph_of_tensors(
      [&](std::string_view name) -> std::optional<Tensor> {
        const SafetensorsEntry* entry = file.find(name);
        if (entry == nullptr) return std::nullopt;
        return file.tensor(*entry);
      },
      path, options);
}

GraphFormat detect(std::string_view bytes, const std::string& file) {
  if (lower(bytes.substr(0, 14)) == "%%matrixmarket") return GraphFormat::kMatrixMarket;
  if (file.ends_with(".mtx")) return GraphFormat::kMatrixMarket;
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
    case GraphFormat::kMetis:
      data = parse_metis(bytes, file);
      break;
    case GraphFormat::kSafetensors: {
      std::size_t data_begin = 0;
      const auto entries = parse_safetensors(bytes, file, data_begin);
      data = graph_of_tensors(
          [&](std::string_view name) -> std::optional<Tensor> {
            for (const SafetensorsEntry& entry : entries) {
              if (entry.name != name) continue;
              Tensor tensor(entry.dtype, entry.shape);
              const std::string_view content =
                  bytes.substr(data_begin + entry.begin, entry.end - entry.begin);
              std::copy(content.begin(), content.end(),
                        reinterpret_cast<char*>(tensor.mutable_data()));
              return tensor;
            }
            return std::nullopt;
          },
          file, options);
      break;
    }
    default: {
      bool says_undirected = false;
      data = parse_edge_list(bytes, file, options, says_undirected);
      undirected = undirected || says_undirected;
    }
  }
  if (undirected && data.in_edges.edge_weights.empty()) add_reverses(data);
  return data;
}

DataGraph read_graph_file(const std::string& path, const GraphReadOptions& options) {
  if (options.format == GraphFormat::kSafetensors ||
      (options.format == GraphFormat::kAuto && path.ends_with(".safetensors"))) {
    DataGraph data = read_safetensors_graph(path, options);
    if (options.undirected) add_reverses(data);
    return data;
  }
  if (path == "-") return parse_graph(read_stream(stdin, "<stdin>"), "<stdin>", options);
  const MappedFile file(path);
  return parse_graph({reinterpret_cast<const char*>(file.data()), file.size()}, path, options);
}

std::string SymmetrizedGraph::note() const {
  std::string dropped;
  if (loops > 0) dropped = count_text(loops, "loop", "loops");
  if (duplicates > 0) {
    dropped += (dropped.empty() ? "" : " and ") +
               count_text(duplicates, "parallel edge", "parallel edges");
  }
  std::string text;
  if (!dropped.empty()) text = dropped + " dropped";
  if (added_reverses > 0) {
    text += (text.empty() ? "" : ", ") +
            count_text(added_reverses, "reverse edge", "reverse edges") + " added";
  }
  return text;
}

SymmetrizedGraph symmetrize(const CsrGraph& in_edges) {
  SymmetrizedGraph result;
  const std::int32_t nodes = in_edges.node_count();
  // The rows by source; sources ascend within a row since targets are walked in order.
  CsrGraph out;
  out.offsets.assign(at(nodes) + 1, 0);
  for (const std::int32_t u : in_edges.neighbors) ++out.offsets[at(u) + 1];
  std::partial_sum(out.offsets.begin(), out.offsets.end(), out.offsets.begin());
  out.neighbors.resize(in_edges.neighbors.size());
  const bool weighted = !in_edges.edge_weights.empty();
  if (weighted) out.edge_weights.resize(in_edges.neighbors.size());
  {
    std::vector<std::int64_t> next(out.offsets.begin(), out.offsets.end() - 1);
    for (std::int32_t v = 0; v < nodes; ++v) {
      for (std::int64_t e = in_edges.offsets[at(v)]; e < in_edges.offsets[at(v) + 1]; ++e) {
        const std::int64_t slot = next[at(in_edges.neighbors[at(e)])]++;
        out.neighbors[at(slot)] = v;
        if (weighted) out.edge_weights[at(slot)] = in_edges.edge_weights[at(e)];
      }
    }
  }
  CsrGraph& graph = result.graph;
  graph.node_weights = in_edges.node_weights;
  graph.node_weight_count = in_edges.node_weight_count;
  graph.offsets.assign(1, 0);
  graph.offsets.reserve(at(nodes) + 1);
  graph.neighbors.reserve(in_edges.neighbors.size());
  // Merges both rows of v. A pair that has both directions counts once; its weight is the larger
  // one, which both ends see alike.
  for (std::int32_t v = 0; v < nodes; ++v) {
    std::int64_t a = in_edges.offsets[at(v)];
    const std::int64_t a_end = in_edges.offsets[at(v) + 1];
    std::int64_t b = out.offsets[at(v)];
    const std::int64_t b_end = out.offsets[at(v) + 1];
    while (a < a_end || b < b_end) {
      const std::int32_t in = a < a_end ? in_edges.neighbors[at(a)] : INT32_MAX;
      const std::int32_t to = b < b_end ? out.neighbors[at(b)] : INT32_MAX;
      const std::int32_t u = std::min(in, to);
      std::int64_t ins = 0;
      std::int64_t outs = 0;
      std::int64_t weight = 0;
      for (; a < a_end && in_edges.neighbors[at(a)] == u; ++a, ++ins) {
        if (weighted) weight = std::max(weight, in_edges.edge_weights[at(a)]);
      }
      for (; b < b_end && out.neighbors[at(b)] == u; ++b, ++outs) {
        if (weighted) weight = std::max(weight, out.edge_weights[at(b)]);
      }
      if (u == v) {
        result.loops += ins;
        continue;
      }
      if (ins > 1) result.duplicates += ins - 1;
      if (ins == 0) ++result.added_reverses;
      graph.neighbors.push_back(u);
      if (weighted) graph.edge_weights.push_back(weight);
    }
    graph.offsets.push_back(static_cast<std::int64_t>(graph.neighbors.size()));
  }
  return result;
}

Tensor parse_matrix_market_features(std::string_view bytes, const std::string& file) {
  LineReader lines(bytes, file);
  const MatrixMarketHeader header = read_matrix_market_header(lines);
  if (header.symmetry != "general") lines.fail("features are a general matrix");
  if (header.rows < 1 || header.columns < 1) lines.fail("the features are empty");
  // At most what 16 GiB hold; a header alone must not take more memory than that.
  if (header.rows > (std::int64_t{1} << 32) / header.columns) {
    lines.fail("the features are too large for a dense matrix");
  }
  if (!header.coordinate &&
      header.rows * header.columns > static_cast<std::int64_t>(bytes.size())) {
    lines.fail("the file is too short for its sizes");
  }
  Tensor features(DType::kFloat32, {header.rows, header.columns});
  float* values = features.as_mutable<float>();
  if (header.coordinate) {
    read_coordinates(lines, header, [&](std::int64_t row, std::int64_t column, double value) {
      values[row * header.columns + column] += static_cast<float>(value);
    });
    return features;
  }
  // Arrays are stored column by column.
  std::int64_t count = 0;
  const std::int64_t expected = header.rows * header.columns;
  while (lines.next()) {
    if (lines.is_blank() || lines.line().starts_with('%')) continue;
    if (count == expected) lines.fail("there are more values than rows times columns");
    values[(count % header.rows) * header.columns + count / header.rows] =
        static_cast<float>(lines.number_value("a value"));
    if (!lines.at_end_of_line()) lines.fail("unexpected text after the value");
    ++count;
  }
  if (count != expected) {
    lines.fail("expected " + std::to_string(expected) + " values, the file ends after " +
               std::to_string(count));
  }
  return features;
}

Tensor read_features(const std::string& path) {
  Tensor features;
  if (path.ends_with(".npy")) {
    features = read_npy(path);
  } else if (path.ends_with(".safetensors")) {
    const SafetensorsFile file(path);
    const SafetensorsEntry* entry = file.find("x");
    if (entry == nullptr) entry = file.find("features");
    if (entry == nullptr && file.entries().size() == 1) entry = &file.entries().front();
    if (entry == nullptr) {
      throw Error(ErrorCode::kParse, "expected the features as tensor 'x' or 'features'",
                  {.file = path});
    }
    features = file.tensor(*entry);
  } else {
    const MappedFile file(path);
    const std::string_view bytes(reinterpret_cast<const char*>(file.data()), file.size());
    if (detect(bytes, path) != GraphFormat::kMatrixMarket) {
      throw Error(ErrorCode::kParse, "expected features in .npy, .safetensors or MatrixMarket form",
                  {.file = path});
    }
    return parse_matrix_market_features(bytes, path);
  }
  if (features.shape().size() != 2 || features.dtype() != DType::kFloat32) {
    throw Error(ErrorCode::kParse,
                "the features are " + std::string(dtype_name(features.dtype())) + " " +
                    shape_text(features.shape()) + ", expected float32 [nodes, features]",
                {.file = path});
  }
  return features;
}

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

}  // namespace npu
