// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "npu/ir/graph.hpp"
#include "npu/support/error.hpp"
#include "npu/target/target.hpp"

namespace npu {

// ---- tag-ops ----

/// Puts the nodes that `glob` matches on `device`. The glob is a shell's (*, ?, [a-z], \ quotes)
/// and is compared with the op type and the name of each node.
struct ForceRule {
  std::string device;
  std::string glob;
};

/// Parses "DEVICE=GLOB". Throws Error kUsage.
ForceRule parse_force_rule(const std::string& text);

struct TagOptions {
  std::vector<ForceRule> force = {};  ///< a later rule wins over an earlier one
  bool keep_tags =
      false;  ///< a node's own `dev_info` or `device` holds if the target has that device
};

/// Gives every node a device: the first of the target, in its order, that runs the node, unless a
/// rule or a kept tag says otherwise. A getitem goes where its producer goes. Sets `npu.target` and
/// each node's device and device_reason, and drops partitions and fusion groups of an earlier run.
/// Adds an error for a forced or kept device that cannot run its node, and a node that no device
/// runs; a warning for a glob that matches nothing. The graph is unchanged if there are errors.
/// True if the graph changed. Throws Error kUsage for a rule with a device that does not exist.
bool tag_ops(Graph& graph, const Target& target, const TagOptions& options,
             Diagnostics& diagnostics);

/// Nodes of one op type that went to one device for one reason.
struct TagReportRow {
  std::string op_type;
  std::string device;
  std::string reason;  ///< empty on the preferred device
  std::int64_t count = 0;
  double flops = 0;
  double bytes = 0;
};

struct DeviceShare {
  std::string device;
  std::int64_t nodes = 0;
  double flops = 0;
  double bytes = 0;
};

/// What npu-tag --report prints and --assert compares.
struct TagReport {
  std::vector<TagReportRow>
      rows;  ///< by device in the target's order, then most nodes first, then name
  std::vector<DeviceShare> devices;  ///< in the target's order
  std::int64_t nodes = 0;
  double flops = 0;
  double bytes = 0;
};

/// Of a tagged graph.
TagReport tag_report(const Graph& graph, const Target& target);

/// Two tables with aligned columns: op types, then devices with their share of nodes, FLOPs and
/// bytes.
std::string format_tag_report(const TagReport& report);
/// The second of them.
std::string format_coverage(const TagReport& report);

/// nodes, flops, bytes; nodes_<device>, flops_<device>, bytes_<device>; and coverage_nodes,
/// coverage_flops, coverage_bytes: the share on the target's first device, 0 to 1 (1 if there is
/// nothing to run); and unsupported_ops: the number of op types with a node that is not there
/// though nobody forced it.
std::map<std::string, double> tag_metrics(const TagReport& report);

// ---- fuse-ops ----

/// One built-in fusion pattern.
struct FusionPattern {
  std::string_view name;
  bool by_default = false;
  std::string_view summary;
};
/// In the order in which they are tried.
std::span<const FusionPattern> fusion_patterns();
/// One line each: name, whether it is on by default, summary.
std::string format_fusion_patterns();

/// One element of a user's pattern: a node of the chain.
struct PatternElement {
  std::vector<std::string> ops;            ///< globs of op types; empty: any
  std::vector<std::string> kinds;          ///< names of OpKind or "alias"; empty: any
  std::vector<DType> dtypes;               ///< of the first result; empty: any
  CountRange rank;                         ///< of the first result
  std::map<std::string, Json> attributes;  ///< arguments, after the schema's defaults
  std::optional<std::int64_t> operand;     ///< where the chain enters; nothing: anywhere
  bool same_shape = false;                 ///< the first result has the shape of what enters
  std::int64_t min = 1;                    ///< how many nodes in a row this stands for
  std::int64_t max = 1;
};

/// A chain of nodes, each the only reader of the one before; aliases may stand in between.
struct UserPattern {
  std::string name;
  std::vector<PatternElement> elements;
};

/// Reads a pattern file (npu-fuse(1)). Adds an error for each fault.
std::vector<UserPattern> load_fusion_patterns(const std::string& path, Diagnostics& diagnostics);
std::vector<UserPattern> parse_fusion_patterns(const Json& json, const std::string& file,
                                               Diagnostics& diagnostics);

struct FuseOptions {
  /// Names of built-in patterns, "default", "all" or "none"; "-NAME" takes one away.
  std::vector<std::string> patterns = {"default"};
  std::vector<UserPattern> user_patterns = {};  ///< tried before all built-in ones
  std::int64_t max_ops = 256;                   ///< nodes of the largest group
};

/// Nodes that become one kernel.
struct FusionGroup {
  std::string pattern;        ///< name of a pattern, "single", or "alias" if it moves no data
  std::vector<NodeId> nodes;  ///< in list order
};

struct FusionPlan {
  std::vector<FusionGroup> groups;  ///< by their first node; every node is in exactly one
  std::int64_t steps = 0;           ///< looks at a node or an edge, for tests of growth
};

/// Finds groups: each convex, on one device, and such that all groups together can be put in an
/// order. Nodes without a device count as being on one of their own. Near O(nodes + edges). Throws
/// Error kUsage for an unknown pattern.
FusionPlan plan_fusion(const Graph& graph, const FuseOptions& options);

/// As plan_fusion, and sets `fusion_group` of every node and `npu.fusion`; drops partitions and
/// layouts of an earlier run. True if the graph changed.
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
};

