// SPDX-License-Identifier: Apache-2.0
// Computes a rank out of core. In memory are the edges, the rows of one part before and after a
// layer, and those that cross; rows of the other parts are in a file, the features in their own.
//
// A part is computed as a plan of its own over the rows that it reads, by the same programs in the
// same shapes as with all rows in memory, so the bits are the same. O(edges) besides the work, and
// for every part one pass over the rows that it reads.
#include "gnn/ranks/rank_stream.hpp"

#include <algorithm>
#include <utility>

#include "gnn/run/plan_loader.hpp"
#include "gnn/run/task_graph.hpp"
#include "npu/support/ids.hpp"
#include "support/elapsed.hpp"

namespace npu::gnn {
namespace {

// Nothing of the plan but what one part runs by in one layer.
GnnPlan plan_of_part(const GnnPlan& plan, std::int32_t part, std::int32_t layer) {
  GnnPlan own;
  own.choice.k = plan.choice.k;
  own.choice.pad = plan.choice.pad;
  own.devices = plan.devices;
  own.choice.device_plans = plan.choice.device_plans;
  for (const PlanCluster& cluster : plan.choice.clusters) {
    const auto& members = cluster.subgraphs;
    if (cluster.layer != layer || std::find(members.begin(), members.end(), part) == members.end())
      continue;
    own.choice.clusters.push_back({layer, cluster.device_plan, {part}});
  }
  return own;
}

}  // namespace

RankStream::RankStream(const LoadedPlan& loaded, const std::vector<GnnDevice>& devices,
                       const StreamInputs& inputs, PlanExecutorOptions options)
    : loaded_(loaded),
      devices_(devices),
      inputs_(inputs),
      options_(std::move(options)),
      table_(loaded.model, loaded.weights, devices, loaded.plan.choice.pad, options_.units) {
  for (std::size_t p = 0; p < loaded.parts.size(); ++p) {
    if (loaded.parts[p].owned > 0) parts_.push_back(static_cast<std::int32_t>(p));
  }
  const auto reads_late = [&](std::int32_t part) {
    const std::vector<std::int32_t>& rows = loaded_.parts[index_of(part)].nodes;
    const std::vector<char>& late = inputs_.layout->late;
    return std::any_of(rows.begin(), rows.end(),
                       [&](std::int32_t row) { return late[index_of(row)] != 0; });
  };
  std::stable_partition(parts_.begin(), parts_.end(),
                        [&](std::int32_t part) { return !reads_late(part); });
  // What can fail is tried here, where ranks agree on who speaks.
  open_features();
  RowFile::scratch(inputs_.folder, 1);
  for (std::size_t l = 0; l < loaded.model.layers.size(); ++l) {
    const auto layer = static_cast<std::int32_t>(l) + 1;
    for (const std::int32_t part : parts_) {
      std::vector<Subgraph> parts(loaded.parts.size());
      parts[index_of(part)] = loaded.parts[index_of(part)];
      const TaskGraph graph =
          build_task_graph(plan_of_part(loaded.plan, part, layer), {parts}, loaded.nodes,
                           stage_counts(loaded.model), inputs_.plan_file, l);
      for (const ShareTask& task : graph.layers[l]) table_.block(layer, task, task.device);
    }
  }
}

RowFile RankStream::open_features() const {
  return RowFile::of_features(inputs_.features, inputs_.layout->own_nodes,
                              {inputs_.node_count, loaded_.model.layers.front().input_features});
}

std::size_t RankStream::task_count() const {
  std::size_t count = 0;
  for (const PlanCluster& cluster : loaded_.plan.choice.clusters) {
    std::size_t shares = 0;
    for (const auto& segment :
         loaded_.plan.choice.device_plans[index_of(cluster.device_plan)].segments) {
      shares += segment.shares.size();
    }
    count += shares * cluster.subgraphs.size();
  }
  return count;
}

void RankStream::execute() {
  started_ = Clock::now();
  executed_.clear();
  reads_ = {};
  rows_ = open_features();
  for (std::size_t l = 0; l < loaded_.model.layers.size(); ++l) {
    next_ = RowFile::scratch(inputs_.folder, loaded_.model.layers[l].output_features);
    inputs_.exchange->begin(l, *rows_);
    for (const std::int32_t part : parts_) run_part(l, part);
    inputs_.exchange->await();  // if no part did
    reads_.blocks += rows_->reads().blocks;
    reads_.bytes += rows_->reads().bytes;
    reads_.rows += rows_->reads().rows;
    rows_ = std::move(next_);
  }
}

void RankStream::run_part(std::size_t layer, std::int32_t part) {
  const LoadedPlan own = load_part(layer, part);
  PlanExecutorOptions options = options_;
  options.blocks = &table_;
  options.layer = layer;
  PlanExecutor executor(own, devices_, inputs_.plan_file, std::move(options));
  executor.execute();
  note(executor, layer);
  const Subgraph& nodes = loaded_.parts[index_of(part)];
  next_->write(nodes.nodes.front(), executor.output().as<float>(), nodes.owned);
}

// A part with the rows that it reads.
LoadedPlan RankStream::load_part(std::size_t layer, std::int32_t part) {
  const Subgraph& stated = loaded_.parts[index_of(part)];
  const auto count = static_cast<std::int64_t>(stated.nodes.size());
  const std::int64_t width = loaded_.model.layers[layer].input_features;
  LoadedPlan own;
  own.plan = plan_of_part(loaded_.plan, part, static_cast<std::int32_t>(layer) + 1);
  own.model = loaded_.model;
  own.nodes = count;
  own.features = Tensor(DType::kFloat32, {count, width});
  own.degree = Tensor(DType::kFloat32, {count});
  for (std::size_t i = 0; i < stated.nodes.size(); ++i) {
    own.degree.as_mutable<float>()[i] = loaded_.degree.as<float>()[stated.nodes[i]];
  }
  inputs_.exchange->fill(stated.nodes, *rows_, own.features.as_mutable<float>());
  own.parts.resize(loaded_.parts.size());
  Subgraph& subgraph = own.parts[index_of(part)];
  subgraph = stated;
  for (std::size_t i = 0; i < subgraph.nodes.size(); ++i) {
    subgraph.nodes[i] = static_cast<std::int32_t>(i);
  }
  return own;
}

void RankStream::note(const PlanExecutor& executor, std::size_t layer) {
  const double before_ms =
      std::chrono::duration<double, std::milli>(executor.started() - started_).count();
  for (ExecutedTask task : executor.executed()) {
    if (index_of(task.layer) != layer + 1) continue;
    task.start_ms += before_ms;
    task.end_ms += before_ms;
    executed_.push_back(task);
  }
  for (std::string& failure : executor.failures()) failures_.push_back(std::move(failure));
  moved_count_ += executor.moved_count();
  options_.broken = executor.scheduler().broken();  // for the parts that come
}

}  // namespace npu::gnn
