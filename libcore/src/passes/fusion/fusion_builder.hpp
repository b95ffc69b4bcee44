// SPDX-License-Identifier: Apache-2.0
// What the fusion patterns share: facts about every node, and the groups that grow.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "npu/ir/graph.hpp"
#include "npu/passes/fuse.hpp"
#include "ops/op_catalogue.hpp"

namespace npu::fusion {

/// The built-in patterns, in the order of fusion_patterns().
enum class Pattern : std::uint8_t {
  kChain,
  kMultiHeadAttention,
  kAttention,
  kSqueezeExcite,
  kRmsNorm,
  kLayerNorm,
  kConvBnAct,
  kConvBn,
  kConvAct,
  kLinearAct,
  kResidual,
  kLinearBnAct,
  kEpilogue,
  kReduction,
  kDepthwisePointwise,
  kQkvMerge,
  kHorizontal,
  kConcatSlices,
  kElementwise,
  kInjective,
  kScaledAttention,  ///< from here on what kernels of a backend compute, see kernel_patterns.hpp
  kChannelGate,
  kWrittenGelu,
  kLinearSiblings,
  kConvPostOps,
  kProductPostOps,
  kNormRelu,
  kNormPointwise,
  kExpandDepthwise,
  kResizedPointwise,
  kQuantized,
  kConcatInPlace,
  kDequantizedOnRead,
  kNoCopy,
  kConstant,
  kUnused,
};
inline constexpr std::size_t kPatternCount = 36;
/// Patterns whose only purpose is to name nodes that need no kernel.
constexpr bool is_kernelless(Pattern pattern) noexcept {
  return pattern >= Pattern::kConcatInPlace;
}

using Role = FusionRole;

struct NodeFacts {
  OpKind kind = OpKind::kOpaque;
  Role role = Role::kOther;
  bool alias = false;           ///< moves no data
  bool keeps_elements = false;  ///< an alias whose only result has all elements of its operand
  std::int32_t device = 0;      ///< nodes with different numbers are never in one group
  std::int32_t patterns = 0;    ///< which patterns its device has
  /// The only node that reads any of the results; -1 if there is none, there are several, or a
  /// result is an output of the graph. A getitem reads only the result that it selects.
  std::int32_t sole_consumer = -1;
  TensorId sole_result;  ///< the first operand of that node that this one makes
};

/// A pattern's number: of Pattern, or kPatternCount + index of a user's pattern.
using PatternNumber = std::int32_t;
constexpr PatternNumber number_of(Pattern pattern) { return static_cast<PatternNumber>(pattern); }

struct Group {
  std::vector<std::int32_t> nodes;  ///< in no order; empty if it was merged into another one
  PatternNumber pattern = 0;
  std::int32_t anchor = -1;  ///< the convolution or matrix product that it grew from
  std::int32_t sink = -1;    ///< the node whose results leave the group; -1: several
  bool absorbs = false;      ///< takes in element-wise producers of its members
  bool plain = true;         ///< reads no activation besides the anchor's first operand
};

/// The state of one run. Patterns only ever add free nodes to groups, or merge groups.
///
/// Every group is single-exit (only its sink has readers outside) or single-entry (everything that
/// it reads besides weights and graph inputs is one tensor). The groups can then be ordered: a
/// cycle of groups would give a cycle of nodes, through the sinks of the former and the entries of
/// the latter.
class FusionBuilder {
 public:
  FusionBuilder(const Graph& graph, const FuseOptions& options);

  const Graph& graph() const noexcept { return graph_; }
  const FuseOptions& options() const noexcept { return options_; }
  std::int32_t size() const noexcept { return static_cast<std::int32_t>(facts_.size()); }
  const Node& node(std::int32_t n) const { return graph_.nodes()[static_cast<std::size_t>(n)]; }
  const NodeFacts& facts(std::int32_t n) const { return facts_[static_cast<std::size_t>(n)]; }
  /// Whether any device has the pattern, and whether that of a node has it.
  bool enabled(Pattern pattern) const;
  bool enabled(Pattern pattern, std::int32_t n) const {
    return enabled_[static_cast<std::size_t>(facts(n).patterns)][static_cast<std::size_t>(pattern)];
  }
  bool is_output(TensorId id) const { return is_output_[index_of(id)] != 0; }

  bool free(std::int32_t n) const { return group_of_[static_cast<std::size_t>(n)] < 0; }
  std::int32_t group_of(std::int32_t n) const { return group_of_[static_cast<std::size_t>(n)]; }
  Group& group(std::int32_t g) { return groups_[static_cast<std::size_t>(g)]; }
  std::int32_t group_count() const { return static_cast<std::int32_t>(groups_.size()); }
  bool same_device(std::int32_t a, std::int32_t b) const {
    return facts(a).device == facts(b).device;
  }
  /// Whether a group may have `count` nodes.
  bool fits(std::size_t count) const {
    return static_cast<std::int64_t>(count) <= options_.max_ops;
  }

