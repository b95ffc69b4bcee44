// SPDX-License-Identifier: Apache-2.0
// One rank of a plan for several processes: what it loads, what it exchanges before each layer, and
// what all of them write and report together.
//
// A rank computes its parts as a single process would, on tensors that have its own rows only; in
// between, rows cross as the plan says. Failures before the first layer are agreed on, so that one
// rank alone speaks; later ones end the process, and the launcher ends the others.
#include "gnn/ranks/rank_run.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <numeric>

#include "gnn/graph/features.hpp"
#include "gnn/model/edge_sums.hpp"
#include "gnn/ranks/option_digest.hpp"
#include "gnn/ranks/rank_output.hpp"
#include "gnn/ranks/rank_parts.hpp"
#include "gnn/ranks/run_digest.hpp"
#include "gnn/run/block_store.hpp"
#include "npu/support/ids.hpp"
#include "npu/support/progress.hpp"
#include "support/elapsed.hpp"
#include "tensor/npy.hpp"

namespace npu::gnn {
namespace {

// Rows of a .npy in C order, a piece of them at a time, in the order of the file.
Tensor read_own_features(const std::string& path, const RankLayout& layout, const Shape& shape) {
  constexpr std::size_t kPiece = std::size_t{1} << 16;
  RowFile file = RowFile::of_features(path, layout.own_nodes, shape);
  Tensor own(DType::kFloat32, {layout.row_count, shape[1]});
  std::vector<std::int32_t> order(layout.own_nodes.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
    return layout.own_nodes[index_of(a)] < layout.own_nodes[index_of(b)];
  });
  std::vector<RowToRead> piece;
  for (std::size_t first = 0; first < order.size(); first += kPiece) {
    piece.clear();
    for (std::size_t i = first; i < std::min(order.size(), first + kPiece); ++i) {
      piece.push_back({order[i], order[i]});
    }
    file.read(piece, own.as_mutable<float>());
  }
  return own;
}

bool has_readable_rows(const std::string& path) {
  if (!path.ends_with(".npy")) return false;
  const NpyLayout layout = npy_layout(path);
  return layout.dtype == DType::kFloat32 && !layout.fortran_order;
}

// The rows of some nodes. Of a .npy file in C order no others are read; one in another order or
// form is read as a whole.
Tensor own_features(const std::string& path, const RankLayout& layout, std::int64_t node_count,
                    std::int64_t width) {
  if (has_readable_rows(path)) return read_own_features(path, layout, {node_count, width});
  const Tensor all = path.ends_with(".npy") ? map_npy(path) : read_features(path);
  const Shape expected{node_count, width};
  if (all.dtype() != DType::kFloat32 || all.shape() != expected) {
    throw Error(ErrorCode::kInvalidGraph,
                "the features are " + std::string(dtype_name(all.dtype())) + " " +
                    shape_text(all.shape()) + ", expected float32 " + shape_text(expected),
                {.file = path});
  }
  Tensor own(DType::kFloat32, {layout.row_count, width});
  const std::size_t bytes = index_of(width) * sizeof(float);
  for (std::size_t row = 0; row < layout.own_nodes.size() && bytes > 0; ++row) {
    std::memcpy(own.mutable_data() + row * bytes,
                all.data() + index_of(layout.own_nodes[row]) * bytes, bytes);
  }
  return own;
}

void check_options(const RunPlanOptions& options) {
  if (!options.expect.empty()) {
    throw Error(ErrorCode::kUnsupported,
                "--expect: ranks write their result together; give --outputs and compare that");
  }
  if (!options.outputs.empty() && !options.outputs.ends_with(".npy")) {
    throw Error(ErrorCode::kUnsupported,
                "--outputs " + options.outputs + ": ranks write their result as .npy");
  }
}

std::string processes_text(std::int32_t count) {
  return std::to_string(count) + (count == 1 ? " process" : " processes");
}

}  // namespace

std::unique_ptr<RankRun> RankRun::open(const RunPlanOptions& options, GnnPlan& plan) {
  const LaunchedAs launched = launched_as();
  const std::int32_t planned =
      plan.choice.ranks ? static_cast<std::int32_t>(plan.choice.ranks->ranks.size()) : 1;
  if (launched.size != planned) {
    if (launched.rank != 0) throw FailedElsewhere{};
    throw Error(ErrorCode::kFailed,
                "the plan is for " + processes_text(planned) + ", but " +
                    processes_text(launched.size) + (launched.size == 1 ? " was" : " were") +
                    " started: use mpirun -n " + std::to_string(planned) +
                    ", or plan with npu-plan --ranks " + std::to_string(launched.size),
                {.file = options.plan});
  }
  if (!plan.choice.ranks) return nullptr;
  std::unique_ptr<RankRun> run(new RankRun(std::move(plan)));
  if (planned == 1) return run;
  run->transport_ = Transport::join("mpi", "a plan for several ranks");
  run->transport_->on_leave(options.left);
  if (run->transport_->size() == planned) return run;
  throw Error(ErrorCode::kFailed, "the launcher has started " + processes_text(planned) +
                                      ", MPI found " + std::to_string(run->transport_->size()) +
                                      ": is it the launcher of another MPI?");
}

