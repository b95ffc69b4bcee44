// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "npu/ir/graph.hpp"
#include "npu/support/error.hpp"

namespace npu {

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
  std::string target = {};  ///< whose rules apply to a document without a target; empty: the
                            ///< defaults of AlignRules
};

/// One converted tensor, shared by all of its users in a partition.
struct AlignConversion {
  std::string tensor;   ///< its row-major form, which keeps the tensor's name
  std::string aligned;  ///< its aligned form
  std::string node;     ///< the npu.channel_norm
  bool to_nalign = false;
  bool existed = false;    ///< was in the document already
  std::int64_t bytes = 0;  ///< of the copy that it writes
  double predicted_us = 0;
  std::string device;
  std::int64_t partition = -1;     ///< -1: the document has no partitions
  std::vector<std::string> users;  ///< nodes that read the copy; "graph output" etc. last
  std::string from, from_rule;     ///< the op and the rule that fix the layout it comes in
  std::string to, to_rule;         ///< and the layout that its users need
};

/// A conversion that the modes call for but that costs nothing.
struct AlignRemoval {
  std::string tensor;
  bool to_nalign = false;
  std::string cause;  ///< "constant", "one-dimensional", "channels only", ...
};

/// A fusion group whose members cannot agree on a layout.
struct AlignSplit {
  std::int64_t group = 0;
  std::vector<std::int64_t> groups;       ///< the groups it became; the first is `group`
  std::string aligned, aligned_rule;      ///< the first member that must be ALIGN
  std::string unaligned, unaligned_rule;  ///< and the first that must be NALIGN
};

struct AlignNode {
  std::string name;
  AlignMode mode = AlignMode::kUnknown;
  AlignMode allowed = AlignMode::kUnknown;  ///< before the search
  std::string_view rule;                    ///< why
};

/// What the conversions of one labelling cost.
struct AlignCosts {
  std::int64_t conversions = 0;
  std::int64_t to_align = 0;
  std::int64_t to_nalign = 0;
  std::int64_t bytes = 0;  ///< written by conversions
  double predicted_us = 0;
  std::int64_t padded_bytes = 0;  ///< by which aligned tensors are larger than row-major ones
};

/// Proof that a labelling is optimal: a flow whose value is that of the cut.
struct AlignCertificate {
  std::int64_t cut = 0;
  std::int64_t flow = 0;
  std::int64_t scale = 1;  ///< one unit of the chosen weight; lower digits count padded bytes
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
/// ops disagree, and writes `npu.layout`. Conversions of an earlier run are removed first; others
/// are respected. Works on a partitioned, a tagged or a bare document. Throws Error kUsage for an
/// unknown option value, kInvalidGraph if a fusion group is not convex or partitions do not match
/// the nodes. Nearly linear: see align_layout.cpp.
AlignResult align_layout(Graph& graph, const AlignOptions& options, Diagnostics& diagnostics);

/// Checks an aligned document by what it states, independently of align_layout: every op reads its
/// operands in the layout of its mode, tensors that leave a partition are row-major, and no group
/// has two modes. Adds an error for each conflict. O(nodes + edges).
void verify_alignment(const Graph& graph, Diagnostics& diagnostics);

/// The numbers that --assert compares.
std::map<std::string, double> align_metrics(const AlignResult& result);
/// Totals, for --report.
std::string format_align_report(const AlignResult& result);
/// Every conversion with its reason, totals by cause and the certificate, for --explain.
std::string format_align_explanation(const AlignResult& result);
/// Graphviz text: ALIGN yellow, NALIGN grey, ops that accept both green with a border in the colour
/// of their mode, conversions as diamonds; one cluster per partition.
/// `graph` is align_layout's result.
std::string alignment_to_dot(const Graph& graph, const AlignResult& result);

}  // namespace npu
