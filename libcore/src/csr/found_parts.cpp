// SPDX-License-Identifier: Apache-2.0
// Makes a sweep of parts that were found elsewhere, by several processes for example: checks them,
// moves them to the balance that METIS would have aimed at, and keeps the best of each number.
// O(nodes log nodes + entries) for each partition, a few times where balance is far off, as
// csr/part_limits.cpp says.
#include "csr/found_parts.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "csr/finish_partition.hpp"
#include "csr/part_limits.hpp"
#include "npu/support/error.hpp"
#include "npu/support/ids.hpp"

namespace npu {
namespace {

void check_found(const CsrGraph& graph, const FoundParts& found) {
  const bool fits = std::all_of(found.part_of.begin(), found.part_of.end(), [&](std::int32_t part) {
    return part >= 0 && part < found.part_count;
  });
  if (fits && found.part_of.size() == index_of(graph.node_count())) return;
  throw Error(ErrorCode::kInvalidGraph, std::to_string(found.part_count) +
                                            " parts that were found do not fit the graph of " +
                                            std::to_string(graph.node_count()) + " nodes");
}

}  // namespace

PartitionSweep sweep_of_found(const CsrGraph& graph, const SweepOptions& options,
                              const std::vector<FoundParts>& found, PhaseTimes& times) {
  const PhaseTimes::Scope phase(times, "balance");
  const std::size_t threads = options.threads > 0
                                  ? static_cast<std::size_t>(options.threads)
                                  : std::max(1U, std::thread::hardware_concurrency());
  PartitionSweep sweep;
  if (options.part_counts.empty()) return sweep;
  MetisOptions metis = options.metis;
  metis.part_count = *std::max_element(options.part_counts.begin(), options.part_counts.end());
  check_cut(graph, metis);  // walks the graph
  for (const std::int32_t count : options.part_counts) {
    metis.part_count = count;
    std::optional<GraphPartition> best;
    for (const FoundParts& parts : found) {
      if (parts.part_count != count) continue;
      check_found(graph, parts);
      std::vector<std::int32_t> part_of = parts.part_of;
      balance_parts(graph, part_limits(graph, metis), part_of, threads);
      GraphPartition partition = finish_partition(graph, count, std::move(part_of), parts.seed);
      if (best && partition_rank(graph, metis, *best) <= partition_rank(graph, metis, partition)) {
        continue;
      }
      best = std::move(partition);
    }
    if (!best) best = partition_with_metis(graph, metis);
    sweep.partitions.push_back(*std::move(best));
    report_progress(options.progress,
                    static_cast<double>(sweep.partitions.size()) /
                        static_cast<double>(options.part_counts.size()),
                    "partition");
  }
  return sweep;
}

}  // namespace npu