LoadedPlan RankRun::load(const RunPlanOptions& options, PhaseTimes& times) {
  check_options(options);
  const std::int64_t plan_digest = run_digest(plan_, options);
  threads_ = options.threads;
  LoadedPlan loaded;
  loaded.model = read_plan_model(plan_, options.plan);
  const EdgeSums sums = checked_edge_sums(plan_, loaded.model, options.plan);
  {
    const GraphRows rows = read_plan_rows(plan_, options, times);
    const std::vector<std::int32_t> part_of =
        read_plan_partition(plan_, options.plan, rows.node_count());
    const PhaseTimes::Scope phase(times, "subgraphs");
    node_count_ = rows.node_count();
    layout_ = lay_out_rank(*plan_.choice.ranks, rows, part_of, rank(), options.plan, sums.is_max);
    loaded.degree = degrees(rows, sums.neutral_degree);
    if (plan_.choice.ranks->sums && !sums.factor.empty()) {
      for (const std::int32_t v : layout_.own_nodes) {
        factors_.push_back(factor_of(sums.factor, static_cast<float>(rows.degree(v))));
      }
    }
  }
  exchange_ = std::make_unique<RankExchange>(layout_, transport_.get(),
                                             plan_.choice.ranks->row_bytes, factors_, threads_);
  // They can have millions of rows, and nobody reads them again.
  for (RankPair& pair : plan_.choice.ranks->pairs) pair.cover = {};
  loaded.plan = plan_of_rank(plan_, rank());
  check_rank_parts(plan_, rank(), layout_.parts, options.plan);
  loaded.parts = std::move(layout_.parts);
  loaded.nodes = layout_.row_count;
  const PhaseTimes::Scope phase(times, "read the features");
  if (!streams()) {
    loaded.features = own_features(options.features, layout_, node_count_,
                                   loaded.model.layers.front().input_features);
  }
  loaded.weights = load_staged_weights(loaded.model, options.weights);
  OptionDigest digest;
  digest.add(plan_digest);
  digest.add(weights_digest(loaded.weights));
  digest_ = digest.value();
  return loaded;
}

// Rows that hold sums have the one whose factor is 1: what they sum has its factors already.
Tensor RankRun::degrees(const GraphRows& in_edges, float of_sums) const {
  Tensor degree(DType::kFloat32, {layout_.row_count});
  auto* values = degree.as_mutable<float>();
  std::fill_n(values, layout_.row_count, of_sums);
  for (const std::int32_t v : layout_.own_nodes) *values++ = static_cast<float>(in_edges.degree(v));
  for (const std::int32_t u : layout_.halo_nodes) {
    *values++ = static_cast<float>(in_edges.degree(u));
  }
  return degree;
}

void RankRun::limit_buffers(const std::vector<GnnDevice>& devices) const {
  constexpr std::int64_t kShare = 32;
  const PlannedRank& planned = plan_.choice.ranks->ranks[index_of(rank())];
  const std::int64_t held = streams() ? planned.streamed_bytes : planned.memory_bytes;
  for (const GnnDevice& device : devices) {
    device.buffers->keep_at_most(static_cast<std::uint64_t>(held / kShare));
  }
}

void RankRun::prepare_together(const std::function<void()>& prepare) const {
  do_together(transport_.get(), prepare);
  if (transport_ == nullptr) return;
  const bool is_same = transport_->agree_on(digest_);
  do_together(transport_.get(), [is_same] {
    if (is_same) return;
    throw Error(ErrorCode::kFailed,
                "the ranks were started with different options, or see different plans or weights "
                "under one name");
  });
  transport_->connect(layout_.from, layout_.to);
}

// Files between layers lie beside the output, which has to have room for rows as well.
StreamInputs RankRun::stream_inputs(const RunPlanOptions& options) {
  const char* temporary = std::getenv("TMPDIR");
  const std::size_t slash = options.outputs.rfind('/');
  std::string folder = temporary == nullptr || *temporary == 0 ? "/tmp" : temporary;
  if (!options.outputs.empty()) {
    folder = slash == std::string::npos ? "." : options.outputs.substr(0, slash + 1);
  }
  return {&layout_, exchange_.get(), options.plan, options.features, folder, node_count_};
}

