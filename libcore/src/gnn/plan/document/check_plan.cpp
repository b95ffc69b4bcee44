// SPDX-License-Identifier: Apache-2.0
// Checks a plan by itself, before it runs: ids, shapes, segments, and that every part is computed
// exactly once in every layer. O(size of the plan * log).
#include "gnn/plan/document/check_plan.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "npu/support/error.hpp"
#include "npu/support/ids.hpp"

namespace npu::gnn {
namespace {

// The largest quantum that --pad auto tries.
constexpr std::int64_t kAnyGraph = 32000;
// Ratios are whole percents.
constexpr double kRatioTolerance = 1e-6;

class Checker {
 public:
  Checker(const GnnPlan& plan, const std::string& file) : plan_(plan), file_(file) {}

  void check() {
    for (std::size_t d = 0; d < plan_.devices.size(); ++d) {
      if (!devices_.insert(plan_.devices[d].name).second) {
        refuse(at("devices", d), "device '" + plan_.devices[d].name + "' is listed twice");
      }
    }
    check_subgraphs();
    for (std::size_t p = 0; p < plan_.choice.device_plans.size(); ++p) check_device_plan(p);
    check_clusters();
    check_assignments();
    if (!plan_.choice.exchange) return;
    if (plan_.choice.ranks) refuse("/exchange", "a plan with ranks says there what crosses");
    if (!devices_.contains(plan_.choice.exchange->host)) {
      refuse("/exchange/host",
             "device '" + plan_.choice.exchange->host + "' is not in the plan's devices");
    }
  }

 private:
  [[noreturn]] void refuse(const std::string& pointer, const std::string& text) const {
    throw Error(ErrorCode::kInvalidGraph, text, {.file = file_, .pointer = pointer});
  }

  static std::string at(const char* list, std::size_t index) {
    return "/" + std::string(list) + "/" + std::to_string(index);
  }

  void check_subgraphs() {
    if (plan_.choice.subgraphs.size() != index_of(plan_.choice.k)) {
      refuse("/k", "the plan has " + std::to_string(plan_.choice.subgraphs.size()) +
                       " subgraphs, k says " + std::to_string(plan_.choice.k));
    }
    std::int64_t nodes = 0;
    std::int64_t edges = 0;
    for (std::size_t i = 0; i < plan_.choice.subgraphs.size(); ++i) {
      const SubgraphSize& size = plan_.choice.subgraphs[i].size;
      if (size.halo >= size.n) refuse(at("subgraphs", i), "the subgraph owns no node");
      if (!ids_.insert(size.id).second) {
        refuse(at("subgraphs", i), "subgraph " + std::to_string(size.id) + " is listed twice");
      }
      nodes = std::max(nodes, size.n);
      edges = std::max(edges, size.m);
    }
    const std::int64_t most = largest_pad(nodes, edges);
    if (plan_.choice.pad < 1 || plan_.choice.pad > most) {
      refuse("/pad", "expected a quantum in 1.." + std::to_string(most) +
                         " for subgraphs of up to " + std::to_string(nodes) + " nodes and " +
                         std::to_string(edges) + " edges, found " +
                         std::to_string(plan_.choice.pad));
    }
    for (std::size_t i = 0; i < plan_.choice.subgraphs.size(); ++i) {
      const PlanSubgraph& subgraph = plan_.choice.subgraphs[i];
      check_padded(i, "n_pad", subgraph.size.n, subgraph.padded_nodes);
      check_padded(i, "m_pad", subgraph.size.m, subgraph.padded_edges);
    }
  }

  void check_padded(std::size_t subgraph, const char* key, std::int64_t value,
                    std::int64_t stated) const {
    const std::int64_t expected = padded_size(value, plan_.choice.pad);
    if (stated == expected) return;
    refuse(at("subgraphs", subgraph) + "/" + key,
           "expected " + std::to_string(expected) + " at the quantum " +
               std::to_string(plan_.choice.pad) + ", found " + std::to_string(stated));
  }

  void check_device_plan(std::size_t index) const {
    const PlannedStages& stages = plan_.choice.device_plans[index];
    const std::string pointer = at("peps", index);
    if (index_of(stages.id) != index) {
      refuse(pointer + "/id", "expected " + std::to_string(index) + ", its place in the list");
    }
    if (stages.segments.empty()) refuse(pointer + "/segments", "the plan has no segments");
    std::int32_t next = 1;
    std::set<std::string> used;
    for (std::size_t s = 0; s < stages.segments.size(); ++s) {
      const PlannedSegment& segment = stages.segments[s];
      const std::string place = pointer + "/segments/" + std::to_string(s);
      if (segment.first != next || segment.last < segment.first) {
        refuse(place, "segments are not contiguous from stage " + std::to_string(next));
      }
      next = segment.last + 1;
      double sum = 0;
      for (const PlannedShare& share : segment.shares) {
        if (!devices_.contains(share.device)) {
          refuse(place, "device '" + share.device + "' is not in the plan's devices");
        }
        if (!used.insert(share.device).second) {
          refuse(place, "device '" + share.device + "' is used twice");
        }
        sum += share.ratio;
      }
      if (segment.shares.empty() || std::abs(sum - 1) > kRatioTolerance) {
        refuse(place, "the ratios of a segment do not sum up to 1");
      }
    }
  }

