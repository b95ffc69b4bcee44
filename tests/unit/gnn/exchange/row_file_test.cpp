// SPDX-License-Identifier: Apache-2.0
// Rows of files against rows in memory, and how many pieces of the file are read for them.
#include "gnn/exchange/row_file.hpp"

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <random>
#include <vector>

#include "catch.hpp"
#include "npu/support/error.hpp"
#include "npu/support/file_io.hpp"
#include "support/temporary_folder.hpp"
#include "tensor/npy.hpp"

using namespace npu;
using namespace npu::gnn;

namespace {

Tensor numbered_features(std::int64_t rows, std::int64_t width) {
  Tensor tensor(DType::kFloat32, {rows, width});
  std::iota(tensor.as_mutable<float>(), tensor.as_mutable<float>() + rows * width, 0.0F);
  return tensor;
}

std::string refusal_of_features(const std::string& path, const std::vector<std::int32_t>& nodes,
                                const Shape& shape) {
  try {
    RowFile::of_features(path, nodes, shape);
  } catch (const Error& error) {
    return error.what();
  }
  return "none";
}

}  // namespace

TEST_CASE("rows of nodes are read from features", "[plan][ranks]") {
  const test::TemporaryFolder folder;
  constexpr std::int64_t kWidth = 3;
  write_npy(folder / "x.npy", numbered_features(1000, kWidth));
  std::vector<std::int32_t> nodes;
  for (std::int32_t node = 1; node < 1000; node += 7) nodes.push_back(node);
  RowFile file = RowFile::of_features(folder / "x.npy", nodes, {1000, kWidth});
  CHECK(file.width() == kWidth);
  std::mt19937 random(3);
  for (int round = 0; round < 20; ++round) {
    std::vector<RowToRead> rows;
    for (std::int32_t row = 0; row < static_cast<std::int32_t>(nodes.size()); ++row) {
      if (random() % 3 == 0) rows.push_back({row, static_cast<std::int64_t>(rows.size())});
    }
    for (RowToRead& row : rows) row.place = static_cast<std::int64_t>(rows.size()) - 1 - row.place;
    std::vector<float> memory(rows.size() * kWidth, -1);
    file.read(rows, memory.data());
    for (const RowToRead& row : rows) {
      for (std::int64_t c = 0; c < kWidth; ++c) {
        const auto expected = nodes[static_cast<std::size_t>(row.row)] * kWidth + c;
        CHECK(memory[static_cast<std::size_t>(row.place * kWidth + c)] ==
              static_cast<float>(expected));
      }
    }
  }
}

TEST_CASE("rows that lie close together are read at once", "[plan][ranks]") {
  const test::TemporaryFolder folder;
  constexpr std::int64_t kWidth = 1024;  // 4 KiB
  RowFile file = RowFile::scratch(folder.path().string(), kWidth);
  CHECK(folder.entries() == 0);  // it has no name
  const Tensor rows = numbered_features(600, kWidth);
  file.write(0, rows.as<float>(), 300);
  file.write(300, rows.as<float>() + 300 * kWidth, 300);
  std::vector<float> memory(3 * kWidth);
  const auto read = [&](const std::vector<RowToRead>& wanted) {
    const RowReads before = file.reads();
    file.read(wanted, memory.data());
    for (const RowToRead& row : wanted) {
      CHECK(std::equal(memory.data() + row.place * kWidth, memory.data() + (row.place + 1) * kWidth,
                       rows.as<float>() + row.row * kWidth));
    }
    CHECK(file.reads().rows - before.rows == static_cast<std::int64_t>(wanted.size()));
    return std::pair{file.reads().blocks - before.blocks, file.reads().bytes - before.bytes};
  };
  using Reads = std::pair<std::int64_t, std::int64_t>;
  CHECK(read({}) == Reads{0, 0});
  CHECK(read({{5, 1}}) == Reads{1, 4096});
  CHECK(read({{5, 0}, {6, 1}, {7, 2}}) == Reads{1, 3 * 4096});
  // 16 KiB between them are read over, more are not.
  CHECK(read({{5, 0}, {10, 1}}) == Reads{1, 6 * 4096});
  CHECK(read({{5, 0}, {11, 1}}) == Reads{2, 2 * 4096});
  // A block has at most 1 MiB.
  std::vector<float> large(600 * kWidth);
  std::vector<RowToRead> all;
  for (std::int32_t row = 0; row < 600; ++row) all.push_back({row, row});
  const RowReads before = file.reads();
  file.read(all, large.data());
  CHECK(file.reads().blocks - before.blocks == 3);
  CHECK(std::equal(large.begin(), large.end(), rows.as<float>()));
}

TEST_CASE("features that do not fit are refused", "[plan][ranks]") {
  using Catch::Matchers::Contains;
  const test::TemporaryFolder folder;
  const std::vector<std::int32_t> nodes{0, 1};
  write_npy(folder / "x.npy", numbered_features(4, 2));
  CHECK(refusal_of_features(folder / "x.npy", nodes, {4, 2}) == "none");
  CHECK_THAT(refusal_of_features(folder / "x.npy", nodes, {4, 3}),
             Contains("the features are float32 [4, 2], expected float32 [4, 3]"));
  write_npy(folder / "y.npy", Tensor(DType::kInt32, {4, 2}));
  CHECK_THAT(refusal_of_features(folder / "y.npy", nodes, {4, 2}), Contains("are int32"));
  std::string fortran = read_file(folder / "x.npy");
  const std::size_t order = fortran.find("False");
  REQUIRE(order != std::string::npos);
  write_file_atomically(folder / "z.npy", fortran.replace(order, 5, "True "));
  CHECK_THAT(refusal_of_features(folder / "z.npy", nodes, {4, 2}), Contains("Fortran order"));
}

TEST_CASE("a file that is cut short while it is read is an error", "[plan][ranks]") {
  const test::TemporaryFolder folder;
  write_npy(folder / "x.npy", numbered_features(4, 2));
  const std::vector<std::int32_t> nodes{0, 1, 2, 3};
  RowFile file = RowFile::of_features(folder / "x.npy", nodes, {4, 2});
  std::filesystem::resize_file(folder / "x.npy", std::filesystem::file_size(folder / "x.npy") - 8);
  std::vector<float> memory(8);
  const std::vector<RowToRead> there{{2, 0}};
  file.read(there, memory.data());
  CHECK(memory[0] == 4);
  const std::vector<RowToRead> gone{{3, 0}};
  CHECK_THROWS_WITH(file.read(gone, memory.data()),
                    Catch::Matchers::Contains("was cut short while it was read"));
}
