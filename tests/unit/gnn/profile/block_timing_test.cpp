// SPDX-License-Identifier: Apache-2.0
#include "gnn/profile/block_timing.hpp"

#include "catch.hpp"

namespace npu::gnn {

TEST_CASE("time_runs takes the median of runs, and the least of disturbed ones", "[gnn][profile]") {
  const std::vector<double> steady{2.0, 2.1, 2.0, 1.9, 2.0};
  const std::vector<double> disturbed{1.7, 3.1, 2.0, 4.0, 2.5};
  const auto timing_of = [](const std::vector<double>& samples) {
    std::int32_t warm_ups = 0;
    const BlockTiming timing =
        time_runs(2, static_cast<std::int32_t>(samples.size()), [&](std::int32_t run) {
          if (run < 0) ++warm_ups;
          return run < 0 ? 100.0 : samples[static_cast<std::size_t>(run)];
        });
    CHECK(warm_ups == 2);
    CHECK(timing.samples == samples);
    return timing;
  };
  const BlockTiming quiet = timing_of(steady);
  // Something else may take the core in between.
  CHECK(quiet.ms == (quiet.disturbed ? 1.9 : 2.0));
  const BlockTiming loud = timing_of(disturbed);
  CHECK(loud.disturbed);
  CHECK(loud.ms == 1.7);
}

}  // namespace npu::gnn
