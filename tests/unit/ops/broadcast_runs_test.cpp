// SPDX-License-Identifier: Apache-2.0
#include "ops/broadcast_runs.hpp"

#include "catch.hpp"

namespace npu {
namespace {

using Runs = BroadcastRuns;

}  // namespace

TEST_CASE("broadcast runs: a tensor of the same shape is one run", "[ops]") {
  CHECK(broadcast_runs({2, 3, 4}, {2, 3, 4}) == Runs{1, 1, 1, 24});
  CHECK(broadcast_runs({}, {}) == Runs{});
  CHECK(broadcast_runs({1, 1}, {}) == Runs{});
}

TEST_CASE("broadcast runs: dimensions of one element belong to any run", "[ops]") {
  CHECK(broadcast_runs({2, 1, 4}, {2, 1, 4}) == Runs{1, 1, 1, 8});
  CHECK(broadcast_runs({2, 1, 4}, {1, 1, 4}) == Runs{1, 1, 2, 4});
}

TEST_CASE("broadcast runs: in both orders of channels", "[ops]") {
  // The gates of a squeeze-and-excitation: 2 * 8 of them, each for 5 * 7 pixels.
  CHECK(broadcast_runs({2, 8, 5, 7}, {2, 8, 1, 1}) == Runs{1, 16, 35, 1});
  CHECK(broadcast_runs_of_channels({2, 8, 5, 7}, {2, 8, 1, 1}) == Runs{1, 2, 35, 8});
  // A number for each channel, of all samples.
  CHECK(broadcast_runs({2, 8, 5, 7}, {8, 1, 1}) == Runs{2, 8, 35, 1});
  CHECK(broadcast_runs_of_channels({2, 8, 5, 7}, {8, 1, 1}) == Runs{1, 1, 70, 8});
  CHECK(has_broadcast_runs({2, 8, 5, 7}, {8, 1, 1}));
  // A number for each pixel.
  CHECK(broadcast_runs({2, 8, 5, 7}, {2, 1, 5, 7}) == Runs{1, 2, 8, 35});
  CHECK(broadcast_runs_of_channels({2, 8, 5, 7}, {2, 1, 5, 7}) == Runs{1, 70, 8, 1});
}

TEST_CASE("broadcast runs: shapes without them", "[ops]") {
  CHECK_FALSE(broadcast_runs({2, 3}, {2, 4}));
  CHECK_FALSE(broadcast_runs({3}, {2, 3}));
  CHECK_FALSE(broadcast_runs_of_channels({3}, {2, 3}));
  CHECK_FALSE(broadcast_runs({2, 3, 4, 5, 6}, {2, 1, 4, 1, 6}));
  // Row-major 2, 12 repeated, 5; but with channels last 2, 4 repeated, 5, 3 repeated.
  CHECK(broadcast_runs({2, 3, 4, 5}, {2, 1, 1, 5}) == Runs{1, 2, 12, 5});
  CHECK(broadcast_runs_of_channels({2, 3, 4, 5}, {2, 1, 1, 5}) == std::nullopt);
  CHECK_FALSE(has_broadcast_runs({2, 3, 4, 5}, {2, 1, 1, 5}));
}

}  // namespace npu
