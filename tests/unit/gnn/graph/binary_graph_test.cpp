// SPDX-License-Identifier: Apache-2.0
// The binary form of graphs: round trips, faults, rows of a mapped file, and more edges than 2^31.
#include "gnn/graph/binary_graph.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cstring>

#include "catch.hpp"
#include "npu/support/error.hpp"
#include "support/descriptor.hpp"
#include "support/temporary_folder.hpp"

using namespace npu;
using namespace npu::gnn;

namespace {

DataGraph small_graph() {
  DataGraph data;
  data.in_edges.offsets = {0, 3, 3, 4};
  data.in_edges.neighbors = {0, 2, 2, 1};
  return data;
}

// The message for bytes that are no graph; empty if they are one.
std::string fault_of(const std::string& bytes) {
  try {
    parse_binary_graph(bytes, "graph.csr");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kParse);
    return error.message();
  }
  return {};
}

template <typename Number>
std::string with(std::string bytes, std::size_t offset, Number number) {
  std::memcpy(bytes.data() + offset, &number, sizeof number);
  return bytes;
}

}  // namespace

TEST_CASE("the binary form of a graph gives the graph", "[gnn][binary]") {
  const test::TemporaryFolder folder;
  DataGraph data = small_graph();
  for (const bool has_ids : {false, true}) {
    if (has_ids) data.ids = {5, -7, std::int64_t{1} << 40};
    const std::string path = folder / "graph.csr";
    write_binary_graph(path, data);
    const DataGraph read = read_graph_file(path, {});
    CHECK(read.format == "binary");
    CHECK(read.in_edges.offsets == data.in_edges.offsets);
    CHECK(read.in_edges.neighbors == data.in_edges.neighbors);
    CHECK(read.ids == data.ids);
    const GraphRows rows(std::make_shared<const MappedFile>(path));
    CHECK(rows.node_count() == 3);
    CHECK(rows.entry_count() == 4);
    CHECK(std::vector<std::int32_t>(rows.row(0).begin(), rows.row(0).end()) ==
          std::vector<std::int32_t>{0, 2, 2});
    CHECK(rows.degree(1) == 0);
    CHECK(rows.row(2)[0] == 1);
  }
}

TEST_CASE("what is no graph in binary form is refused", "[gnn][binary]") {
  const test::TemporaryFolder folder;
  const std::string path = folder / "graph.csr";
  write_binary_graph(path, small_graph());
  const std::string good = read_file(path);
  REQUIRE(fault_of(good).empty());
  CHECK(fault_of("NPUGRAPX") == "expected a graph that begins with NPUGRAPH");
  CHECK(fault_of(good.substr(0, 40)) == "the header of the graph is cut short");
  CHECK(fault_of(with(good, 8, 2U)) == "version 2 of the binary form, expected 1");
  CHECK(fault_of(with(good, 12, 2U)).find("does not define") != std::string::npos);
  CHECK(fault_of(with(good, 40, 1U)).find("does not define") != std::string::npos);
  CHECK(fault_of(with(good, 16, std::uint64_t{0})).find("has 0 nodes") != std::string::npos);
  CHECK(fault_of(with(good, 16, ~std::uint64_t{0})).find("nodes, expected 1 to") !=
        std::string::npos);
  CHECK(fault_of(with(good, 16, std::uint64_t{1} << 30)).find("does not have") !=
        std::string::npos);
  // 4 * (2^62 + 4) is 16 in 64 bits.
  CHECK(fault_of(with(good, 24, (std::uint64_t{1} << 62) + 4)).find("does not have") !=
        std::string::npos);
  CHECK(fault_of(good + "x").find("does not have") != std::string::npos);
  CHECK(fault_of(good.substr(0, good.size() - 4)).find("does not have") != std::string::npos);
  CHECK(fault_of(with(good, 64, std::int64_t{1})) == "the rows go from 1 to 4, expected 0 to 4");
  CHECK(fault_of(with(good, 72, std::int64_t{5})).find("the row of node 0 goes from 0 to 5") == 0);
  CHECK(fault_of(with(good, 80, std::int64_t{-1})).find("the row of node 1 goes from 3 to -1") ==
        0);
  CHECK(fault_of(with(good, 96, std::int32_t{3})).find("the row of node 0 has the source 3") == 0);
  CHECK(fault_of(with(good, 100, std::int32_t{-1})).find("the row of node 0 has the source -1") ==
        0);
  // A mapped file is checked row by row.
  write_file_atomically(path, with(good, 96, std::int32_t{3}));
  const GraphRows rows(std::make_shared<const MappedFile>(path));
  CHECK(rows.row(2)[0] == 1);
  CHECK_THROWS_AS(rows.row(0), Error);
}

TEST_CASE("a graph may have more than 2^31 edges", "[gnn][binary]") {
  // 2^31 + 5 edges into node 0 and one into node 1, in a file with a hole: all sources are 0.
  const test::TemporaryFolder folder;
  const std::string path = folder / "large.csr";
  DataGraph small;
  small.in_edges.offsets = {0, 0, 1};
  small.in_edges.neighbors = {0};
  write_binary_graph(path, small);
  const std::int64_t edges = (std::int64_t{1} << 31) + 6;
  {
    const Descriptor file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
    const std::int64_t before_last = edges - 1;
    REQUIRE(::pwrite(file.get(), &edges, sizeof edges, 24) == sizeof edges);
    REQUIRE(::pwrite(file.get(), &before_last, sizeof edges, 72) == sizeof edges);
    REQUIRE(::pwrite(file.get(), &edges, sizeof edges, 80) == sizeof edges);
    if (::ftruncate(file.get(), 64 + 24 + 4 * edges) != 0) {
      WARN("this file system has no file of 8 GB with a hole");
      return;
    }
    const std::int32_t last = 1;
    REQUIRE(::pwrite(file.get(), &last, sizeof last, 64 + 24 + 4 * (edges - 1)) == sizeof last);
  }
  const GraphRows rows(std::make_shared<const MappedFile>(path));
  CHECK(rows.entry_count() == edges);
  CHECK(rows.degree(1) == 1);
  CHECK(rows.row(1)[0] == 1);
}
