// SPDX-License-Identifier: Apache-2.0
// What the processes that a launcher has started do for one plan: each reads its share of the
// graph, PT-Scotch cuts it in all of them, and the first one collects the parts, lets the others go
// and plans alone.
//
// The first process reads everything but the graph before that, so that wrong options are found at
// once, and the whole graph afterwards, when its share and what PT-Scotch took are free again. A
// process holds its share (gnn/graph/graph_share.cpp) and what PT-Scotch makes of it; the first one
// 4 bytes a node for every number of parts and seed besides. Every cut is collective, and so are
// failures: one process speaks.
#include "gnn/ranks/plan_together.hpp"

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "gnn/graph/edge_rows.hpp"
#include "gnn/graph/graph_share.hpp"
#include "gnn/plan/document/check_plan.hpp"
#include "gnn/plan/part_counts.hpp"
#include "gnn/ranks/option_digest.hpp"
#include "npu/support/ids.hpp"
#include "transport/share_partitioner.hpp"
#include "transport/transport.hpp"

namespace npu::gnn {
namespace {

constexpr const char* kPartitionerName = "ptscotch";
// Nodes whose parts are collected at a time.
constexpr std::int64_t kCollected = std::int64_t{1} << 20;

void add_settings(const PlanSettings& settings, OptionDigest& digest) {
  digest.add(settings.greedy);
  digest.add(settings.transfers);
  digest.add(static_cast<std::int64_t>(settings.interpolation));
  digest.add_all(settings.ratios);
  digest.add(settings.max_segments);
  digest.add(settings.top_k);
  digest.add(settings.target);
  digest.add_all(settings.devices);
  for (const ExcludedStages& excluded : settings.excluded) {
    digest.add(excluded.device);
    digest.add_all(excluded.stages);
  }
  for (const MemoryLimit& limit : settings.memory) {
    digest.add(limit.device);
    digest.add(limit.bytes);
  }
  for (const ResourceName& name : settings.resources) {
    digest.add(name.device);
    digest.add(name.resource);
  }
}

// What all processes have to have been asked for alike: every option that changes the plan.
std::int64_t digest_of(const MakePlanOptions& options) {
  OptionDigest digest;
  for (const std::string& word :
       {options.graph, options.subgraphs, options.model, options.profile, options.bandwidths,
        options.output, options.partition_file, options.csr_file}) {
    digest.add(word);
  }
  digest.add(std::int64_t{options.graph_options.node_count.value_or(-1)});
  digest.add(options.graph_options.undirected);
  digest.add_all(options.part_counts);
  digest.add(static_cast<std::int64_t>(options.seed));
  digest.add(options.seed_count);
  digest.add(options.node_imbalance);
  digest.add(options.edge_imbalance);
  digest.add(options.minimize_volume);
  digest.add(static_cast<std::int64_t>(options.partitioner));
  digest.add(options.pad);
  digest.add(options.rank_count);
  digest.add(options.rank_memory);
  digest.add(options.rank_link ? options.rank_link->bytes_per_second : std::int64_t{-1});
  digest.add(options.rank_link ? options.rank_link->latency_us : -1.0);
  digest.add(options.rank_links);
  digest.add(options.features_only);
  add_settings(options.settings, digest);
  return digest.value();
}

struct CutJob {
  std::int32_t count = 2;
  std::uint64_t seed = 0;
};

class PlanProcesses {
 public:
  PlanProcesses(const MakePlanOptions& options, Diagnostics& diagnostics,
                std::unique_ptr<Transport> processes)
      : options_(options),
        graph_options_(options.graph_options),
        diagnostics_(diagnostics),
        processes_(std::move(processes)) {
    check_start();
  }

