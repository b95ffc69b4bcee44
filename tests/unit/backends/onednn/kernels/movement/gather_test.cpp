// SPDX-License-Identifier: Apache-2.0
// Rows and elements by index, and sequences of indices.
#include <cmath>
#include <cstring>
#include <numeric>
#include <vector>

#include "backends/onednn/kernels/kernel_fixture.hpp"
#include "backends/onednn/kernels/kernel_runs.hpp"
#include "catch.hpp"
#include "npu/support/error.hpp"

namespace npu::onednn {
namespace {

using namespace test;

}  // namespace

TEST_CASE("elements are read and written by index", "[onednn][kernels]") {
  // x[[2, -1], :] of a 3 x 2 tensor.
  using Combine = IndexedCopy::Combine;
  IndexedCopy read{DType::kFloat32, false,  Combine::kReplace, true,      6, {2, 2},
                   {0, 1},          {2, 1}, {{3, 2, {1, 0}}},  "node 'n'"};
  CHECK(run<float>(read, 4, Floats{1, 2, 3, 4, 5, 6}, Longs{2, -1}) == Floats{5, 6, 5, 6});
  read.wraps = false;
  CHECK_THROWS_WITH(run<float>(read, 4, Floats{1, 2, 3, 4, 5, 6}, Longs{2, -1}),
                    Catch::Contains("node 'n': index -1 is outside its dimension of 3"));
  // x[[0, 0, 2]] = values, and += values: of two for one element the later one counts.
  IndexedCopy written{DType::kInt64, true, Combine::kReplace, true,      3, {3},
                      {0},           {1},  {{3, 1, {1}}},     "node 'n'"};
  CHECK(run<std::int64_t>(written, 3, Longs{7, 8, 9}, Longs{1, 2, 3}, Longs{0, 0, -1}) ==
        Longs{2, 8, 3});
  written.combine = Combine::kAdd;
  CHECK(run<std::int64_t>(written, 3, Longs{7, 8, 9}, Longs{1, 2, 3}, Longs{0, 0, 2}) ==
        Longs{10, 8, 12});
  written.combine = Combine::kMaximum;
  CHECK(run<std::int64_t>(written, 3, Longs{7, 8, 9}, Longs{8, 11, -3}, Longs{0, 0, 2}) ==
        Longs{11, 8, 9});
  written.combine = Combine::kMinimum;
  CHECK(run<std::int64_t>(written, 3, Longs{7, 8, 9}, Longs{8, 11, -3}, Longs{0, 0, 2}) ==
        Longs{7, 8, -3});
  written.type = DType::kFloat32;
  const float nan = std::nanf("");
  const auto least = run<float>(written, 3, Floats{7, nan, 9}, Floats{8, 1, nan}, Longs{0, 1, 2});
  CHECK((least[0] == 7 && std::isnan(least[1]) && std::isnan(least[2])));
  CHECK_THROWS_AS(run<std::int64_t>(written, 3, Longs{7, 8, 9}, Longs{1, 2, 3}, Longs{0, 3, 2}),
                  Error);
}

TEST_CASE("several indices, of which some stay the same along a row", "[onednn][kernels]") {
  // x[:, rows[2, 1], columns[1, 3]] of a 2 x 2 x 4 tensor, in rows of 3.
  IndexedCopy call{
      DType::kFloat32, false,     IndexedCopy::Combine::kReplace,         false,     16, {2, 2, 3},
      {8, 0, 0},       {6, 3, 1}, {{2, 4, {0, 1, 0}}, {4, 1, {0, 0, 1}}}, "node 'n'"};
  Floats x(16);
  std::iota(x.begin(), x.end(), 0.0F);
  CHECK(run<float>(call, 12, x, Longs{1, 0}, Longs{3, 0, 2}) ==
        Floats{7, 4, 6, 3, 0, 2, 15, 12, 14, 11, 8, 10});
  CHECK_THROWS_AS(run<float>(call, 12, x, Longs{1, 2}, Longs{3, 0, 2}), Error);
}

TEST_CASE("windows that overlap are added up in their order, each plane on its own",
          "[onednn][kernels]") {
  // target[p, i + j] += values[p, j, i] for 3 windows of 400 in each of 40 planes.
  const auto planes = static_cast<std::int64_t>(40);
  IndexedCopy call{DType::kFloat32, true,           IndexedCopy::Combine::kAdd,
                   false,           planes * 402,   {planes, 3, 400},
                   {402, 0, 0},     {1200, 400, 1}, {{402, 1, {0, 400, 1}}},
                   "node 'n'"};
  Longs numbers;
  for (std::int64_t j = 0; j < 3; ++j) {
    for (std::int64_t i = 0; i < 400; ++i) numbers.push_back(i + j);
  }
  Floats values(static_cast<std::size_t>(planes * 1200));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 977) * 0.37F;
  Floats expected(static_cast<std::size_t>(planes * 402), 0.5F);
  for (std::size_t i = 0; i < values.size(); ++i) {
    expected[i / 1200 * 402 + static_cast<std::size_t>(numbers[i % 1200])] += values[i];
  }
  const Floats start(expected.size(), 0.5F);
  CHECK(run<float>(call, planes * 402, start, values, numbers) == expected);
  call.combine = IndexedCopy::Combine::kReplace;
  const Floats replaced = run<float>(call, planes * 402, start, values, numbers);
  CHECK(replaced[402] == values[1200]);
  CHECK(replaced[402 + 2] == values[1200 + 800]);  // the last of three windows
  CHECK(replaced[402 + 401] == values[2399]);
}

