// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "npu/ir/graph.hpp"
#include "npu/support/error.hpp"
#include "npu/target/target.hpp"

namespace npu {

/// One built-in fusion pattern.
struct FusionPattern {
  std::string_view name;
  bool by_default = false;
  bool in_all = true;  ///< one of those that "all" stands for
  std::string_view summary;
};
/// In the order in which they are tried.
std::span<const FusionPattern> fusion_patterns();
/// One line each: name, whether it is on by default, summary.
std::string format_fusion_patterns();

/// One element of a user-defined pattern: a node of the chain.
struct PatternElement {
  std::vector<std::string> ops;            ///< globs of op types; empty: any
  std::vector<std::string> kinds;          ///< names of OpKind or "alias"; empty: any
  std::vector<DType> dtypes;               ///< of the first result; empty: any
  CountRange rank;                         ///< of the first result
  std::map<std::string, Json> attributes;  ///< arguments, after the schema's defaults
  std::optional<std::int64_t> operand;     ///< operand by which the chain enters; nothing: any
  bool same_shape = false;                 ///< the first result has the shape of that operand
  std::int64_t min = 1;                    ///< how many consecutive nodes this matches
  std::int64_t max = 1;
};

/// A chain of nodes, each the only reader of the one before it, possibly through aliases.
struct UserPattern {
  std::string name;
  std::vector<PatternElement> elements;
};

/// Reads a pattern file (npu-fuse(1)). Adds an error for each fault.
std::vector<UserPattern> load_fusion_patterns(const std::string& path, Diagnostics& diagnostics);
std::vector<UserPattern> parse_fusion_patterns(const Json& json, const std::string& file,
                                               Diagnostics& diagnostics);

struct FuseOptions {
  /// Names of built-in patterns, "default", "all" or "none"; "-NAME" removes one.
  std::vector<std::string> patterns = {"default"};
  /// What "default" stands for on a device, by its name, where its target says it.
  std::map<std::string, std::vector<std::string>> device_patterns = {};
  std::vector<UserPattern> user_patterns = {};  ///< tried before all built-in ones
  std::int64_t max_ops = 256;                   ///< nodes of the largest group
  /// Nodes join only within the groups that the graph has; one without a group stays alone.
  bool within_groups = false;
};

/// Nodes that are compiled to one kernel.
struct FusionGroup {
  std::string pattern;        ///< name of a pattern, "single", or "alias" if it moves no data
  std::vector<NodeId> nodes;  ///< in list order
};

struct FusionPlan {
  std::vector<FusionGroup> groups;  ///< by their first node; every node is in exactly one
  std::int64_t steps = 0;           ///< visits to nodes and edges, for tests of complexity
};

/// What "default" stands for on each device of a target that says so. Throws Error kInvalidGraph,
/// located in `file` at /npu/target, for a name that is no built-in pattern.
std::map<std::string, std::vector<std::string>> target_patterns(const Target& target,
                                                                const std::string& file);

/// Finds groups: each convex, on one device, and such that all groups together can be put in an
/// order. Nodes without a device count as being on one of their own. Near O(nodes + edges). Throws
/// Error kUsage for an unknown pattern.
FusionPlan plan_fusion(const Graph& graph, const FuseOptions& options);

/// As plan_fusion with the patterns that `npu.target`, if there is one, gives its devices, and sets
/// `fusion_group` of every node and `npu.fusion`; drops partitions and layouts of an earlier run.
/// True if the graph changed.
bool fuse_ops(Graph& graph, const FuseOptions& options, Diagnostics& diagnostics);

/// What npu-fuse --report prints and --assert compares. Bytes of activations are what kernels read
/// and write besides weights.
struct FusionReport {
  struct Row {
    std::string pattern;
    std::int64_t groups = 0;
    std::int64_t nodes = 0;
    double flops = 0;
    double on_chip_bytes = 0;
  };
  std::vector<Row> rows;  ///< most groups first, then by name
  std::int64_t nodes = 0;
  std::int64_t folded = 0;  ///< nodes that are folded: in no group
  std::int64_t groups = 0;
  std::int64_t kernels = 0;          ///< groups that move data: launches after fusion
  std::int64_t launches_before = 0;  ///< nodes that move data
  std::int64_t largest_group = 0;    ///< nodes
  double flops = 0;
  double weight_bytes = 0;  ///< read by kernels after fusion
  double weight_bytes_before = 0;
  double traffic_bytes = 0;  ///< activations, after fusion
  double traffic_bytes_before = 0;
  double on_chip_bytes = 0;  ///< results that stay inside groups
  double scheduling_us = 0;  ///< what the launches take that a device takes for every node, by its
                             ///< target; 0 without one
  double scheduling_us_before = 0;

  /// The mean size of a group; 0 if there is none.
  double nodes_per_group() const noexcept {
    return groups == 0 ? 0 : static_cast<double>(nodes) / static_cast<double>(groups);
  }
};

/// The report of a graph that fuse_ops has annotated.
FusionReport fusion_report(const Graph& graph);
std::string format_fusion_report(const FusionReport& report);
std::map<std::string, double> fusion_metrics(const FusionReport& report);

}  // namespace npu
