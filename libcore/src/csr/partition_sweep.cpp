// SPDX-License-Identifier: Apache-2.0
// Cuts a graph into several numbers of parts. Every number and seed is a job of its own, in a
// process of its own where that is quicker; the best seed of each number is kept, in the order of
// seeds, so that it does not matter which job ends first.
//
// METIS takes most of the time. On a big graph it works on a coarsened one instead, with two seeds,
// of which the better one is refined: O(nodes + entries) for the coarse graphs, and METIS's time on
// the smallest and O(nodes + entries) for each job.
#include "csr/partition_sweep.hpp"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <thread>

#include "csr/finish_partition.hpp"
#include "csr/multilevel/multilevel_graph.hpp"
#include "csr/part_limits.hpp"
#include "npu/support/error.hpp"
#include "npu/support/ids.hpp"
#include "support/forked_jobs.hpp"
#include "support/free_memory.hpp"
#include "support/mixed.hpp"

namespace npu {
namespace {

constexpr std::int32_t kCoarseSeeds = 2;

// What METIS allocates, rounded up (5.1.0: 51 bytes for an entry of a graph of 7.8 million).
constexpr std::int64_t kMetisBytesPerEntry = 64;
constexpr std::int64_t kMetisBytesPerNode = 128;

struct SweepJob {
  std::size_t request = 0;  // into part_counts
  std::uint64_t seed = 0;
};

// A partition as bytes of a fixed size, for the way from one process to another.
class PartitionBytes {
 public:
  explicit PartitionBytes(const CsrGraph& graph)
      : nodes_(index_of(graph.node_count())), weights_(index_of(graph.node_weight_count)) {}

  std::size_t size() const noexcept {
    return sizeof(Head) + weights_ * sizeof(double) + nodes_ * sizeof(std::int32_t);
  }

  void write(const GraphPartition& partition, std::byte* to) const {
    const Head head{partition.part_count, partition.repaired_parts, partition.seed,
                    partition.edge_cut};
    std::memcpy(to, &head, sizeof head);
    std::memcpy(to + sizeof head, partition.imbalance.data(), weights_ * sizeof(double));
    std::memcpy(to + sizeof head + weights_ * sizeof(double), partition.part_of.data(),
                nodes_ * sizeof(std::int32_t));
  }

  GraphPartition read(const std::byte* from) const {
    Head head;
    std::memcpy(&head, from, sizeof head);
    GraphPartition partition;
    partition.part_count = head.part_count;
    partition.repaired_parts = head.repaired_parts;
    partition.seed = head.seed;
    partition.edge_cut = head.edge_cut;
    partition.imbalance.resize(weights_);
    partition.part_of.resize(nodes_);
    std::memcpy(partition.imbalance.data(), from + sizeof head, weights_ * sizeof(double));
    std::memcpy(partition.part_of.data(), from + sizeof head + weights_ * sizeof(double),
                nodes_ * sizeof(std::int32_t));
    partition.hash = partition_hash(partition.part_of);
    return partition;
  }

 private:
  struct Head {
    std::int32_t part_count = 0;
    std::int32_t repaired_parts = 0;
    std::uint64_t seed = 0;
    std::int64_t edge_cut = 0;
  };
  std::size_t nodes_;
  std::size_t weights_;
};

bool is_multilevel(const CsrGraph& graph, const SweepOptions& options) {
  if (options.partitioner != Partitioner::kAutomatic) {
    return options.partitioner == Partitioner::kMultilevel;
  }
  return graph.entry_count() / 2 >= kManyEdges && !options.metis.minimize_volume;
}

std::size_t thread_count(int threads) {
  return threads > 0 ? static_cast<std::size_t>(threads)
                     : std::max(1U, std::thread::hardware_concurrency());
}

class Sweep {
 public:
  Sweep(const CsrGraph& graph, const SweepOptions& options)
      : graph_(graph),
        options_(options),
        threads_(thread_count(options.threads)),
        bytes_(graph),
        best_(options.part_counts.size()) {
    for (std::size_t r = 0; r < options.part_counts.size(); ++r) {
      for (std::int32_t s = 0; s < options.metis.seed_count; ++s) {
        jobs_.push_back({r, options.metis.seed + static_cast<std::uint64_t>(s)});
        if (options.part_counts[r] == 1) break;
      }
    }
  }

