// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gnn/graph/halo.hpp"
#include "gnn/model/stage_table.hpp"
#include "gnn/plan/device_exchange.hpp"
#include "gnn/plan/rank_plan.hpp"
#include "npu/support/json.hpp"

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
  std::int64_t device_plan = 0;  ///< index into Plan::device_plans
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

/// A document of kind "plan"; npu-gnn(5) describes its keys. Times are in milliseconds, rounded to
/// nanoseconds.
struct Plan {
  PlanFiles files;
  PlanSettings settings;
  std::vector<PlanDevice> devices;
  std::int32_t k = 1;  ///< number of subgraphs
  std::optional<PlanPartition> partition;
  std::int64_t pad = 1000;  ///< multiple that static shapes are padded to
  std::vector<PlanSubgraph> subgraphs;
  std::vector<PlannedStages> device_plans;
  std::vector<PlanCluster> clusters;  ///< in order of execution, layer by layer
  std::vector<PlanAssignment> assignments;
  DeviceTimes loads_ms;
  double max_load_ms = 0;
  double load_bound_ms = 0;
  double load_gap = 0;
  double least_load_ms = 0;
  double least_load_gap = 0;
  double makespan_ms = 0;
  double lower_bound_ms = 0;
  double gap = 0;
  std::optional<SingleDevice> best_single_device;
  double speedup = 0;  ///< over the best single device, if there is one
  std::int32_t plan_switches = 0;
  double switching_ms = 0;             ///< the time of all switches
  double ungrouped_ms = 0;             ///< the makespan if every subgraph was a cluster of its own
  std::int64_t extrapolated = 0;       ///< assignments outside the measured range
  std::int64_t disturbed = 0;          ///< assignments based on disturbed times
  std::vector<std::string> uncertain;  ///< why predictions may be far off; empty: no reason
  std::int64_t program_count = 0;
  double compile_ms = 0;
  std::vector<std::string> programs;  ///< of static devices
  std::vector<LayerProof> bounds;
  std::vector<SweepRow> sweep;
  std::vector<RejectedPlan> rejected;
  std::int64_t legal_classes = 0;
  std::optional<RankPlan> ranks;           ///< nothing: one process computes all parts
  std::optional<DeviceExchange> exchange;  ///< nothing: features alone cross between devices
  /// Whether going over to another cluster takes any device time.
  bool switches_cost() const;
  bool operator==(const Plan&) const = default;
};

/// True for a document whose kind is "plan".
bool is_plan(const Json& document);

Json to_json(const Plan& plan);
/// Throws Error kParse with the place of the first fault. Checks types and ranges only; verify_plan
/// checks whether the plan holds.
Plan plan_from_json(const Json& document, const std::string& file);
/// Reads a plan from a file.
Plan read_plan(const std::string& path);

/// The path of a file that a document names relative to itself; empty if it names none.
std::string path_beside(const std::string& document, const std::string& named);

}  // namespace npu::gnn
