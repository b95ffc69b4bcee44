// SPDX-License-Identifier: Apache-2.0
// Lays out the parts that devices other than the host read as a plan's covers say. Rows between
// layers are those of all nodes, as without an exchange, and sums of them behind: what adds these
// up before a layer is what adds up the sums of a rank. An edge whose source is in a sum reads the
// sum if it is the first one, else zeros, so that edges keep their number. O(nodes + edges).
#include "gnn/run/device_layout.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "gnn/model/edge_sums.hpp"
#include "gnn/plan/document/plan_crossings.hpp"
#include "npu/support/error.hpp"
#include "npu/support/ids.hpp"

namespace npu::gnn {
namespace {

class DeviceLayouter {
 public:
  DeviceLayouter(const GnnPlan& plan, const CsrGraph& in_edges,
                 const std::vector<std::int32_t>& part_of, const std::string& file, bool is_max)
      : plan_(plan),
        graph_(in_edges),
        part_of_(part_of),
        file_(file),
        is_max_(is_max),
        members_(index_of(plan.choice.k)) {
    for (std::int32_t v = 0; v < graph_.node_count(); ++v) {
      members_[index_of(part_of_[index_of(v)])].push_back(v);
    }
    rows_.parts.resize(index_of(plan.choice.k));
    if (is_max) rows_.local.take_largest();
  }

  RankLayout lay_out() {
    rows_.own_nodes.resize(index_of(graph_.node_count()));
    std::iota(rows_.own_nodes.begin(), rows_.own_nodes.end(), 0);
    std::int64_t sums = 0;
    for (const PartCover& cover : plan_.choice.exchange->parts) {
      sums += std::count_if(cover.cover.begin(), cover.cover.end(),
                            [](const CrossingRow& row) { return row.is_sum; });
    }
    if (rows_.own_count() + sums >= std::numeric_limits<std::int32_t>::max()) {
      refuse("the plan has too many sums");
    }
    zeros_ = static_cast<std::int32_t>(rows_.own_count() + sums);
    rows_.row_count = zeros_ + std::int64_t{1};
    local_of_row_.assign(index_of(rows_.row_count), -1);
    for (const PartCover& cover : plan_.choice.exchange->parts) add_part(cover);
    if (rows_.local.size() != sums) refuse("a cover has a sum twice");
    rows_.local.shrink();
    rows_.holds_sums = true;
    rows_.late.assign(index_of(rows_.row_count), 0);
    check_sizes();
    return std::move(rows_);
  }

 private:
  [[noreturn]] void refuse(const std::string& text) const {
    throw Error(ErrorCode::kInvalidGraph, text + "; npu-plan --verify says more",
                {.file = file_, .pointer = "/exchange/parts"});
  }

  void add_part(const PartCover& cover) {
    std::vector<std::int32_t> features;
    std::vector<std::int32_t> sums;
    for (const CrossingRow& row : cover.cover) {
      (row.is_sum ? sums : features).push_back(row.is_sum ? row.target : row.source);
    }
    std::sort(features.begin(), features.end());
    std::sort(sums.begin(), sums.end());
    Subgraph& part = rows_.parts[index_of(cover.part)];
    part.nodes = members_[index_of(cover.part)];
    part.owned = static_cast<std::int64_t>(part.nodes.size());
    for (std::size_t i = 0; i < part.nodes.size(); ++i) {
      local_of_row_[index_of(part.nodes[i])] = static_cast<std::int32_t>(i);
    }
    part.offsets.push_back(0);
    for (const std::int32_t v : members_[index_of(cover.part)]) {
      const bool has_sum = std::binary_search(sums.begin(), sums.end(), v);
      add_row(v, has_sum, features, part);
      part.offsets.push_back(static_cast<std::int64_t>(part.sources.size()));
    }
    for (const std::int32_t row : part.nodes) local_of_row_[index_of(row)] = -1;
  }