  std::unique_ptr<PlanInput> read() {
    std::unique_ptr<PlanInput> input;
    do_together(processes_.get(), [&] {
      if (is_first()) input = read_plan_facts(options_, diagnostics_);
    });
    // The first process alone has the model, which may want loops.
    const bool has_model = input != nullptr && input->model;
    const bool has_no_say = input == nullptr || (has_model && input->model->one_loop);
    graph_options_.one_loop = processes_->smallest(has_no_say ? 1 : 0) == 1;
    const std::string refusal = refusal_of_all();
    const bool is_named = options_.partitioner == Partitioner::kPtScotch;
    do_together(processes_.get(), [&] {
      if (!refusal.empty() && is_named && is_first()) {
        throw Error(ErrorCode::kUnsupported, "--partitioner ptscotch: " + refusal);
      }
    });
    if (refusal.empty()) {
      PhaseTimes times;
      FoundCuts found = cut(times);
      if (is_first()) {
        input->times.add(times);
        input->found = std::move(found);
      }
    }
    processes_->leave();
    processes_.reset();
    if (input == nullptr) return nullptr;
    if (!refusal.empty() && !options_.graph.empty() &&
        options_.partitioner == Partitioner::kAutomatic) {
      diagnostics_.note({.file = options_.graph},
                        "the first process cuts the graph by METIS: " + refusal);
    }
    read_plan_graph(options_, *input, diagnostics_);
    return input;
  }

 private:
  bool is_first() const { return processes_->rank() == 0; }

  // Processes that do not find one another, or that have other things to do.
  void check_start() const {
    const LaunchedAs launched = launched_as();
    if (processes_->size() != launched.size) {
      if (launched.rank != 0) throw FailedElsewhere{};
      throw Error(ErrorCode::kFailed, "the launcher has started " +
                                          count_text(launched.size, "process", "processes") +
                                          ", MPI found " + std::to_string(processes_->size()) +
                                          ": is it the launcher of another MPI?");
    }
    std::int64_t own = 0;
    do_together(processes_.get(), [&] { own = digest_of(options_); });
    const bool is_same = processes_->agree_on(own);
    do_together(processes_.get(), [&] {
      if (is_same) return;
      throw Error(ErrorCode::kUsage,
                  "the processes of one launcher were started with different options; those of "
                  "one plan get the same, and for plans of their own they are started by 'env -u " +
                      std::string(launched.size_variable) + " npu-plan'");
    });
  }

  // Why PT-Scotch does not cut the graph; empty if it does. Loads it.
  std::string own_refusal() {
    if (options_.partitioner != Partitioner::kAutomatic &&
        options_.partitioner != Partitioner::kPtScotch) {
      return "another partitioner is named";
    }
    if (options_.graph.empty()) return "there is no GRAPH to cut";
    if (options_.minimize_volume) return "PT-Scotch does not look for a small halo";
    try {
      if (!has_shares(options_.graph)) {
        return "PT-Scotch gets shares of a graph in binary form, which npu-plan --csr writes";
      }
      partitioner_.emplace(kPartitionerName);
    } catch (const Error& error) {
      // The first process needs the graph whoever cuts it.
      if (is_first() && error.code() != ErrorCode::kUnsupported) throw;
      return error.message();
    }
    return {};
  }

  // The same in all processes, but for its words.
  std::string refusal_of_all() {
    std::string refusal;
    do_together(processes_.get(), [&] { refusal = own_refusal(); });
    const std::int64_t first =
        processes_->smallest(refusal.empty() ? processes_->size() : processes_->rank());
    if (first == processes_->size() || !refusal.empty()) return refusal;
    return "process " + std::to_string(first) + " does not see the graph or has no PT-Scotch";
  }

