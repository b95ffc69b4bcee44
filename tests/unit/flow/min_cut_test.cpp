// SPDX-License-Identifier: Apache-2.0
// Minimum cuts against exhaustive search, and the checker against corrupted flows.
#include "flow/min_cut.hpp"

#include <random>

#include "catch.hpp"
#include "npu/support/error.hpp"

using namespace npu;

namespace {

CutNetwork random_network(std::mt19937& random, int vertices, bool with_infinite) {
  const auto below = [&](int bound) {
    return static_cast<int>(random() % static_cast<unsigned>(bound));
  };
  CutNetwork network(static_cast<std::size_t>(vertices));
  for (int v = 0; v < vertices; ++v) {
    if (below(3) != 0) network.add_source_capacity(v, below(20));
    if (below(3) != 0) network.add_sink_capacity(v, below(20));
    if (with_infinite && below(6) == 0) network.add_source_capacity(v, kInfiniteCapacity);
    if (with_infinite && below(6) == 0) network.add_sink_capacity(v, kInfiniteCapacity);
  }
  if (vertices < 2) return network;
  for (int a = below(3 * vertices); a > 0; --a) {
    const int from = below(vertices);
    const int to = below(vertices);
    if (from == to) continue;
    const bool infinite = with_infinite && below(8) == 0;
    network.add_arc(from, to, infinite ? kInfiniteCapacity : below(15),
                    below(2) == 0 ? 0 : below(15));
  }
  return network;
}

struct Smallest {
  std::int64_t value = kInfiniteCapacity;
  std::vector<char> side;  // the intersection of the source sides of all minimum cuts
};

Smallest try_all_cuts(const CutNetwork& network) {
  Smallest best;
  const std::size_t count = network.vertex_count();
  for (std::size_t bits = 0; bits < std::size_t{1} << count; ++bits) {
    std::vector<char> side(count);
    for (std::size_t v = 0; v < count; ++v) side[v] = static_cast<char>(bits >> v & 1U);
    const std::int64_t value = cut_capacity(network, side);
    if (value == kInfiniteCapacity) continue;
    if (value < best.value) {
      best = {value, side};
    } else if (value == best.value) {
      for (std::size_t v = 0; v < count; ++v) best.side[v] = best.side[v] && side[v];
    }
  }
  return best;
}

}  // namespace

TEST_CASE("min cut: the empty network and one vertex") {
  const MinCut empty = solve_min_cut(CutNetwork());
  CHECK(empty.value == 0);
  CHECK(check_min_cut(CutNetwork(), empty).empty());

  CutNetwork one;
  one.add_vertex();
  one.add_source_capacity(0, 3);
  one.add_sink_capacity(0, 5);
  const MinCut cut = solve_min_cut(one);
  CHECK(cut.value == 3);
  CHECK(cut.source_side == std::vector<char>{0});
  CHECK(cut.source_flow == std::vector<std::int64_t>{3});
  CHECK(cut.sink_flow == std::vector<std::int64_t>{3});
}

TEST_CASE("min cut: capacities of both directions of an arc are paid by the one that is cut") {
  CutNetwork network(2);
  network.add_source_capacity(0, 100);
  network.add_sink_capacity(1, 100);
  network.add_arc(0, 1, 7, 9);
  CHECK(solve_min_cut(network).value == 7);
  CutNetwork turned(2);
  turned.add_source_capacity(1, 100);
  turned.add_sink_capacity(0, 100);
  turned.add_arc(0, 1, 7, 9);
  const MinCut cut = solve_min_cut(turned);
  CHECK(cut.value == 9);
  CHECK(cut.arc_flow == std::vector<std::int64_t>{-9});
}

TEST_CASE("min cut: the smallest of all cuts, with a flow of the same value") {
  std::mt19937 random(5);
  int infinite = 0;
  for (int round = 0; round < 3000; ++round) {
    CAPTURE(round);
    const CutNetwork network = random_network(random, round % 9, round % 3 == 0);
    const Smallest best = try_all_cuts(network);
    const MinCut cut = solve_min_cut(network);
    REQUIRE(cut.value == best.value);
    if (cut.value == kInfiniteCapacity) {
      ++infinite;
      CHECK(cut.source_side.empty());
      continue;
    }
    CHECK(cut.source_side == best.side);  // the smallest source side
    CHECK(check_min_cut(network, cut).empty());
  }
  CHECK(infinite > 50);
}

TEST_CASE("min cut: the checker finds every kind of damage") {
  std::mt19937 random(9);
  int spoilt = 0;
  for (int round = 0; round < 300; ++round) {
    CAPTURE(round);
    const CutNetwork network = random_network(random, 2 + round % 7, false);
    const MinCut cut = solve_min_cut(network);
    REQUIRE(check_min_cut(network, cut).empty());
    MinCut wrong = cut;
    wrong.value += 1;
    CHECK_FALSE(check_min_cut(network, wrong).empty());
    wrong = cut;
    wrong.source_flow[0] += 1;
    CHECK_FALSE(check_min_cut(network, wrong).empty());
    wrong = cut;
    wrong.sink_flow[0] -= 1;
    CHECK_FALSE(check_min_cut(network, wrong).empty());
    if (!cut.arc_flow.empty()) {
      wrong = cut;
      wrong.arc_flow[0] += 1;
      CHECK_FALSE(check_min_cut(network, wrong).empty());
      wrong.arc_flow[0] = INT64_MIN;  // must not overflow
      CHECK_FALSE(check_min_cut(network, wrong).empty());
    }
    wrong = cut;
    wrong.source_side[0] = !wrong.source_side[0];
    const bool is_minimum_too = cut_capacity(network, wrong.source_side) == cut.value;
    CHECK(check_min_cut(network, wrong).empty() == is_minimum_too);
    if (!is_minimum_too) ++spoilt;
    wrong = cut;
    wrong.source_side.pop_back();
    CHECK_FALSE(check_min_cut(network, wrong).empty());
  }
  CHECK(spoilt > 100);
}

TEST_CASE("min cut: flows that are legal but too small prove nothing") {
  CutNetwork network(1);
  network.add_source_capacity(0, 4);
  network.add_sink_capacity(0, 4);
  const MinCut lazy{
      .value = 0, .source_side = {1}, .arc_flow = {}, .source_flow = {0}, .sink_flow = {0}};
  CHECK(check_min_cut(network, lazy) == "the cut has the capacity 4, the flow the value 0");
}

TEST_CASE("min cut: capacities that do not fit are an error") {
  CutNetwork network(2);
  network.add_arc(0, 1, std::int64_t{1} << 62);
  CHECK(solve_min_cut(network).value == 0);
  network.add_arc(1, 0, 1);
  CHECK_THROWS_AS(solve_min_cut(network), Error);
  CutNetwork one(1);
  one.add_source_capacity(0, std::int64_t{1} << 62);
  CHECK_THROWS_AS(one.add_source_capacity(0, 1), Error);
}

TEST_CASE("min cut: a chain of 100,000 vertices") {
  constexpr int kLength = 100'000;
  CutNetwork network(kLength);
  network.add_source_capacity(0, kInfiniteCapacity);
  network.add_sink_capacity(kLength - 1, kInfiniteCapacity);
  for (int v = 1; v < kLength; ++v) network.add_arc(v - 1, v, v == 777 ? 1 : 1000 + v % 5);
  const MinCut cut = solve_min_cut(network);
  CHECK(cut.value == 1);
  CHECK(std::count(cut.source_side.begin(), cut.source_side.end(), 1) == 777);
  CHECK(check_min_cut(network, cut).empty());
}
