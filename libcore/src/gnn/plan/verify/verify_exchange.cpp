// SPDX-License-Identifier: Apache-2.0
// Checks what a plan says of the exchange between its devices, without the code that found it:
// edges into parts are counted with sets, covers are checked as those of ranks. O(edges log edges)
// and a matching for each part.
#include "gnn/plan/verify/verify_exchange.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "gnn/model/edge_sums.hpp"
#include "npu/support/ids.hpp"

namespace npu::gnn {
namespace {

class ExchangeVerifier {
 public:
  ExchangeVerifier(const GnnPlan& plan, const StagedModel& model, const RankComplaint& complain)
      : plan_(plan), exchange_(*plan.choice.exchange), model_(model), complain_(complain) {}

  void check(const CsrGraph& in_edges, const std::vector<std::int32_t>& part_of,
             const std::string& host) {
    if (exchange_.host != host) {
      return complain_("/host",
                       "the host is '" + host + "', the plan says '" + exchange_.host + "'");
    }
    const EdgeSums sums = edge_sums(model_);
    if (!sums.refusal.empty()) complain_("", "only features may cross: " + sums.refusal);
    std::map<std::int32_t, EdgeSet> cuts;
    for (std::int32_t v = 0; v < in_edges.node_count(); ++v) {
      const std::int32_t part = part_of[index_of(v)];
      for (const std::int32_t u : in_edges.row(v)) {
        if (part_of[index_of(u)] != part) cuts[part].emplace(u, v);
      }
    }
    for (std::size_t i = 0; i < exchange_.parts.size(); ++i) {
      const std::string pointer = "/parts/" + std::to_string(i);
      check_part(exchange_.parts[i], pointer, cuts[exchange_.parts[i].part], sums.is_max);
      cuts.erase(exchange_.parts[i].part);
    }
    for (const auto& [part, edges] : cuts) check_left_out(part, edges, sums.is_max);
    check_layers();
  }

 private:
  void compare(const std::string& pointer, const char* key, std::int64_t stated,
               std::int64_t counted) const {
    if (stated == counted) return;
    complain_(pointer + "/" + key, "counted as " + std::to_string(counted) + ", the plan says " +
                                       std::to_string(stated));
  }

  static PartCover counted(const EdgeSet& edges) {
    std::set<std::int32_t> sources;
    std::set<std::int32_t> targets;
    for (const auto& [u, v] : edges) {
      sources.insert(u);
      targets.insert(v);
    }
    return {.edges = static_cast<std::int64_t>(edges.size()),
            .sources = static_cast<std::int64_t>(sources.size()),
            .targets = static_cast<std::int64_t>(targets.size()),
            .rows = least_rows(edges)};
  }

  void check_part(const PartCover& stated, const std::string& pointer, const EdgeSet& edges,
                  bool is_max) {
    const PartCover found = counted(edges);
    compare(pointer, "edges", stated.edges, found.edges);
    compare(pointer, "sources", stated.sources, found.sources);
    compare(pointer, "targets", stated.targets, found.targets);
    compare(pointer, "rows", stated.rows, found.rows);
    check_cover(pointer + "/cover", stated.cover, edges, complain_);
    saved_[stated.part] = found.saved_rows(is_max);
    if (saved_[stated.part] < 1) complain_(pointer, "the sums make the part no smaller");
  }

  void check_left_out(std::int32_t part, const EdgeSet& edges, bool is_max) const {
    const std::int64_t saved = counted(edges).saved_rows(is_max);
    if (saved < 1) return;
    complain_("/parts", "nothing is said of part " + std::to_string(part) +
                            ", which sums make smaller by " + std::to_string(saved) + " rows");
  }

  // Whether some share on a device other than the host is of stages that read what edges lead from.
  bool crosses(const PlannedStages& stages, const LayerInfo& layer) const {
    for (const PlannedSegment& segment : stages.segments) {
      bool reads = false;
      for (const StageTensor& tensor : layer.tensors) {
        for (const std::int32_t stage : tensor.consumers) {
          reads = reads ||
                  (tensor.local_rows && tensor.node_bytes > 0 && tensor.producer < segment.first &&
                   stage >= segment.first && stage <= segment.last &&
                   stage <= layer.stage_count() && layer.stages[index_of(stage - 1)].local_rows);
        }
      }
      for (const PlannedShare& share : segment.shares) {
        if (reads && share.device != exchange_.host) return true;
      }
    }
    return false;
  }

  void check_layers() {
    std::map<std::int64_t, const SubgraphSize*> sizes;
    for (std::size_t i = 0; i < plan_.choice.subgraphs.size(); ++i) {
      const SubgraphSize& size = plan_.choice.subgraphs[i].size;
      sizes[size.id] = &size;
      compare("/parts", ("saved of part " + std::to_string(size.id)).c_str(), size.saved,
              saved_[size.id]);
    }
    std::vector<LayerCrossing> counted(model_.layers.size());
    for (const PlanAssignment& assignment : plan_.choice.assignments) {
      const auto size = sizes.find(assignment.subgraph);
      const std::size_t index = index_of(assignment.device_plan);
      const std::size_t l = index_of(assignment.layer - 1);
      if (size == sizes.end() || index >= plan_.choice.device_plans.size() || l >= counted.size()) {
        continue;  // the check of assignments complains
      }
      if (!crosses(plan_.choice.device_plans[index], model_.layers[l])) continue;
      counted[l].rows += size->second->halo - saved_[size->second->id];
      counted[l].halo += size->second->halo;
    }
    if (exchange_.layers.size() != counted.size()) {
      complain_("/layers", "expected one for each of " + std::to_string(counted.size()) +
                               " layers, found " + std::to_string(exchange_.layers.size()));
      return;
    }
    for (std::size_t l = 0; l < counted.size(); ++l) {
      const std::string pointer = "/layers/" + std::to_string(l);
      compare(pointer, "layer", exchange_.layers[l].layer, static_cast<std::int64_t>(l) + 1);
      compare(pointer, "rows", exchange_.layers[l].rows, counted[l].rows);
      compare(pointer, "halo", exchange_.layers[l].halo, counted[l].halo);
      compare(pointer, "bytes", exchange_.layers[l].bytes,
              counted[l].rows * 4 * model_.layers[l].input_features);
    }
  }

  const GnnPlan& plan_;
  const DeviceExchange& exchange_;
  const StagedModel& model_;
  const RankComplaint& complain_;
  std::map<std::int32_t, std::int64_t> saved_;  // by part
};

}  // namespace

void verify_exchange(const GnnPlan& plan, const CsrGraph& in_edges,
                     const std::vector<std::int32_t>& part_of, const StagedModel& model,
                     const std::string& host, const RankComplaint& complain) {
  ExchangeVerifier(plan, model, complain).check(in_edges, part_of, host);
}

}  // namespace npu::gnn
