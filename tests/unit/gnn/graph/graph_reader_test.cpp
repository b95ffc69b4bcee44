// SPDX-License-Identifier: Apache-2.0
// Readers of graphs and features: what they accept, what they refuse and with which place.
#include "gnn/graph/graph_reader.hpp"

#include <cstring>

#include "catch.hpp"
#include "gnn/graph/features.hpp"
#include "gnn/graph/partition_file.hpp"
#include "gnn/graph/symmetrize.hpp"
#include "npu/support/error.hpp"
#include "npu/support/file_io.hpp"
#include "npu/tensor/safetensors.hpp"
#include "support/temporary_folder.hpp"
#include "tensor/npy.hpp"

using namespace npu;
using namespace npu::gnn;
using Rows = std::vector<std::vector<std::int32_t>>;

namespace {

Rows rows_of(const CsrGraph& graph) {
  Rows rows;
  for (std::int32_t v = 0; v < graph.node_count(); ++v) {
    rows.emplace_back(graph.row(v).begin(), graph.row(v).end());
  }
  return rows;
}

DataGraph parse(std::string_view text, const std::string& file, GraphReadOptions options = {}) {
  return parse_graph(text, file, options);
}

std::string fault(std::string_view text, const std::string& file, GraphReadOptions options = {}) {
  try {
    parse_graph(text, file, options);
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kParse);
    return error.what();
  }
  return "no error";
}

Tensor integers(const std::vector<std::int64_t>& values, Shape shape) {
  Tensor tensor(DType::kInt64, std::move(shape));
  std::memcpy(tensor.mutable_data(), values.data(), tensor.bytes());
  return tensor;
}

}  // namespace

TEST_CASE("MatrixMarket graphs", "[graph][reader]") {
  const DataGraph general = parse(
      "%%MatrixMarket matrix coordinate real general\n% comment\n\n3 3 4\n1 2 0.5\n3 2 1e3\n2 2 "
      "-1\n1 2 4\n",
      "a.mtx");
  // Row i, column j is the edge i -> j; parallel edges and loops stay.
  CHECK(rows_of(general.in_edges) == Rows{{}, {0, 0, 1, 2}, {}});
  CHECK(general.notes == std::vector<std::string>{"the values of the edges are left out"});
  const DataGraph symmetric =
      parse("%%MatrixMarket MATRIX Coordinate pattern Symmetric\r\n3 3 2\r\n2 1\r\n3 3\r\n", "any");
  CHECK(rows_of(symmetric.in_edges) == Rows{{1}, {0}, {2}});
  CHECK(symmetric.format == "matrix-market");

  const std::string head = "%%MatrixMarket matrix coordinate pattern general\n";
  CHECK(fault("", "a.mtx") ==
        "a.mtx: error: not a MatrixMarket file: it does not start with %%MatrixMarket");
  CHECK(fault(head + "3 4 0\n", "a.mtx") ==
        "a.mtx:2:6: error: the matrix of a graph is square, this one has 3 rows and 4 columns");
  CHECK(fault(head + "3 3 2\n1 2\n", "a.mtx") ==
        "a.mtx:3:4: error: the header promises 2 entries, the file ends after 1");
  CHECK(fault(head + "3 3 1\n1 2\n2 3\n", "a.mtx") ==
        "a.mtx:4:1: error: the header promises 1 entry, here is one more");
  CHECK(fault(head + "3 3 1\n1 4\n", "a.mtx") == "a.mtx:3:4: error: column 4 is not in 1..3");
  CHECK(fault(head + "3 3 1\n0 1\n", "a.mtx") == "a.mtx:3:2: error: row 0 is not in 1..3");
  CHECK(fault(head + "3 3 1\n1 x\n", "a.mtx") == "a.mtx:3:3: error: expected a column, found 'x'");
  CHECK(fault(head + "3 3 1\n1\n", "a.mtx") ==
        "a.mtx:3:2: error: expected a column, found the end of the line");
  CHECK(fault(head + "0 0 0\n", "a.mtx") == "a.mtx:2:6: error: the graph has no nodes");
  CHECK(fault(head + "99999999999 99999999999 0\n", "a.mtx").find("are more than the") !=
        std::string::npos);
  CHECK(fault("%%MatrixMarket matrix array real general\n2 2\n", "a.mtx") ==
        "a.mtx:2:4: error: a graph has to be in coordinate form");
  CHECK(fault("%%MatrixMarket matrix coordinate complex general\n", "a.mtx") ==
        "a.mtx:1:41: error: expected real, double, integer or pattern, found 'complex'");
  CHECK(fault("%%MatrixMarket matrix coordinate pattern general\n", "a.mtx") ==
        "a.mtx:1:49: error: the size line is missing");
}