void RankRun::write(const std::string& path, const RowsToWrite& output) const {
  write_rank_rows(path, output, layout_.own_nodes, node_count_, transport_.get());
}

std::optional<double> RankRun::predicted_ms() const {
  const std::vector<PlannedRank>& ranks = plan_.choice.ranks->ranks;
  const bool says = std::all_of(ranks.begin(), ranks.end(),
                                [](const PlannedRank& rank) { return !rank.compute_ms.empty(); });
  return says ? std::optional(plan_.choice.ranks->makespan_ms()) : std::nullopt;
}

// Every rank fills in its own numbers, which add up to all of them.
std::vector<RankReport::Rank> RankRun::measured_ranks(const RankReport& own, double run_ms,
                                                      const RowReads& reads) const {
  constexpr std::size_t kNumbers = 6;
  double held_ms = 0;
  for (const RankReport::Layer& layer : own.layers) held_ms += layer.ms - layer.hidden_ms;
  const auto microseconds = [](double ms) { return std::llround(ms * 1e3); };
  std::vector<std::int64_t> numbers(kNumbers * index_of(size()), 0);
  std::int64_t* const mine = numbers.data() + kNumbers * index_of(rank());
  mine[0] = microseconds(run_ms - held_ms);
  mine[1] = microseconds(held_ms);
  mine[2] = peak_rss_bytes();
  mine[3] = reads.blocks;
  mine[4] = reads.bytes;
  mine[5] = reads.rows;
  if (transport_ != nullptr) transport_->sum(numbers);
  std::vector<RankReport::Rank> ranks;
  for (const PlannedRank& planned : plan_.choice.ranks->ranks) {
    const std::size_t r = ranks.size();
    const std::int64_t* const measured = numbers.data() + kNumbers * r;
    RankReport::Rank& rank = ranks.emplace_back();
    if (!planned.compute_ms.empty()) {
      rank.predicted_ms =
          std::accumulate(planned.compute_ms.begin(), planned.compute_ms.end(), 0.0);
    }
    rank.compute_ms = static_cast<double>(measured[0]) / 1e3;
    rank.held_ms = static_cast<double>(measured[1]) / 1e3;
    rank.streams = plan_.choice.ranks->streams(r);
    rank.planned_bytes = rank.streams ? planned.streamed_bytes : planned.memory_bytes;
    rank.peak_bytes = measured[2];
    rank.blocks_read = measured[3];
    rank.bytes_read = measured[4];
    const auto layers = static_cast<double>(plan_.choice.ranks->row_bytes.size());
    if (planned.nodes > 0) {
      rank.reads_of_row =
          static_cast<double>(measured[5]) / (static_cast<double>(planned.nodes) * layers);
    }
  }
  return ranks;
}

RankReport RankRun::finish(Clock::time_point start, double run_ms, const RowReads& reads) {
  RankReport report;
  report.size = size();
  report.exchange = plan_.choice.ranks->sums ? "cover" : "features";
  report.exchanges = exchange_->count();
  report.planned_rows = plan_.choice.ranks->rows();
  report.exchange_ms = exchange_->ms();
  report.hidden_ms = exchange_->hidden_ms();
  for (const LayerExchange& exchange : exchange_->last_run()) {
    const auto since = [&](Clock::time_point when) {
      return std::chrono::duration<double, std::milli>(when - start).count();
    };
    report.layers.push_back({static_cast<std::int32_t>(exchange.layer) + 1, since(exchange.begin),
                             since(exchange.end), exchange.ms, exchange.hidden_ms});
  }
  report.bytes = exchange_->bytes_sent();
  report.ranks = measured_ranks(report, run_ms, reads);
  const std::size_t ranks = index_of(size());
  std::vector<std::int64_t> rows(ranks * ranks, 0);  // by sender and receiver
  for (std::size_t i = 0; i < layout_.to.ranks.size(); ++i) {
    rows[index_of(rank()) * ranks + index_of(layout_.to.ranks[i])] = layout_.to.rows[i];
  }
  if (transport_ != nullptr) {
    transport_->sum(rows);
    transport_->sum({&report.bytes, 1});
    transport_->leave();
  }
  for (const RankPair& pair : plan_.choice.ranks->pairs) {
    const std::int64_t sent = rows[index_of(pair.from) * ranks + index_of(pair.to)];
    report.rows += sent;
    report.pairs.push_back({pair.from, pair.to, sent, pair.rows});
  }
  return report;
}

}  // namespace npu::gnn