  std::int32_t add_group(std::vector<std::int32_t> nodes, PatternNumber pattern, std::int32_t sink);
  void join(std::int32_t group, std::int32_t node);
  /// Moves the nodes of `from` into `into`.
  void merge(std::int32_t into, std::int32_t from);

  /// The tensors that a node reads: of a getitem only the one that it selects.
  std::span<const TensorId> operands(std::int32_t n) const;
  /// The node that produces a tensor, or -1.
  std::int32_t producer(TensorId id) const { return graph_.tensor(id).producer.value; }
  /// Calls visit(consumer) for every reader of a tensor but getitems that select another result.
  template <typename Visit>
  void for_each_consumer(TensorId id, const Visit& visit) {
    for (const NodeId consumer : graph_.tensor(id).consumers) {
      ++steps_;
      if (reads(consumer.value, id)) visit(consumer.value);
    }
  }
  bool reads(std::int32_t n, TensorId id) const;
  /// The result of `from` that `to` reads.
  TensorId tensor_between(std::int32_t from, std::int32_t to) const;
  /// Whether the chain's tensor is the first operand of `n`, and no other one.
  bool enters_first(std::int32_t n, TensorId id) const;
  std::int64_t elements(TensorId id) const;
  /// Elements of the first result; 0 if there is none.
  std::int64_t result_elements(std::int32_t n) const;

  /// An element-wise op that can run in a kernel after the result `id`: it reads it in a place
  /// where element i is needed for element i, and its result has as many elements.
  bool is_epilogue_op(std::int32_t n, TensorId id) const;

  /// What plan_fusion gives back: nodes that are in no group become groups of one.
  FusionPlan finish();

  std::int64_t& steps() noexcept { return steps_; }

 private:
  using PatternSet = std::array<bool, kPatternCount>;

  /// `defaults`: the patterns that a device has; null: those that are on by default.
  PatternSet select_patterns(const std::vector<std::string>* defaults) const;
  void collect_facts();
  void find_sole_consumers();

  const Graph& graph_;
  const FuseOptions& options_;
  std::vector<PatternSet> enabled_;  ///< the first for devices without patterns of their own
  std::vector<NodeFacts> facts_;
  std::vector<std::int32_t> selected_;  ///< by node: the operand that a getitem selects, else -1
  std::vector<char> is_output_;
  std::vector<std::int32_t> group_of_;
  std::vector<Group> groups_;
  std::int64_t steps_ = 0;
};

/// A convolution with one filter per channel.
bool is_depthwise(const FusionBuilder& builder, std::int32_t n);
/// A convolution with a filter of one point that reads all channels, with stride 1.
bool is_pointwise(const FusionBuilder& builder, std::int32_t n);
/// A matrix product with a weight, directly or through aliases of it.
bool is_projection(const FusionBuilder& builder, std::int32_t n);

// One verb for each stage, in the order in which plan_fusion calls them.
void match_user_patterns(FusionBuilder& builder);
void match_chains(FusionBuilder& builder);
void match_kernels(FusionBuilder& builder);
void match_multi_head_attention(FusionBuilder& builder);
void match_attention(FusionBuilder& builder);
void match_squeeze_excite(FusionBuilder& builder);
void match_norms(FusionBuilder& builder);
void grow_anchors(FusionBuilder& builder);
void grow_reductions(FusionBuilder& builder);
void merge_depthwise_pointwise(FusionBuilder& builder);
void merge_siblings(FusionBuilder& builder);
void merge_horizontally(FusionBuilder& builder);
void write_slices(FusionBuilder& builder);
void absorb_elementwise(FusionBuilder& builder);

/// What a group reads and writes, as npu.fusion states it.
struct GroupTraffic {
  std::vector<TensorId> inputs;   ///< graph inputs and results of other groups
  std::vector<TensorId> outputs;  ///< results that others or the graph's outputs need
  double flops = 0;
  double input_bytes = 0;
  double weight_bytes = 0;
  double output_bytes = 0;
  double on_chip_bytes = 0;  ///< results that only the group reads
  std::int64_t kernels = 0;  ///< nodes that move data
};

/// Measures groups one after another, each in the time of its nodes and edges.
class TrafficMeter {
 public:
  explicit TrafficMeter(const Graph& graph);
  /// `writes_slices`: operands of the group's cat from outside are in its result already.
  GroupTraffic measure(std::span<const NodeId> nodes, bool writes_slices);

 private:
  const Graph& graph_;
  std::vector<char> is_output_;
  std::vector<std::int32_t> member_;  ///< by node: the last group that it was measured in
  std::vector<std::int32_t> seen_;    ///< by tensor, likewise
  std::int32_t stamp_ = 0;
};

/// The report of a graph whose nodes are in `groups`.
FusionReport report_of(const Graph& graph, std::span<const FusionGroup> groups);

/// Small letters, digits and single hyphens between them, at most 64.
bool is_pattern_name(std::string_view name);

}  // namespace npu::fusion
