// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "npu/passes/align.hpp"
#include "npu/support/ids.hpp"
#include "target/align_rules.hpp"

namespace npu::align {

/// The mode that an op's rules give it, and the name of the rule that decided.
struct NodeMode {
  AlignMode mode = AlignMode::kUnknown;
  std::string_view rule;
};

/// Nodes between which tensors keep their layout: those of one partition, of one device where there
/// are no partitions, or all of them. What enters or leaves is row-major.
struct Region {
  std::string device;
  std::int64_t partition = -1;
  AlignRules rules;
};

/// What gets one mode: a fusion group within a region, a node with the getitems that read its
/// results, or a single node.
struct Unit {
  std::int32_t region = 0;
  NodeMode mode;
  NodeId decisive;               ///< the member whose rule `mode` is, else the first one
  std::vector<NodeId> members;   ///< in list order
  bool is_channel_norm = false;  ///< reads its operand in the mode that is not its own
};

/// An operand that has to be in its reader's mode.
struct Use {
  NodeId node;
  std::int32_t operand = 0;
  std::int32_t unit = 0;
};

/// A tensor in one region.
struct Value {
  TensorId tensor;
  std::int32_t region = 0;
  std::int32_t producer = -1;  ///< unit; -1: it comes from outside, row-major
  bool leaves = false;         ///< something outside needs it, row-major
  bool can_differ = true;      ///< false: both layouts are the same to its users
  std::string_view why_not;    ///< the reason for that
  std::vector<Use> uses;       ///< in node and operand order
  std::int64_t plain_bytes = 0;
  std::int64_t aligned_bytes = 0;
  double to_align_us = 0;
  double to_nalign_us = 0;
};

/// Everything that the algorithms need to know of a document.
struct Problem {
  std::vector<Region> regions;
  std::vector<NodeMode> node_modes;     ///< by node
  std::vector<std::int32_t> region_of;  ///< by node; -1: not aligned at all
  std::vector<std::int32_t> unit_of;    ///< by node; -1 as above
  std::vector<Unit> units;              ///< ordered by first member
  std::vector<Value> values;
  std::vector<std::int32_t> value_of;  ///< by tensor: in its producer's region, or -1
  std::vector<std::vector<std::int32_t>>
      parents;                                    ///< by unit: values it reads, whatever needs them
  std::vector<AlignSplit> splits;                 ///< `groups` is filled in later
  std::unordered_set<std::int64_t> split_groups;  ///< ids

  AlignMode required(const Use& use, const std::vector<AlignMode>& modes) const {
    const AlignMode own = modes[index_of(use.unit)];
    if (!units[index_of(use.unit)].is_channel_norm) return own;
    return own == AlignMode::kAlign ? AlignMode::kNalign : AlignMode::kAlign;
  }
};

/// The partition of each node; empty if the document has none. Throws where npu.partition is wrong,
/// or not what the nodes say.
std::vector<std::int64_t> listed_partitions(const Graph& graph);

/// Throws as align_layout does.
Problem build_problem(const Graph& graph, const AlignOptions& options, Diagnostics& diagnostics);

/// One (tensor, region, direction) that modes make necessary.
struct Conversion {
  std::int32_t value = 0;
  bool to_nalign = false;
  bool operator==(const Conversion&) const = default;
};

/// Those to NALIGN first, else by value; `modes` has kAlign or kNalign for every unit.
std::vector<Conversion> conversions_of(const Problem& problem, const std::vector<AlignMode>& modes);
/// Those that were in the document count as well.
AlignCosts costs_of(const Problem& problem, const std::vector<AlignMode>& modes,
                    const std::vector<Conversion>& conversions);

/// Which operands of a broadcasting op are smaller than the result, while another one is not.
class BroadcastOperands {
 public:
  BroadcastOperands(const Graph& graph, const Node& node);
  bool contains(std::size_t operand) const;

 private:
  const Graph& graph_;
  const Node& node_;
  bool any_ = false;
};
/// Why a tensor is the same to its users in both layouts; empty if it is not.
std::string_view same_in_both(const TensorInfo& tensor, const AlignRules& rules);
/// Whether `attrs.direction` says ALIGN to NALIGN.
bool converts_to_nalign(const Node& node);

}  // namespace npu::align