TEST_CASE("METIS graphs", "[graph][reader]") {
  // A comment, and node 2 (of 4) isolated: a blank line.
  const DataGraph plain = parse("% c\n4 2\n3\n\n1 4\n% in between\n3\n", "a.graph");
  CHECK(rows_of(plain.in_edges) == Rows{{2}, {}, {0, 3}, {2}});
  CHECK(plain.in_edges.node_weights.empty());
  const DataGraph weighted = parse("2 1 011 2\n5 6 2 9\n7 8 1 9\n\n", "a.graph");
  CHECK(rows_of(weighted.in_edges) == Rows{{1}, {0}});
  CHECK(weighted.in_edges.node_weights == std::vector<std::int64_t>{5, 6, 7, 8});
  CHECK(weighted.in_edges.node_weight_count == 2);
  CHECK(weighted.in_edges.edge_weights == std::vector<std::int64_t>{9, 9});
  const DataGraph sizes = parse("2 1 100\n5 2\n7 1\n", "a.graph");
  CHECK(rows_of(sizes.in_edges) == Rows{{1}, {0}});

  CHECK(fault("", "a.graph") ==
        "a.graph: error: the header line 'nodes edges [fmt [ncon]]' is missing");
  CHECK(fault("2 1\n2\n", "a.graph") ==
        "a.graph:2:2: error: the header promises 2 nodes, the file ends after 1");
  CHECK(fault("2 1\n2\n1\n1\n", "a.graph") ==
        "a.graph:4:1: error: the header promises 2 nodes, here is a line more");
  CHECK(fault("2 1\n2\n3\n", "a.graph") == "a.graph:3:2: error: neighbour 3 is not in 1..2");
  CHECK(fault("2 3\n2\n1\n", "a.graph") ==
        "a.graph: error: the header promises 3 edges, the lines hold 2 neighbours in place of 6");
  CHECK(fault("2 1 2\n", "a.graph") ==
        "a.graph:1:6: error: expected a format of up to three digits 0 and 1, found '2'");
  CHECK(fault("2 1 001\n2\n1 1\n", "a.graph") ==
        "a.graph:2:2: error: expected an edge weight, found the end of the line");
  CHECK(fault("2 1 001\n2 0\n1 0\n", "a.graph") ==
        "a.graph:2:4: error: an edge weight is 0, expected at least 1");
  CHECK(fault("2 1 0 2\n", "a.graph").find("gives a number of node weights") != std::string::npos);
}

