// SPDX-License-Identifier: Apache-2.0
// From the record of a run to the rows of its report.
#include "runtime/run_summary.hpp"

#include "catch.hpp"

using namespace npu;

TEST_CASE("bench: quantiles by nearest rank, the median between two") {
  std::vector<double> times;
  for (int i = 20; i > 0; --i) times.push_back(i);
  const BenchSummary bench = summarize_bench(times, 0.5);
  CHECK(bench.runs == 20);
  CHECK(bench.median_ms == 10.5);  // between 10 and 11
  CHECK(bench.min_ms == 1);
  CHECK(bench.p90_ms == 18);           // ceil(0.9 * 20) = 18
  CHECK(bench.p99_ms == 20);           // ceil(0.99 * 20) = 20
  CHECK(bench.runs_per_second == 40);  // 20 in half a second
  CHECK(bench.peak_rss_bytes > 0);
  const BenchSummary single = summarize_bench({3}, 0);
  CHECK(single.median_ms == 3);
  CHECK(single.p90_ms == 3);
  CHECK(single.runs_per_second == 0);  // nothing to divide by
}

TEST_CASE("the way of a transfer is that of its tensors") {
  StepRecord transfer{.kind = StepRecord::Kind::kTransfer, .device = "npu"};
  CHECK(path_text(transfer).empty());  // everything was there
  transfer.tensors = 2;
  transfer.bytes = 8;
  transfer.paths = {TransferPath::kWrapped};
  CHECK(path_text(transfer) == "wrapped");
  transfer.copied_bytes = 4;
  transfer.paths = {TransferPath::kWrapped, TransferPath::kDeviceCopy};
  CHECK(path_text(transfer) == "partly copied");
  transfer.copied_bytes = 8;
  transfer.paths = {TransferPath::kDeviceCopy};
  CHECK(path_text(transfer) == "device copy");
  transfer.paths = {TransferPath::kStaged};
  CHECK(path_text(transfer) == "staged");
  transfer.paths = {TransferPath::kDeviceCopy, TransferPath::kCopied};
  CHECK(path_text(transfer) == "copied");
}

TEST_CASE("placement: every device of the target, with the time of its partitions") {
  Target target;
  target.devices.resize(2);
  target.devices[0].name = "npu";
  target.devices[1].name = "cpu";
  PlanMetrics metrics;
  metrics.nodes_by_device = {{"npu", 3}, {"cpu", 0}};
  metrics.partitions_by_device = {{"npu", 2}, {"cpu", 0}};
  RunRecord record;
  record.steps.push_back({.device = "npu", .start_us = 0, .end_us = 1000});
  record.steps.push_back({.kind = StepRecord::Kind::kTransfer,
                          .device = "npu",
                          .start_us = 1000,
                          .end_us = 9000});  // not a partition: does not count
  record.steps.push_back({.device = "npu", .start_us = 9000, .end_us = 11000});
  const auto placement = summarize_placement(metrics, target, record);
  REQUIRE(placement.size() == 2);
  CHECK(placement[0].device == "npu");
  CHECK(placement[0].partitions == 2);
  CHECK(placement[0].ms == 3);
  CHECK(placement[1].nodes == 0);
  CHECK(placement[1].ms == 0);
}
