// SPDX-License-Identifier: Apache-2.0
// Turns a plan into tasks. A share of a segment is a subgraph of its own: its owned nodes first,
// then what their edges read, so that splitting never changes a sum.
//
// O(edges) for every segment that is split between devices, and once for every subgraph.
// Memory: the rows and edges of every share; tasks that are a whole subgraph share those of it.
#include "gnn/run/task_graph.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "npu/support/error.hpp"
#include "npu/support/ids.hpp"

namespace npu::gnn {
namespace {

// Owned nodes begin .. end of a part, and what their edges read.
void cut_out(const Subgraph& part, std::int64_t begin, std::int64_t end, ShareTask& task) {
  SubgraphView& view = task.view;
  std::vector<std::int32_t> index(part.nodes.size(), -1);
  const auto add = [&](std::int64_t node) {
    std::int32_t& place = index[index_of(node)];
    if (place < 0) {
      place = static_cast<std::int32_t>(task.local.size());
      task.local.push_back(static_cast<std::int32_t>(node));
    }
    return place;
  };
  std::vector<std::int64_t> offsets{0};
  std::vector<std::int32_t> sources;
  std::vector<std::int32_t> nodes;
  for (std::int64_t v = begin; v < end; ++v) add(v);
  for (std::int64_t v = begin; v < end; ++v) {
    for (std::int64_t e = part.offsets[index_of(v)]; e < part.offsets[index_of(v) + 1]; ++e) {
      sources.push_back(add(part.sources[index_of(e)]));
    }
    offsets.push_back(static_cast<std::int64_t>(sources.size()));
  }
  view.owned = end - begin;
  view.local = static_cast<std::int64_t>(task.local.size());
  for (const std::int32_t v : task.local) nodes.push_back(part.nodes[index_of(v)]);
  view.offsets = std::move(offsets);
  view.sources = std::move(sources);
  view.nodes = std::move(nodes);
}

void find_base_sources(SubgraphView& view) {
  if (view.nodes.empty()) return;
  std::vector<std::int32_t> base_sources;
  base_sources.reserve(view.sources.size());
  for (const std::int32_t u : view.sources) base_sources.push_back(view.nodes[index_of(u)]);
  view.base_sources = std::move(base_sources);
}

// A part as it is, whose arrays the view refers to.
SubgraphView whole_view(const Subgraph& part, std::int64_t nodes) {
  SubgraphView view;
  view.owned = part.owned;
  view.local = static_cast<std::int64_t>(part.nodes.size());
  view.offsets = SharedArray<std::int64_t>::of(part.offsets);
  view.sources = SharedArray<std::int32_t>::of(part.sources);
  const bool is_graph = view.local == nodes && part.owned == nodes;
  if (!is_graph) view.nodes = SharedArray<std::int32_t>::of(part.nodes);
  find_base_sources(view);
  return view;
}

class Builder {
 public:
  Builder(const GnnPlan& plan, const TaskParts& parts, std::int64_t nodes, const std::string& file)
      : plan_(plan), choice_(parts), parts_(parts.parts), nodes_(nodes), file_(file) {}

  TaskGraph build(const std::vector<std::int32_t>& stage_counts, std::optional<std::size_t> only) {
    TaskGraph graph;
    graph.layers.resize(stage_counts.size());
    for (const PlanCluster& cluster : plan_.choice.clusters) {
      if (index_of(cluster.layer) > stage_counts.size()) refuse("a cluster is of an unknown layer");
      if (index_of(cluster.device_plan) >= plan_.choice.device_plans.size()) {
        refuse("a cluster is of an unknown plan " + std::to_string(cluster.device_plan));
      }
      check_stages(plan_.choice.device_plans[index_of(cluster.device_plan)],
                   stage_counts[index_of(cluster.layer - 1)]);
      for (const std::int64_t id : cluster.subgraphs) {
        if (id < 0 || index_of(id) >= parts_.size()) {
          refuse("subgraph " + std::to_string(id) + " is not in the partition");
        }
        add_subgraph(static_cast<std::int32_t>(id),
                     plan_.choice.device_plans[index_of(cluster.device_plan)],
                     graph.layers[index_of(cluster.layer - 1)]);
      }
    }
    for (std::size_t l = 0; l < graph.layers.size(); ++l) {
      if (!only || l == *only) check_complete(graph.layers[l], l + 1);
    }
    return graph;
  }