  FoundCuts cut(PhaseTimes& times) {
    std::optional<PhaseTimes::Scope> phase;
    phase.emplace(times, "read shares");
    const GraphShare share = read_graph_share(options_.graph, graph_options_, *processes_);
    phase.emplace(times, "partition");
    FoundCuts found{kPartitionerName, processes_->size(), {}};
    std::vector<CutJob> jobs;
    do_together(processes_.get(), [&] {
      check_pad(options_.pad, share.all_nodes, share.all_in_edges);
      jobs = jobs_of(share);
    });
    for (const CutJob& job : jobs) {
      do_together(processes_.get(), [&] {
        if (!is_first()) return;
        report_progress(options_.progress, 0, "partition into " + std::to_string(job.count));
        found.parts.push_back({job.count, job.seed, {}});
        found.parts.back().part_of.reserve(index_of(share.all_nodes));
      });
      const std::vector<std::int32_t> own =
          partitioner_->cut(*processes_, share.view(), job.count, goal(), job.seed);
      collect(share, own, is_first() ? &found.parts.back().part_of : nullptr);
    }
    return found;
  }

  // The heaviest part over the mean, less 1, that both weights allow.
  double goal() const { return std::min(options_.node_imbalance, options_.edge_imbalance) - 1; }

  // Numbers of parts with seeds, but for cuts that take no partitioner.
  std::vector<CutJob> jobs_of(const GraphShare& share) const {
    std::vector<CutJob> jobs;
    Diagnostics ignored;  // the first process warns later
    for (const std::int32_t count : counts_to_try(options_, share.all_nodes, ignored)) {
      if (count < 2 || count >= share.all_nodes || share.all_entries == 0) continue;
      for (std::int32_t s = 0; s < options_.seed_count; ++s) {
        jobs.push_back({count, options_.seed + static_cast<std::uint64_t>(s)});
      }
    }
    return jobs;
  }

  // Adds the parts of all nodes to `all`, which has room for them, in the process that gives it.
  void collect(const GraphShare& share, const std::vector<std::int32_t>& own,
               std::vector<std::int32_t>* all) const {
    std::vector<std::int64_t> numbers;
    do_together(processes_.get(),
                [&] { numbers.resize(index_of(std::min(kCollected, share.all_nodes))); });
    const auto own_nodes = static_cast<std::int64_t>(own.size());
    for (std::int64_t begin = 0; begin < share.all_nodes; begin += kCollected) {
      const std::int64_t count = std::min(kCollected, share.all_nodes - begin);
      const std::span<std::int64_t> piece = std::span(numbers).first(index_of(count));
      std::fill(piece.begin(), piece.end(), 0);
      const std::int64_t from = std::max(begin, std::int64_t{share.first});
      const std::int64_t to = std::min(begin + count, share.first + own_nodes);
      for (std::int64_t v = from; v < to; ++v) {
        piece[index_of(v - begin)] = own[index_of(v - share.first)];
      }
      processes_->sum(piece);
      if (all == nullptr) continue;
      for (const std::int64_t part : piece) all->push_back(static_cast<std::int32_t>(part));
    }
  }

  const MakePlanOptions& options_;
  GraphReadOptions graph_options_;
  Diagnostics& diagnostics_;
  std::unique_ptr<Transport> processes_;
  std::optional<SharePartitioner> partitioner_;
};

}  // namespace

bool plans_together(const MakePlanOptions& options) {
  return options.partitioner == Partitioner::kPtScotch || launched_as().size > 1;
}

std::unique_ptr<PlanInput> read_together(const MakePlanOptions& options, Diagnostics& diagnostics) {
  const bool is_named = options.partitioner == Partitioner::kPtScotch;
  std::unique_ptr<Transport> processes;
  try {
    processes = Transport::join(
        "mpi", is_named ? "--partitioner ptscotch" : "planning in several processes");
  } catch (const Error& error) {
    if (is_named || error.code() != ErrorCode::kUnsupported) throw;
    if (launched_as().rank != 0) return nullptr;
    diagnostics.note({}, "the first process plans alone: " + error.message());
  }
  if (processes == nullptr) return read_plan_input(options, diagnostics);
  return PlanProcesses(options, diagnostics, std::move(processes)).read();
}

}  // namespace npu::gnn
