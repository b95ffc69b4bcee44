// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "npu/cost/cost_model.hpp"
#include "npu/ir/graph.hpp"
#include "npu/partition/partition_plan.hpp"
#include "npu/support/error.hpp"
#include "npu/target/target.hpp"

namespace npu {

/// A way to partition.
enum class Strategy : std::uint8_t { kContiguous, kConvex, kMinCut, kBlocks, kResources, kMetis };

struct PartitionOptions {
  Strategy strategy = Strategy::kConvex;
  std::int64_t min_nodes = 1;       ///< smaller partitions go to the next device that runs them
  double min_flops = 0;             ///< so do partitions with less work
  std::int64_t max_partitions = 0;  ///< 0: no limit
  std::int64_t memory_limit = 0;    ///< bytes of working set of a partition; 0: no limit
  std::int32_t parts = 2;           ///< of metis: how many
  double imbalance = 0.1;           ///< of metis: how far above the mean a part may be
  bool best_effort = false;         ///< of metis: the most even parts where that is impossible
  std::uint64_t seed = 0;           ///< of metis
  bool what_if = false;             ///< also plan without what keeps nodes off the first device
  std::int64_t depth = 1;           ///< of blocks: how many levels of nested blocks to expand
  const CostModel* cost = &roofline_cost();  ///< where predicted times come from; never null
};

struct PlacementProof;  // placement/certificate_json.hpp

/// What mincut knows about its plan; times in microseconds.
struct MinCutFacts {
  double lower_bound_us = 0;     ///< no placement takes less
  std::optional<double> cut_us;  ///< two devices: least computing and copying, launches left out
  std::int64_t moved_nodes = 0;  ///< nodes on another device than their tag's
  std::shared_ptr<const PlacementProof> proof;
};

/// The blocks that the model is built of, in the order in which they run.
struct BlocksFacts {
  struct Block {
    std::vector<std::int32_t> partitions;
    std::vector<NodeId> nodes;  ///< in list order
  };
  std::vector<Block> blocks;
};

/// How to tile a node or group that is too large so that one tile fits.
struct TilingAdvice {
  bool fits = false;
  std::int64_t row_tiles = 1;      ///< tiles over the positions of the result
  std::int64_t channel_tiles = 1;  ///< tiles over its channels
  double bytes = 0;                ///< what one tile needs
};

/// What the partitions of strategy resources transfer and hold, in bytes.
struct ResourcesFacts {
  /// A node or a fusion group that exceeds a limit of its device by itself.
  struct Oversize {
    std::vector<NodeId> nodes;
    std::string device;
    double bytes = 0;
    double limit = 0;            ///< the device's memory; infinity if not stated
    bool breaks_memory = false;  ///< false: too many FLOPs
    TilingAdvice tiles;          ///< if breaks_memory
  };
  struct Split {
    std::int64_t partitions = 0;
    double boundary_bytes = 0;  ///< activations that partitions read and write
  };
  Split split;
  Split first_fit;                   ///< sizes summed, as if memory were never reused
  std::vector<double> working_sets;  ///< by partition
  std::vector<Oversize> oversize;    ///< in the order in which they run
};

/// The splits that strategy metis compared.
struct MetisFacts {
  struct Split {
    std::int64_t cut_bytes = 0;
    double imbalance = 0;  ///< heaviest part above the mean, as a share of it
  };
  std::int32_t parts = 0;
  Split split;                ///< of the plan
  Split metis;                ///< as METIS returned it
  bool metis_cyclic = false;  ///< its parts depend on each other in a cycle
  Split contiguous;           ///< the node list cut into equal shares of work
};

/// What a strategy reports besides the plan; nothing for those that only follow the tags, and for
/// metis if there is nothing to cut.
using StrategyFacts =
    std::variant<std::monostate, MinCutFacts, BlocksFacts, ResourcesFacts, MetisFacts>;

struct StrategyOutcome {
  PartitionPlan plan;
  StrategyFacts facts = {};
};

struct StrategyInfo {
  Strategy strategy;
  std::string_view name;  ///< in documents and on command lines
  std::string_view summary;
  /// May move nodes: it then sets their device and device_reason.
  StrategyOutcome (*partition)(Graph& graph, const Target& target, const PartitionOptions& options,
                               Diagnostics& diagnostics);
};
/// Every strategy, in the order of the enumerators.
std::span<const StrategyInfo> partition_strategies();
/// Nothing if no strategy has this name.
std::optional<Strategy> find_strategy(std::string_view name);

/// All take a verified graph in which every node has a device (npu-tag), and throw Error
/// kInvalidGraph if one has none.

/// Cuts the node list into maximal runs of one device. Every run but the first is preceded by one
/// transfer of all tensors that it reads and an earlier run produced, even if they are already on
/// the device. This is the plan of pytorch-ir's partitioner. O(nodes + edges).
PartitionPlan partition_contiguous(const Graph& graph);

/// Fewest partitions: nodes are merged by dependence, not by list order. Every tensor is
/// transferred once per device that needs it. Fusion groups stay whole; throws Error kInvalidGraph
/// for one that is not convex. Exact for two devices, a heuristic for more (see device_runs.cpp).
/// O(nodes + edges).
PartitionPlan partition_convex(const Graph& graph);

/// The strategies that need more than the tags; each is described in its .cpp.
StrategyOutcome partition_min_cut(Graph& graph, const Target& target,
                                  const PartitionOptions& options, Diagnostics& diagnostics);
StrategyOutcome partition_resources(Graph& graph, const Target& target,
                                    const PartitionOptions& options, Diagnostics& diagnostics);
StrategyOutcome partition_blocks(Graph& graph, const Target& target,
                                 const PartitionOptions& options, Diagnostics& diagnostics);
StrategyOutcome partition_metis(Graph& graph, const Target& target, const PartitionOptions& options,
                                Diagnostics& diagnostics);

}  // namespace npu