/// Of a graph that fuse_ops has annotated.
FusionReport fusion_report(const Graph& graph);
std::string format_fusion_report(const FusionReport& report);
std::map<std::string, double> fusion_metrics(const FusionReport& report);

// ---- align-layout ----

/// How the tensors of an op lie in memory.
enum class AlignMode : std::uint8_t {
  kAlign,    ///< channel-aligned, as the device's `align` section says
  kNalign,   ///< row-major
  kBoth,     ///< either: not decided yet
  kUnknown,  ///< the op is on no device with an aligned layout
};
/// "ALIGN", "NALIGN", "BOTH", "UNKNOWN".
std::string_view align_mode_name(AlignMode mode) noexcept;

struct AlignOptions {
  std::string algorithm = "optimal";  ///< or "greedy"
  std::string weight = "count";       ///< what a conversion costs: "count", "bytes" or "time"
  std::string target = {};  ///< whose rules hold for a document without a target; empty: the
                            ///< defaults of AlignRules
};

/// One tensor that is converted, for all of its users in a partition.
struct AlignConversion {
  std::string tensor;   ///< its row-major form, which keeps the tensor's name
  std::string aligned;  ///< its aligned form
  std::string node;     ///< the npu.channel_norm
  bool to_nalign = false;
  bool existed = false;    ///< stood in the document already
  std::int64_t bytes = 0;  ///< of the copy that it writes
  double predicted_us = 0;
  std::string device;
  std::int64_t partition = -1;     ///< -1: the document has no partitions
  std::vector<std::string> users;  ///< nodes that read the copy; "graph output" etc. last
  std::string from, from_rule;     ///< the op and the rule that fix the layout on its way in
  std::string to, to_rule;         ///< and behind it
};

/// A conversion that the modes ask for and that costs nothing.
struct AlignRemoval {
  std::string tensor;
  bool to_nalign = false;
  std::string cause;  ///< "constant", "one-dimensional", "channels only", ...
};

/// A fusion group whose members cannot agree on a layout.
struct AlignSplit {
  std::int64_t group = 0;
  std::vector<std::int64_t> groups;       ///< what it became; the first one is `group`
  std::string aligned, aligned_rule;      ///< the first member that has to be ALIGN
  std::string unaligned, unaligned_rule;  ///< and the first that has to be NALIGN
};

struct AlignNode {
  std::string name;
  AlignMode mode = AlignMode::kUnknown;
  AlignMode allowed = AlignMode::kUnknown;  ///< before anything was decided
  std::string_view rule;                    ///< why
};

/// What the conversions of one labelling cost.
struct AlignCosts {
  std::int64_t conversions = 0;
  std::int64_t to_align = 0;
  std::int64_t to_nalign = 0;
  std::int64_t bytes = 0;  ///< that conversions write
  double predicted_us = 0;
  std::int64_t padded_bytes = 0;  ///< by which aligned tensors are larger than row-major ones
};

/// Proof that a labelling is optimal: a flow of the value of the cut.
struct AlignCertificate {
  std::int64_t cut = 0;
  std::int64_t flow = 0;
  std::int64_t scale = 1;  ///< a unit of the chosen weight; what is below it is padded bytes
  std::int64_t vertices = 0;
  std::int64_t arcs = 0;
};

struct AlignResult {
  bool changed = false;
  AlignOptions options;
  AlignCosts costs;
  AlignCosts greedy;
  std::optional<AlignCertificate> certificate;  ///< of the optimal algorithm
  std::vector<AlignNode> nodes;                 ///< as the document's, without the conversions
  std::vector<AlignConversion> conversions;     ///< in node order
  std::vector<AlignRemoval> removed;
  std::vector<AlignSplit> splits;
};

/// Gives every op on a device with an `align` section a layout, inserts npu.channel_norm where two
/// ops disagree, and writes `npu.layout`. Conversions of an earlier run are taken out first; others
/// are respected. Works on a partitioned, a tagged or a bare document. Throws Error kUsage for an
/// unknown option value, kInvalidGraph if a fusion group is not convex or partitions do not fit the
/// nodes. Near linear: see align_layout.cpp.
AlignResult align_layout(Graph& graph, const AlignOptions& options, Diagnostics& diagnostics);

/// Checks an aligned document by its own statements, without any of align_layout's data: every op
/// reads its operands in the layout of its mode, what leaves a partition is row-major, and no group
/// has two modes. Adds an error for each conflict. O(nodes + edges).
void verify_alignment(const Graph& graph, Diagnostics& diagnostics);

/// The numbers that --assert compares.
std::map<std::string, double> align_metrics(const AlignResult& result);
/// Totals, for --report.
std::string format_align_report(const AlignResult& result);
/// Every conversion with its reason, totals by cause and the certificate, for --explain.
std::string format_align_explanation(const AlignResult& result);
/// Graphviz text: ALIGN yellow, NALIGN grey, ops that take both green with a border of their
/// choice, conversions as diamonds; a cluster for each partition. `graph` is what align_layout
/// made.
std::string alignment_to_dot(const Graph& graph, const AlignResult& result);

}  // namespace npu