TEST_CASE("edge lists", "[graph][reader]") {
  const DataGraph list = parse("# SNAP\n7\t-2\n7 100000000000\n-2,7\n", "a.txt");
  CHECK(list.ids == std::vector<std::int64_t>{-2, 7, 100000000000});
  CHECK(rows_of(list.in_edges) == Rows{{1}, {0}, {1}});
  CHECK(list.notes ==
        std::vector<std::string>{"ids -2..100000000000 are numbered 0..2 in ascending order"});
  const DataGraph csv = parse("id1,id2\n0,1\n1,2\n", "a.csv");
  CHECK(rows_of(csv.in_edges) == Rows{{}, {0}, {1}});
  CHECK(csv.ids.empty());
  const DataGraph weights = parse("0 1 0.5\n", "a.txt");
  CHECK(weights.notes == std::vector<std::string>{"the columns after the second are left out"});
  GraphReadOptions four;
  four.node_count = 4;
  CHECK(rows_of(parse("0 2\n", "a.txt", four).in_edges) == Rows{{}, {}, {0}, {}});
  CHECK(rows_of(parse("# Undirected graph: x\n0 1\n1 0\n1 2\n2 2\n", "a.txt").in_edges) ==
        Rows{{1}, {0, 2}, {1, 2}});
  GraphReadOptions undirected;
  undirected.undirected = true;
  CHECK(rows_of(parse("0 1\n0 1\n", "a.txt", undirected).in_edges) == Rows{{1}, {0, 0}});
  GraphReadOptions one_loop;
  one_loop.one_loop = true;
  const DataGraph loops = parse("0 1\n1 1\n1 1\n2 1\n2 2\n", "a.txt", one_loop);
  CHECK(rows_of(loops.in_edges) == Rows{{0}, {0, 1, 2}, {2}});
  CHECK(loops.notes == std::vector<std::string>{"1 loop added", "1 loop dropped"});
  CHECK(rows_of(parse("3 2 001\n2 4\n1 4 3 6\n2 6\n", "a.graph", one_loop).in_edges) ==
        Rows{{0, 1}, {0, 1, 2}, {1, 2}});

  CHECK(fault("# nothing\n", "a.txt") == "a.txt: error: the graph has no edges");
  CHECK(fault("0 1\n2\n", "a.txt") ==
        "a.txt:2:2: error: expected the id of a target, found the end of the line");
  CHECK(fault("0 1\na b\n", "a.txt") == "a.txt:2:1: error: expected the id of a source, found 'a'");
  CHECK(fault("0 4\n", "a.txt", four) == "a.txt:1:4: error: id 4 is not in 0..3");
  CHECK(fault("0 99999999999999999999\n", "a.txt").find("expected the id of a target") !=
        std::string::npos);
}

TEST_CASE("safetensors graphs", "[graph][reader]") {
  const test::TemporaryFolder folder;
  const std::string path = folder / "g.safetensors";
  write_safetensors(
      path, {{"indptr", integers({0, 2, 2, 3}, {4})}, {"indices", integers({2, 1, 0}, {3})}});
  CHECK(rows_of(read_graph_file(path, {}).in_edges) == Rows{{2}, {0}, {0}});
  CHECK(rows_of(parse_graph(read_file(path), path, {}).in_edges) == Rows{{2}, {0}, {0}});
  write_safetensors(path, {{"edge_index", integers({0, 0, 2, 2, 1, 0}, {2, 3})}});
  CHECK(rows_of(read_graph_file(path, {}).in_edges) == Rows{{2}, {0}, {0}});
  const auto refused = [&](const std::vector<std::pair<std::string, Tensor>>& tensors) {
    write_safetensors(path, tensors);
    try {
      read_graph_file(path, {});
    } catch (const Error& error) {
      return error.message();
    }
    return std::string("no error");
  };
  CHECK(refused({{"x", Tensor(DType::kFloat32, {1})}}) ==
        "found neither the tensors 'indptr' and 'indices' nor 'edge_index'");
  CHECK(refused({{"indptr", integers({0, 1}, {2})}}) ==
        "the tensor 'indices' is missing beside 'indptr'");
  CHECK(refused({{"indptr", integers({0, 2, 1, 3}, {4})}, {"indices", integers({0, 1, 2}, {3})}}) ==
        "'indptr' descends at node 1");
  CHECK(refused({{"indptr", integers({0, 1}, {2})}, {"indices", integers({1}, {1})}}) ==
        "node 1 is not in 0..0");
  CHECK(refused({{"edge_index", integers({0, -1}, {2, 1})}}) == "node -1 is not in 0..0");
  CHECK(refused({{"edge_index", Tensor(DType::kFloat32, {2, 1})}}) ==
        "tensor 'edge_index' is float32, expected int32 or int64");
}

