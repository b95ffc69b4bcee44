// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "npu/ir/graph.hpp"
#include "npu/support/error.hpp"
#include "npu/target/target.hpp"

namespace npu {

/// Puts the nodes that `glob` matches on `device`. The glob is a shell pattern (*, ?, [a-z], \ as
/// the escape) and is matched against the op type and the name of each node.
struct ForceRule {
  std::string device;
  std::string glob;
};

struct TagOptions {
  std::vector<ForceRule> force = {};  ///< a later rule overrides an earlier one
  bool keep_tags =
      false;         ///< a node keeps its `dev_info` or `device` if the target has that device
  bool ask = false;  ///< ask the devices' backends which of the nodes they take
  bool fold = true;  ///< nodes that follow from weights and constants alone belong to no device
};

/// Gives every node a device: the first of the target, in its order, that runs the node, unless a
/// rule or a kept tag says otherwise. A getitem goes where its producer goes. Nodes that follow
/// from weights and constants alone, and that the device would compute in every run or that would
/// cut the graph, are folded (npu-ir(5)), and a node whose op a device names in `decompose` becomes
/// nodes that it runs; ids change if there are any. Sets `npu.target` and each
/// node's device and device_reason, and drops partitions and fusion groups of an earlier run.
/// Adds an error for a forced or kept device that cannot run its node and for a node that no device
/// runs; a warning for a glob that matches nothing. The graph is unchanged if there are errors.
/// True if the graph changed. Throws Error kUsage for a rule with a device that does not exist.
/// With `ask`, a node goes to no device whose backend refuses it; whom that was asked of is written
/// to "asked" of the devices in `npu.target`. Throws Error kUnsupported if none can be asked.
bool tag_ops(Graph& graph, const Target& target, const TagOptions& options,
             Diagnostics& diagnostics);

/// Nodes of one op type that went to one device for one reason.
struct TagReportRow {
  std::string op_type;
  std::string device;  ///< empty: folded
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
  std::int64_t nodes = 0;            ///< without the folded ones, which do not run
  std::int64_t folded = 0;
  std::int64_t kept_constants =
      0;  ///< of `nodes`: those that their device computes when it compiles
  double flops = 0;
  double bytes = 0;
  std::map<std::string, std::int64_t> decomposed;  ///< by op: how many of its nodes became others
};

/// The report of a tagged graph.
TagReport tag_report(const Graph& graph, const Target& target);

/// Tables with aligned columns: op types, then devices with their share of nodes, FLOPs and bytes,
/// how many nodes are constant, which ops were decomposed, if there are any, and
/// format_left_device.
std::string format_tag_report(const TagReport& report);
/// What follows the first table: devices with their share, constants, what left the first device.
std::string format_coverage(const TagReport& report);

/// Nodes that are not on the target's first device, although nobody placed them elsewhere by hand.
/// A getitem, which goes where its producer goes, does not count.
std::int64_t left_device(const TagReport& report);
/// One line: "left npu: nothing", or how many nodes of which ops did, and why.
std::string format_left_device(const TagReport& report);

/// nodes, flops, bytes, nodes_folded, nodes_decomposed; nodes_<device>, flops_<device>,
/// bytes_<device>; coverage_nodes, coverage_flops, coverage_bytes: the share on the target's first
/// device, 0 to 1 (1 if there is nothing to run); left_device, and unsupported_ops: the number of
/// their op types.
std::map<std::string, double> tag_metrics(const TagReport& report);

}  // namespace npu