 private:
  [[noreturn]] void refuse(const std::string& text) const {
    throw Error(ErrorCode::kInvalidGraph, text, {.file = file_});
  }

  std::int32_t device_index(const std::string& name) const {
    for (std::size_t d = 0; d < plan_.devices.size(); ++d) {
      if (plan_.devices[d].name == name) return static_cast<std::int32_t>(d);
    }
    refuse("device '" + name + "' is not in the plan's devices");
  }

  void check_stages(const PlannedStages& stages, std::int32_t stage_count) const {
    std::int32_t next = 1;
    for (const PlannedSegment& segment : stages.segments) {
      if (segment.first != next || segment.last < next || segment.shares.empty()) break;
      next = segment.last + 1;
    }
    if (next == stage_count + 1) return;
    refuse("the segments of plan " + std::to_string(stages.id) + " do not cover the " +
           std::to_string(stage_count) + " stages");
  }

  // The same for all tasks that are a whole subgraph.
  const SubgraphView& whole(const Subgraph& part) {
    const auto [view, is_new] = whole_.try_emplace(&part);
    if (is_new) view->second = whole_view(part, nodes_);
    return view->second;
  }

  const Subgraph& part_for(std::int32_t subgraph, const PlannedStages& stages) const {
    const auto plan = index_of(stages.id);
    if (choice_.crossing != nullptr && plan < choice_.crosses.size() &&
        choice_.crosses[plan] != 0) {
      const Subgraph& part = (*choice_.crossing)[index_of(subgraph)];
      if (!part.nodes.empty()) return part;
    }
    return parts_[index_of(subgraph)];
  }

  void add_subgraph(std::int32_t subgraph, const PlannedStages& stages,
                    std::vector<ShareTask>& tasks) {
    const Subgraph& part = part_for(subgraph, stages);
    for (std::size_t s = 0; s < stages.segments.size(); ++s) {
      const PlannedSegment& segment = stages.segments[s];
      double ratio = 0;
      std::int64_t begin = 0;
      for (const PlannedShare& share : segment.shares) {
        ratio += share.ratio;
        const bool is_last = &share == &segment.shares.back();
        const std::int64_t end =
            is_last ? part.owned
                    : std::clamp<std::int64_t>(
                          std::llround(ratio * static_cast<double>(part.owned)), begin, part.owned);
        ShareTask& task = tasks.emplace_back();
        task.subgraph = subgraph;
        task.part = &part;
        task.segment = s;
        task.first = segment.first;
        task.last = segment.last;
        task.device = device_index(share.device);
        task.row_begin = begin;
        task.edge_begin = part.offsets[index_of(begin)];
        if (segment.shares.size() == 1) {
          task.view = whole(part);
        } else {
          cut_out(part, begin, end, task);
          find_base_sources(task.view);
        }
        begin = end;
      }
    }
  }

  void check_complete(const std::vector<ShareTask>& tasks, std::size_t layer) const {
    std::vector<char> seen(parts_.size(), 0);
    for (const ShareTask& task : tasks) seen[index_of(task.subgraph)] = 1;
    // Parts that another process computes are empty here.
    for (std::size_t p = 0; p < parts_.size(); ++p) {
      if (parts_[p].owned == 0) seen[p] = 1;
    }
    if (std::find(seen.begin(), seen.end(), 0) != seen.end()) {
      refuse("layer " + std::to_string(layer) + " does not plan every subgraph");
    }
  }

  const GnnPlan& plan_;
  const TaskParts& choice_;
  const std::vector<Subgraph>& parts_;
  std::int64_t nodes_;
  const std::string& file_;
  std::map<const Subgraph*, SubgraphView> whole_;
};

}  // namespace

TaskGraph build_task_graph(const GnnPlan& plan, const TaskParts& parts, std::int64_t nodes,
                           const std::vector<std::int32_t>& stage_counts, const std::string& file,
                           std::optional<std::size_t> only) {
  return Builder(plan, parts, nodes, file).build(stage_counts, only);
}

}  // namespace npu::gnn
