// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gnn/graph/halo.hpp"
#include "gnn/model/stage_table.hpp"

namespace npu::gnn {

/// Milliseconds by device, in the order of the document.
using DeviceTimes = std::vector<std::pair<std::string, double>>;

/// Stages, counted from 1, that a device must not run in any layer.
struct ExcludedStages {
  std::string device;
  std::vector<std::int32_t> stages;
  bool operator==(const ExcludedStages&) const = default;
};

struct MemoryLimit {
  std::string device;
  std::int64_t bytes = 0;
  bool operator==(const MemoryLimit&) const = default;
};

/// The resource of a device; devices that share one take turns.
struct ResourceName {
  std::string device;
  std::string resource;
  bool operator==(const ResourceName&) const = default;
};

/// What a plan depends on besides the files that it is made from. The document keeps it so that a
/// check of the plan considers the same choices.
struct PlanSettings {
  bool greedy = false;
  bool transfers = true;
  Interpolation interpolation = Interpolation::kBilinear;
  std::vector<double> ratios;  ///< shares of devices to try, in (0, 1); empty: search
  std::int32_t max_segments = 3;
  std::int32_t top_k = 0;  ///< candidates kept for each subgraph; 0: all
  std::string target = "host";
  std::vector<std::string> devices;  ///< only these; empty: all of the profile
  std::vector<ExcludedStages> excluded;
  std::vector<MemoryLimit> memory;
  std::vector<ResourceName> resources;
  bool operator==(const PlanSettings&) const = default;
};

/// The files that a plan was made from, relative to it; an empty one was not given.
struct PlanFiles {
  std::string model;
  std::string model_hash;  ///< StagedModel::hash
  std::string graph;
  std::int64_t graph_nodes = 0;
  std::int64_t graph_edges = 0;
  bool node_count_given = false;  ///< the ids of the edge list are nodes 0 .. graph_nodes - 1
  bool undirected = false;        ///< missing reverse edges were added
  bool one_loop = false;          ///< each node was given one loop (GraphReadOptions)
  std::string subgraphs;          ///< a table of sizes instead of a graph
  std::string profile;
  std::string precision;  ///< that the profile was measured with: "bf16"; empty: float32
  std::string bandwidths;
  bool operator==(const PlanFiles&) const = default;
};

struct PlanDevice {
  std::string name;
  std::string resource;
  bool is_static = false;
  std::string backend = {};  ///< whose times were planned with; empty: not known
  double switch_ms = 0;      ///< to go over to another cluster
  bool operator==(const PlanDevice&) const = default;
};

/// The part that each node belongs to: a file with one number per line.
struct PlanPartition {
  std::string file;  ///< relative to the plan; empty: not written
  std::string hash;  ///< partition_hash of its numbers
  std::uint64_t seed = 0;
  std::int64_t edge_cut = 0;
  std::vector<double> imbalance;  ///< heaviest part over mean: of nodes, of edges
  std::int32_t repaired_parts = 0;
  std::int32_t levels = 0;          ///< PartitionSweep::levels
  std::int32_t coarsest_nodes = 0;  ///< PartitionSweep::coarsest_nodes
  std::string partitioner;          ///< "ptscotch"; empty: METIS
  std::int32_t processes = 0;       ///< that have cut the graph together; 0: METIS
  bool operator==(const PlanPartition&) const = default;
};

/// A subgraph, and the size that static devices pad it to.
struct PlanSubgraph {
  SubgraphSize size;
  std::int64_t padded_nodes = 0;
  std::int64_t padded_edges = 0;
  bool operator==(const PlanSubgraph&) const = default;
};

struct PlannedShare {
  std::string device;
  double ratio = 1;  ///< of the owned nodes
  bool operator==(const PlannedShare&) const = default;
};

/// Consecutive stages that run on a group of devices.
struct PlannedSegment {
  std::int32_t first = 1;
  std::int32_t last = 1;
  std::vector<PlannedShare> shares;
  bool operator==(const PlannedSegment&) const = default;
};

/// A DevicePlan as text, with the programs that static devices need for it.
struct PlannedStages {
  std::int64_t id = 0;  ///< its place in the list
  std::int32_t layer = 1;
  std::string key;  ///< "cpu[1-4]|npu[5-7] npu[5-7]@64x192"
  std::vector<PlannedSegment> segments;
  bool operator==(const PlannedStages&) const = default;
};

/// Subgraphs that run one after another under the same device plan.
struct PlanCluster {
  std::int32_t layer = 1;
  std::int64_t device_plan = 0;  ///< index into PlanChoice::device_plans
  std::vector<std::int64_t> subgraphs;
  bool operator==(const PlanCluster&) const = default;
};

/// The device plan of one subgraph in one layer, and what it costs.
struct PlanAssignment {
  std::int32_t layer = 1;
  std::int64_t subgraph = 0;
  std::int64_t device_plan = 0;
  DeviceTimes device_ms;
  double latency_ms = 0;   ///< of the subgraph alone
  double transfer_ms = 0;  ///< part of it
  bool extrapolated = false;
  bool disturbed = false;
  bool operator==(const PlanAssignment&) const = default;
};

/// The fastest single device, over all numbers of parts.
struct SingleDevice {
  std::string device;
  double ms = 0;
  std::int32_t k = 1;
  bool operator==(const SingleDevice&) const = default;
};

/// The proof that no other choice of device plans has a smaller largest load in a layer.
struct LayerProof {
  std::int32_t layer = 1;
  std::vector<double> multipliers;  ///< of the resources
  double dual_bound_ms = 0;         ///< proven by the multipliers
  double load_bound_ms = 0;         ///< proven by them or by the search
  double least_load_ms = 0;
  double max_load_ms = 0;
  double makespan_ms = 0;
  bool search_finished = false;
  bool operator==(const LayerProof&) const = default;
};

/// The result for one number of parts.
struct SweepRow {
  std::int32_t k = 1;
  std::int64_t edge_cut = 0;
  std::int64_t halo = 0;
  std::string infeasible;  ///< why there is no plan; the members below are then unused
  std::int64_t pad = 0;
  std::string passed_over;  ///< why the plan is not taken, however short; empty: it may be
  double makespan_ms = 0;
  double lower_bound_ms = 0;
  double gap = 0;
  std::optional<double> ranks_makespan_ms;  ///< of all ranks, if there are any
  DeviceTimes single_device_ms;
  bool operator==(const SweepRow&) const = default;
};

/// A division of the stages among devices under which no subgraph can run.
struct RejectedPlan {
  std::int32_t layer = 1;
  std::string device_plan;
  std::string reason;
  bool operator==(const RejectedPlan&) const = default;
};

}  // namespace npu::gnn