TEST_CASE("a tensor is overwritten in its own memory without a copy", "[onednn][kernels]") {
  // index_copy of rows 2 and 0 of each of 2 planes of 3 x 2; the same rows by a copy of parts; and
  // the rows behind the first one.
  const IndexedCopy call{DType::kFloat32, true,      IndexedCopy::Combine::kReplace,
                         false,           12,        {2, 2, 2},
                         {6, 0, 1},       {4, 2, 1}, {{3, 2, {0, 1, 0}}},
                         "node 'n'"};
  const Floats start{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
  const Floats rows{20, 21, 22, 23, 24, 25, 26, 27};
  const Longs places{2, 0};
  const Floats expected{22, 23, 2, 3, 20, 21, 26, 27, 8, 9, 24, 25};
  const auto run_in_place = [](const Kernel& kernel, Floats target,
                               std::initializer_list<const std::byte*> others) {
    std::vector<std::byte*> addresses{bytes(target)};
    for (const std::byte* each : others) addresses.push_back(const_cast<std::byte*>(each));
    addresses.push_back(bytes(target));
    CHECK(footprint_of(kernel).reads.front().may_be_target);
    run_kernel(kernel, addresses);
    return target;
  };
  CHECK(run<float>(call, 12, start, rows, places) == expected);
  CHECK(run_in_place(call, start, {bytes(rows), bytes(places)}) == expected);
  CopyParts parts;
  parts.sources = 2;
  parts.parts.push_back({0, 0, 0, {4, {12}, {1}, {1}}});
  parts.parts.push_back({1, 0, 2, {4, {2, 2}, {2, 1}, {6, 1}}});
  CHECK(run_in_place(parts, start, {bytes(rows)}) ==
        Floats{0, 1, 20, 21, 4, 5, 6, 7, 22, 23, 10, 11});
  const TailRows tail{DType::kFloat32, TailRows::Fill::kEdge, 2, 3, 2, "node 'n'"};
  const Longs valid{1};
  CHECK(run_in_place(tail, start, {bytes(valid)}) == Floats{0, 1, 0, 1, 0, 1, 6, 7, 6, 7, 6, 7});
}

TEST_CASE("GatherRows refuses an index outside the table; PlainConcat and Sequence",
          "[onednn][kernels]") {
  const auto table = random_floats(4 * 3, 1);
  std::vector<std::int64_t> indices{3, 0};
  std::vector<float> target(6);
  const GatherRows gather{2, 4, 12, true, "node 'e'"};
  gather.run({bytes(table), bytes(indices), bytes(target)});
  CHECK(std::memcmp(target.data(), table.data() + 9, 12) == 0);
  CHECK(std::memcmp(target.data() + 3, table.data(), 12) == 0);
  indices[1] = GENERATE(-1, 4);
  CHECK_THROWS_WITH(gather.run({bytes(table), bytes(indices), bytes(target)}),
                    Catch::Contains("node 'e': an index is not in 0..3"));

  const std::vector<float> a{1.0F, 2.0F};
  const std::vector<float> b{3.0F, 4.0F, 5.0F, 6.0F};
  std::vector<float> joined(6);
  std::vector<std::byte*> addresses{const_cast<std::byte*>(bytes(a)),
                                    const_cast<std::byte*>(bytes(b)), bytes(joined)};
  run_kernel(PlainConcat{2, {4, 8}}, addresses);  // as a step runs it
  CHECK(joined == std::vector<float>{1.0F, 3.0F, 4.0F, 2.0F, 5.0F, 6.0F});

  std::vector<std::int64_t> numbers(3);
  Sequence{5, 2, 3}.run({numbers.data()});
  CHECK(numbers == std::vector<std::int64_t>{5, 7, 9});
}

}  // namespace npu::onednn