  // The edges into a node, and its sum if there is one.
  void add_row(std::int32_t v, bool has_sum, const std::vector<std::int32_t>& features,
               Subgraph& part) {
    const std::int32_t own_part = part_of_[index_of(v)];
    std::vector<RowSums::Term> terms;
    const auto sum = static_cast<std::int32_t>(rows_.own_count() + rows_.local.size());
    for (const std::int32_t u : graph_.row(v)) {
      std::int32_t row = u;
      if (part_of_[index_of(u)] != own_part) {
        if (has_sum) {
          row = terms.empty() || is_max_ ? sum : zeros_;
          terms.push_back({0, u});
        } else if (!std::binary_search(features.begin(), features.end(), u)) {
          refuse("nothing crosses for the edge from node " + std::to_string(u) + " to node " +
                 std::to_string(v));
        }
      }
      std::int32_t& local = local_of_row_[index_of(row)];
      if (local < 0) {
        local = static_cast<std::int32_t>(part.nodes.size());
        part.nodes.push_back(row);
      }
      part.sources.push_back(local);
    }
    if (!has_sum) return;
    if (terms.empty()) {
      refuse("there is a sum for node " + std::to_string(v) +
             ", which has no edge from other parts");
    }
    rows_.local.add({0, 1}, std::move(terms));
  }

  // A part whose sums have one edge each reads no zeros, but has a row of them.
  void check_sizes() {
    for (const PlanSubgraph& stated : plan_.choice.subgraphs) {
      Subgraph& part = rows_.parts[index_of(stated.size.id)];
      if (part.nodes.empty()) continue;
      const std::int64_t rows = stated.size.n - stated.size.saved;
      if (static_cast<std::int64_t>(part.nodes.size()) + 1 == rows && !is_max_) {
        part.nodes.push_back(zeros_);
      }
      if (static_cast<std::int64_t>(part.nodes.size()) == rows) continue;
      refuse("part " + std::to_string(stated.size.id) + " reads " +
             std::to_string(part.nodes.size()) + " rows by its cover, the plan says " +
             std::to_string(rows));
    }
  }

  const GnnPlan& plan_;
  const CsrGraph& graph_;
  const std::vector<std::int32_t>& part_of_;
  const std::string& file_;
  bool is_max_;
  std::vector<std::vector<std::int32_t>> members_;  // by part
  std::vector<std::int32_t> local_of_row_;          // in the part at hand; or -1
  std::int32_t zeros_ = 0;                          // the row of them
  RankLayout rows_;
};

}  // namespace

DeviceLayout lay_out_devices(const GnnPlan& plan, const StagedModel& model,
                             const CsrGraph& in_edges, const std::vector<std::int32_t>& part_of,
                             const std::string& file) {
  const EdgeSums sums = edge_sums(model);
  if (!sums.refusal.empty()) {
    throw Error(ErrorCode::kInvalidGraph, "only features may cross: " + sums.refusal,
                {.file = file, .pointer = "/exchange"});
  }
  DeviceLayout layout;
  layout.rows = DeviceLayouter(plan, in_edges, part_of, file, sums.is_max).lay_out();
  layout.crosses = crossing_device_plans(plan, model);
  layout.neutral_degree = sums.neutral_degree;
  layout.row_bytes.assign(model.layers.size(), 0);
  for (const PlanCluster& cluster : plan.choice.clusters) {
    const std::size_t l = index_of(cluster.layer - 1);
    if (l >= layout.row_bytes.size() || layout.crosses[index_of(cluster.device_plan)] == 0)
      continue;
    layout.row_bytes[l] = 4 * model.layers[l].input_features;
  }
  if (sums.factor.empty()) return layout;
  for (std::int32_t v = 0; v < in_edges.node_count(); ++v) {
    layout.factors.push_back(factor_of(sums.factor, static_cast<float>(in_edges.degree(v))));
  }
  return layout;
}

}  // namespace npu::gnn
