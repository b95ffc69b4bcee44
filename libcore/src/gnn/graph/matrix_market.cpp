// SPDX-License-Identifier: Apache-2.0
// Reads MatrixMarket files: graphs in coordinate form, features in coordinate or array form. The
// whole file is checked, and every fault is reported with its line. O(bytes).
#include "gnn/graph/matrix_market.hpp"

#include <utility>

#include "gnn/graph/edge_rows.hpp"
#include "gnn/graph/features.hpp"
#include "gnn/graph/line_reader.hpp"

namespace npu::gnn {
namespace {

struct MatrixMarketHeader {
  bool coordinate = true;
  std::string field;     // real, double, integer, pattern
  std::string symmetry;  // general, symmetric, skew-symmetric
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t entries = 0;
};

// Leaves `lines` after the size line.
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

// Arrays are stored column by column.
void read_array(LineReader& lines, const MatrixMarketHeader& header, float* values) {
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
}

}  // namespace

bool is_matrix_market(std::string_view bytes, const std::string& file) {
  return lower(bytes.substr(0, 14)) == "%%matrixmarket" || file.ends_with(".mtx");
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
  } else {
    read_array(lines, header, values);
  }
  return features;
}

}  // namespace npu::gnn