TEST_CASE("symmetrizing reports what it drops", "[graph][reader]") {
  // 0 -> 1 twice, 1 -> 0, 1 -> 2, 2 -> 2
  const DataGraph data = parse("0 1\n0 1\n1 0\n1 2\n2 2\n", "a.txt");
  const SymmetrizedGraph simple = symmetrize(data.in_edges);
  CHECK(rows_of(simple.graph) == Rows{{1}, {0, 2}, {1}});
  CHECK(undirected_graph_fault(simple.graph).empty());
  CHECK(simple.note() == "1 loop and 1 parallel edge dropped, 1 reverse edge added");
  CHECK(symmetrize(simple.graph).note().empty());
  const DataGraph weighted = parse("3 2 001\n2 4\n1 4 3 6\n2 6\n", "a.graph");
  CHECK(symmetrize(weighted.in_edges).graph.edge_weights == std::vector<std::int64_t>{4, 4, 6, 6});
}

TEST_CASE("features", "[graph][reader]") {
  const test::TemporaryFolder folder;
  Tensor x(DType::kFloat32, {2, 3});
  for (int i = 0; i < 6; ++i) x.as_mutable<float>()[i] = static_cast<float>(i);
  const auto same = [&](const Tensor& y) {
    return y.shape() == x.shape() && std::memcmp(y.data(), x.data(), x.bytes()) == 0;
  };
  write_npy(folder / "x.npy", x);
  CHECK(same(read_features(folder / "x.npy")));
  write_safetensors(folder / "x.safetensors", {{"features", x}, {"y", x}});
  CHECK(same(read_features(folder / "x.safetensors")));
  write_file_atomically(folder / "x.mtx",
                        "%%MatrixMarket matrix coordinate real general\n2 3 5\n1 2 1\n1 3 2\n2 1 "
                        "3\n2 2 4\n2 3 5\n");
  CHECK(same(read_features(folder / "x.mtx")));
  CHECK(same(parse_matrix_market_features(
      "%%MatrixMarket matrix array real general\n2 3\n0\n3\n1\n4\n2\n5\n", "a.mtx")));
  const auto refused = [](const std::string& text) {
    try {
      parse_matrix_market_features(text, "a.mtx");
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  CHECK(refused("%%MatrixMarket matrix array real general\n2 3\n0\n3\n1\n4\n2\n") ==
        "a.mtx:7:2: error: expected 6 values, the file ends after 5");
  CHECK(refused("%%MatrixMarket matrix array real general\n200 300\n0\n") ==
        "a.mtx:2:8: error: the file is too short for its sizes");
  CHECK(refused("%%MatrixMarket matrix coordinate real general\n9999999999 9999999999 1\n")
            .find("too large") != std::string::npos);
  CHECK(refused("%%MatrixMarket matrix coordinate real general\n2 2 1\n1 1 nan\n") ==
        "a.mtx:3:5: error: expected a value, found 'nan'");
  write_npy(folder / "d.npy", Tensor(DType::kFloat64, {2, 3}));
  CHECK_THROWS_AS(read_features(folder / "d.npy"), Error);
}

TEST_CASE("partition files", "[graph][reader]") {
  CHECK(partition_text({0, 10, 2}) == "0\n10\n2\n");
  CHECK(parse_partition("0\n10\n2\n", "p", 3) == std::vector<std::int32_t>{0, 10, 2});
  CHECK_THROWS_AS(parse_partition("0\n", "p", 2), Error);
  CHECK_THROWS_AS(parse_partition("0\n-1\n", "p", 2), Error);
  CHECK_THROWS_AS(parse_partition("0\n1 1\n", "p", 2), Error);
}