  void coarsen() {
    MetisOptions most = options_.metis;
    most.part_count = *std::max_element(options_.part_counts.begin(), options_.part_counts.end());
    check_cut(graph_, most);
    levels_.emplace(graph_, most.part_count, threads_);
  }

  void run() {
    run_forked({.count = jobs_.size(),
                .side_by_side = side_by_side(),
                .bytes = bytes_.size(),
                .work =
                    [this](std::size_t job, bool in_child, std::span<std::byte> result) {
                      bytes_.write(cut(jobs_[job], in_child ? 1 : threads_), result.data());
                    },
                .done =
                    [this](std::size_t job, std::span<const std::byte> result) {
                      keep(job, bytes_.read(result.data()));
                    },
                .wait = [this] { report(); }});
  }

  PartitionSweep result() {
    PartitionSweep sweep;
    for (auto& best : best_) sweep.partitions.push_back(std::move(best.partition));
    if (levels_) {
      sweep.levels = static_cast<std::int32_t>(levels_->level_count());
      sweep.coarsest_nodes = levels_->coarsest().node_count();
    }
    return sweep;
  }

 private:
  struct Best {
    GraphPartition partition;
    std::pair<std::int64_t, std::int64_t> rank;
    std::optional<std::size_t> job;
  };

  std::size_t side_by_side() const {
    const CsrGraph& graph = levels_ ? levels_->coarsest() : graph_;
    const std::int64_t each = kMetisBytesPerEntry * graph.entry_count() +
                              kMetisBytesPerNode * std::int64_t{graph.node_count()} +
                              static_cast<std::int64_t>(bytes_.size()) * 2;
    const std::int64_t fit = free_memory_bytes() / std::max<std::int64_t>(each, 1);
    return std::clamp<std::size_t>(static_cast<std::size_t>(fit), 1, threads_);
  }

  GraphPartition cut(const SweepJob& job, std::size_t threads) const {
    MetisOptions options = options_.metis;
    options.part_count = options_.part_counts[job.request];
    options.seed = job.seed;
    options.seed_count = 1;
    if (!levels_) return partition_with_metis(graph_, options);
    if (options.part_count == 1) {
      return finish_partition(graph_, 1, std::vector<std::int32_t>(index_of(graph_.node_count())),
                              job.seed);
    }
    // METIS's seeds 0 and 1 are the same.
    options.seed = mixed(kCoarseSeeds * job.seed + 1);
    options.seed_count = kCoarseSeeds;
    options.minimize_volume = false;
    std::vector<std::int32_t> part_of = partition_with_metis(levels_->coarsest(), options).part_of;
    part_of = levels_->refined(std::move(part_of), part_limits(graph_, options), threads);
    return finish_partition(graph_, options.part_count, std::move(part_of), job.seed);
  }

  // Of equal partitions the one with the first seed is kept.
  void keep(std::size_t job, GraphPartition partition) {
    ++done_;
    Best& best = best_[jobs_[job].request];
    MetisOptions options = options_.metis;
    options.part_count = partition.part_count;
    const auto rank = options.seed_count > 1 ? partition_rank(graph_, options, partition)
                                             : std::pair<std::int64_t, std::int64_t>();
    if (best.job && (best.rank < rank || (best.rank == rank && *best.job < job))) return;
    best = {std::move(partition), rank, job};
  }

  void report() const {
    report_progress(options_.progress,
                    static_cast<double>(done_) / static_cast<double>(jobs_.size()), "partition");
  }

  const CsrGraph& graph_;
  const SweepOptions& options_;
  std::size_t threads_;
  PartitionBytes bytes_;
  std::vector<SweepJob> jobs_;
  std::optional<MultilevelGraph> levels_;
  std::vector<Best> best_;  // by request
  std::size_t done_ = 0;
};

}  // namespace

PartitionSweep partition_sweep(const CsrGraph& graph, const SweepOptions& options,
                               PhaseTimes& times) {
  if (options.partitioner == Partitioner::kPtScotch) {
    throw Error(ErrorCode::kUsage, "PT-Scotch cuts no graph in a single process");
  }
  if (options.part_counts.empty()) return {};
  Sweep sweep(graph, options);
  if (is_multilevel(graph, options)) {
    const PhaseTimes::Scope phase(times, "coarsen");
    sweep.coarsen();
  }
  const PhaseTimes::Scope phase(times, "partition");
  sweep.run();
  return sweep.result();
}

}  // namespace npu
