// SPDX-License-Identifier: Apache-2.0
// One rank of a plan for several processes: what it loads, what it exchanges before each layer, and
// what all of them write and report together.
//
// A rank computes its parts as a single process would, on tensors that have its own rows only; in
// between, rows cross as the plan says. Failures before the first layer are agreed on, so that one
// rank alone speaks; later ones end the process, and the launcher ends the others.
#include "gnn/run/rank_run.hpp"

#include <algorithm>
#include <cstring>

#include "gnn/model/edge_sums.hpp"
#include "gnn/run/rank_output.hpp"
#include "npu/gnn/features.hpp"
#include "npu/support/elapsed.hpp"
#include "npu/support/ids.hpp"
#include "tensor/npy.hpp"

namespace npu::gnn {
namespace {

// The rows of some nodes; those of a .npy file are mapped, so that others are never read.
Tensor own_features(const std::string& path, const RankLayout& layout, std::int64_t node_count,
                    std::int64_t width) {
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

// Not kUsage: all processes are to end with the same status.
void check_options(const RunOptions& options) {
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

std::unique_ptr<RankRun> RankRun::open(const RunOptions& options, Plan& plan) {
  const LaunchedAs launched = launched_as();
  const std::int32_t planned = plan.ranks ? static_cast<std::int32_t>(plan.ranks->ranks.size()) : 1;
  if (launched.size != planned) {
    if (launched.rank != 0) throw FailedElsewhere{};
    throw Error(ErrorCode::kFailed,
                "the plan is for " + processes_text(planned) + ", but " +
                    processes_text(launched.size) + (launched.size == 1 ? " was" : " were") +
                    " started: use mpirun -n " + std::to_string(planned) +
                    ", or plan with npu-plan --ranks " + std::to_string(launched.size),
                {.file = options.plan});
  }
  if (!plan.ranks) return nullptr;
  std::unique_ptr<RankRun> run(new RankRun(std::move(plan)));
  if (planned == 1) return run;
  run->transport_ = Transport::join("mpi");
  if (run->transport_->size() == planned) return run;
  throw Error(ErrorCode::kFailed, "the launcher has started " + processes_text(planned) +
                                      ", MPI found " + std::to_string(run->transport_->size()) +
                                      ": is it the launcher of another MPI?");
}

LoadedPlan RankRun::load(const RunOptions& options, PhaseTimes& times) {
  check_options(options);
  threads_ = options.threads;
  LoadedPlan loaded;
  loaded.model = read_plan_model(plan_, options.plan);
  {
    const GraphRows rows = read_plan_rows(plan_, options, times);
    const std::vector<std::int32_t> part_of =
        read_plan_partition(plan_, options.plan, rows.node_count());
    const PhaseTimes::Scope phase(times, "subgraphs");
    node_count_ = rows.node_count();
    layout_ = lay_out_rank(plan_, rows, part_of, rank(), options.plan);
    loaded.degree = degrees(rows);
  }
  // They can have millions of rows, and nobody reads them again.
  for (RankPair& pair : plan_.ranks->pairs) pair.cover = {};
  loaded.plan = plan_of_rank(plan_, rank());
  check_parts(options.plan);
  if (const std::string refusal = edge_sum_refusal(loaded.model);
      plan_.ranks->sums && !refusal.empty()) {
    throw Error(ErrorCode::kInvalidGraph, "only features may cross: " + refusal,
                {.file = options.plan, .pointer = "/ranks/exchange"});
  }
  loaded.parts = std::move(layout_.parts);
  loaded.nodes = layout_.row_count;
  const PhaseTimes::Scope phase(times, "read the features");
  loaded.features = own_features(options.features, layout_, node_count_,
                                 loaded.model.layers.front().input_features);
  loaded.weights = load_staged_weights(loaded.model, options.weights);
  return loaded;
}

// The rank's parts have as many nodes and edges as the plan says: else the graph is another one.
void RankRun::check_parts(const std::string& file) const {
  const std::vector<std::int32_t>& own = plan_.ranks->ranks[index_of(rank())].parts;
  for (const PlanSubgraph& stated : plan_.subgraphs) {
    const SubgraphSize& size = stated.size;
    if (std::find(own.begin(), own.end(), size.id) == own.end()) continue;
    const Subgraph& part = layout_.parts[index_of(size.id)];
    const auto edges = static_cast<std::int64_t>(part.sources.size());
    if (size.n - size.halo == part.owned && size.m == edges) continue;
    throw Error(ErrorCode::kInvalidGraph,
                "part " + std::to_string(size.id) + " has " + std::to_string(part.owned) +
                    " nodes and " + std::to_string(edges) + " edges in the graph, in the plan " +
                    std::to_string(size.n - size.halo) + " and " + std::to_string(size.m),
                {.file = file});
  }
}

// Sums have none: a layer that reads degrees by edge exchanges features.
Tensor RankRun::degrees(const GraphRows& in_edges) const {
  Tensor degree(DType::kFloat32, {layout_.row_count});
  auto* values = degree.as_mutable<float>();
  for (const std::int32_t v : layout_.own_nodes) *values++ = static_cast<float>(in_edges.degree(v));
  for (const std::int32_t u : layout_.halo_nodes) {
    *values++ = static_cast<float>(in_edges.degree(u));
  }
  return degree;
}

void RankRun::prepare_together(const std::function<void()>& prepare) const {
  do_together(transport_.get(), prepare);
  if (transport_ != nullptr) transport_->connect(layout_.from, layout_.to);
}

void RankRun::before_layer(Tensor& x) {
  const auto start = Clock::now();
  const std::int64_t width = x.shape()[1];
  const std::int64_t own = layout_.own_count();
  auto* rows = x.as_mutable<float>();
  const bool sums = plan_.ranks->sums;
  if (transport_ != nullptr) {
    out_.resize(index_of(layout_.sent.size() * width));
    layout_.sent.compute({rows, own, nullptr, width}, out_.data(), threads_);
    float* in = rows + own * width;
    if (sums) {
      in_.resize(index_of(layout_.received * width));
      in = in_.data();
    }
    const auto row_bytes = width * static_cast<std::int64_t>(sizeof(float));
    transport_->exchange(out_.data(), in, row_bytes);
    ++exchanges_;
    bytes_sent_ += layout_.sent.size() * row_bytes;
  }
  layout_.local.compute({rows, own, in_.data(), width}, rows + own * width, threads_);
  exchange_ms_ += milliseconds_since(start);
}

void RankRun::write(const std::string& path, const Tensor& output) const {
  write_rank_rows(path, output, layout_.own_nodes, node_count_, transport_.get());
}

RankReport RankRun::finish() {
  RankReport report;
  report.size = size();
  report.exchange = plan_.ranks->sums ? "cover" : "features";
  report.exchanges = exchanges_;
  report.planned_rows = plan_.ranks->rows();
  report.exchange_ms = exchange_ms_;
  report.bytes = bytes_sent_;
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
  for (const RankPair& pair : plan_.ranks->pairs) {
    const std::int64_t sent = rows[index_of(pair.from) * ranks + index_of(pair.to)];
    report.rows += sent;
    report.pairs.push_back({pair.from, pair.to, sent, pair.rows});
  }
  return report;
}

}  // namespace npu::gnn