  const PlannedStages& device_plan_of(std::int64_t index, std::int32_t layer,
                                      const std::string& pointer) const {
    if (index_of(index) >= plan_.choice.device_plans.size()) {
      refuse(pointer + "/pep", "there is no device plan " + std::to_string(index));
    }
    const PlannedStages& stages = plan_.choice.device_plans[index_of(index)];
    if (stages.layer != layer) {
      refuse(pointer + "/pep", "device plan " + std::to_string(index) + " is of layer " +
                                   std::to_string(stages.layer) + ", not of layer " +
                                   std::to_string(layer));
    }
    return stages;
  }

  void check_clusters() {
    for (std::size_t c = 0; c < plan_.choice.clusters.size(); ++c) {
      const PlanCluster& cluster = plan_.choice.clusters[c];
      const std::string pointer = at("clusters", c);
      device_plan_of(cluster.device_plan, cluster.layer, pointer);
      for (const std::int64_t id : cluster.subgraphs) {
        if (!ids_.contains(id)) {
          refuse(pointer, "subgraph " + std::to_string(id) + " is unknown");
        }
        if (!clustered_[cluster.layer].emplace(id, cluster.device_plan).second) {
          refuse(pointer, "subgraph " + std::to_string(id) + " is in two clusters of layer " +
                              std::to_string(cluster.layer));
        }
      }
    }
    std::int32_t expected = 1;
    for (const auto& [layer, subgraphs] : clustered_) {
      if (layer != expected++) {
        refuse("/clusters", "layer " + std::to_string(expected - 1) + " has no clusters");
      }
      if (subgraphs.size() != ids_.size()) {
        refuse("/clusters", "layer " + std::to_string(layer) + " has clusters for " +
                                std::to_string(subgraphs.size()) + " of " +
                                std::to_string(ids_.size()) + " subgraphs");
      }
    }
    if (clustered_.empty()) refuse("/clusters", "the plan has no clusters");
  }

  void check_assignments() const {
    std::set<std::pair<std::int32_t, std::int64_t>> seen;
    for (std::size_t i = 0; i < plan_.choice.assignments.size(); ++i) {
      const PlanAssignment& assignment = plan_.choice.assignments[i];
      const std::string pointer = at("assignments", i);
      const auto layer = clustered_.find(assignment.layer);
      const bool is_known =
          layer != clustered_.end() && layer->second.contains(assignment.subgraph);
      if (!is_known || !seen.emplace(assignment.layer, assignment.subgraph).second) {
        refuse(pointer, "subgraph " + std::to_string(assignment.subgraph) + " of layer " +
                            std::to_string(assignment.layer) + " is unknown or assigned twice");
      }
      const std::int64_t clustered = layer->second.at(assignment.subgraph);
      if (clustered != assignment.device_plan) {
        refuse(pointer + "/pep", "the subgraph's cluster has device plan " +
                                     std::to_string(clustered) + ", not " +
                                     std::to_string(assignment.device_plan));
      }
    }
    if (seen.size() != clustered_.size() * ids_.size()) {
      refuse("/assignments", "expected one for each of " + std::to_string(ids_.size()) +
                                 " subgraphs in each of " + std::to_string(clustered_.size()) +
                                 " layers, found " + std::to_string(seen.size()));
    }
  }

  const GnnPlan& plan_;
  const std::string& file_;
  std::set<std::string> devices_;
  std::set<std::int64_t> ids_;  // of subgraphs
  // By layer and subgraph: the device plan of its cluster.
  std::map<std::int32_t, std::map<std::int64_t, std::int64_t>> clustered_;
};

}  // namespace

std::int64_t largest_pad(std::int64_t nodes, std::int64_t edges) {
  return std::max({kAnyGraph, nodes, edges});
}

void check_pad(std::int64_t pad, std::int64_t nodes, std::int64_t edges) {
  const std::int64_t most = largest_pad(nodes, edges);
  if (pad <= most) return;
  throw Error(ErrorCode::kUsage, "--pad " + std::to_string(pad) + ": expected at most " +
                                     std::to_string(most) + " for a graph of " +
                                     std::to_string(nodes) + " nodes and " + std::to_string(edges) +
                                     " edges");
}

std::int64_t padded_size(std::int64_t value, std::int64_t pad) {
  return std::max<std::int64_t>(1, (value + pad - 1) / pad) * pad;
}

void check_plan(const GnnPlan& plan, const std::string& file) { Checker(plan, file).check(); }

}  // namespace npu::gnn
