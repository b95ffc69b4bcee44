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
#include "passes/fusion/pattern_table.hpp"

namespace npu::fusion {

using Role = FusionRole;
using NodeList = std::vector<std::int32_t>;

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

  /// An op on elements, of one shape or broadcast, that moves data.
  bool is_elementwise() const noexcept {
    return !alias && (kind == OpKind::kElementwise || kind == OpKind::kBroadcast);
  }
};

/// Whose reads of a result count: of all nodes; or of those alone that a graph output needs, one
/// that reads it twice counting as two.
enum class Readers : std::uint8_t { kAll, kNeeded };

/// A node, and the tensor by which a walk comes to it.
struct Link {
  std::int32_t node = -1;
  TensorId tensor;
};

/// What a walk does with a node: it stops before it, goes on, goes on and may end with it, or ends
/// with it.
enum class Step : std::uint8_t { kStop, kPass, kAccept, kLast };

struct Group {
  NodeList nodes;  ///< in no order; empty if it was merged into another one
  Pattern pattern{};
  std::int32_t sink = -1;    ///< the node whose results leave the group; -1: several
  std::int32_t anchor = -1;  ///< the convolution or matrix product that it grew from
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
  Role role(std::int32_t n) const { return facts(n).role; }
  const TensorInfo& tensor(TensorId id) const { return graph_.tensor(id); }
  /// The first result of a node that has one.
  const TensorInfo& result(std::int32_t n) const { return tensor(node(n).outputs.front()); }
  /// Whether any device has the pattern, and whether that of a node has it.
  bool enabled(Pattern pattern) const;
  bool enabled(Pattern pattern, std::int32_t n) const {
    return enabled_[static_cast<std::size_t>(facts(n).patterns)][static_cast<std::size_t>(pattern)];
  }
  bool is_output(TensorId id) const { return is_output_[index_of(id)] != 0; }
  /// Whether no graph output needs what a node computes.
  bool unused(std::int32_t n) const { return unused_[static_cast<std::size_t>(n)] != 0; }
  /// The only node that reads a tensor, once, besides unused ones; -1 if there is none, or if it is
  /// a graph output.
  std::int32_t only_reader(TensorId id) const { return only_reader_[index_of(id)]; }

  bool free(std::int32_t n) const { return group_of_[static_cast<std::size_t>(n)] < 0; }
  std::int32_t group_of(std::int32_t n) const { return group_of_[static_cast<std::size_t>(n)]; }
  Group& group(std::int32_t g) { return groups_[static_cast<std::size_t>(g)]; }
  std::int32_t group_count() const { return static_cast<std::int32_t>(groups_.size()); }
  bool same_device(std::int32_t a, std::int32_t b) const {
    return facts(a).device == facts(b).device;
  }
  /// Nodes of the largest group.
  std::size_t most() const noexcept { return static_cast<std::size_t>(options_.max_ops); }
  bool fits(std::size_t count) const noexcept { return count <= most(); }

  /// The last node is the sink. The reference stays valid.
  Group& add_group(NodeList nodes, Pattern pattern);
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
  /// The only reader of a node's result; -1 if there is none. For kNeeded the node has one result.
  Link reader_of(std::int32_t n, Readers readers) const;
  /// The same for a reader that may join the node's group: it is free and on its device.
  Link below(std::int32_t n, Readers readers);
  /// The node that makes a tensor for `reader` alone and may join its group; -1 if there is none.
  /// For kNeeded it has operands and one result.
  std::int32_t above(TensorId id, std::int32_t reader, Readers readers);
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
  using PatternSet = std::array<bool, kPatterns.size()>;

  /// `defaults`: the patterns that a device has; null: those that are on by default.
  PatternSet select_patterns(const std::vector<std::string>* defaults) const;
  NodeFacts facts_of(const Node& node) const;
  void collect_facts();
  void find_sole_consumers();
  void find_only_readers();

  const Graph& graph_;
  const FuseOptions& options_;
  std::vector<PatternSet> enabled_;  ///< the first of nodes without a device, one for each device
  std::vector<NodeFacts> facts_;
  std::vector<std::int32_t> selected_;  ///< by node: the operand that a getitem selects, else -1
  std::vector<char> is_output_;
  std::vector<char> unused_;
  std::vector<std::int32_t> only_reader_;
  std::vector<std::int32_t> group_of_;
  std::vector<Group> groups_;
  std::int64_t steps_ = 0;
};

/// Follows results with one reader from the last of `nodes` on, up to `most` nodes. `step(link)`
/// says what becomes of each reader; those behind the last one that was accepted are left out.
template <typename StepOf>
void follow(FusionBuilder& builder, Readers readers, std::size_t most, NodeList& nodes,
            const StepOf& step) {
  std::size_t accepted = nodes.size();
  for (Step last = Step::kPass; last != Step::kLast && nodes.size() < most;) {
    const Link next = builder.below(nodes.back(), readers);
    last = next.node < 0 ? Step::kStop : step(next);
    if (last == Step::kStop) break;
    nodes.push_back(next.node);
    if (last != Step::kPass) accepted = nodes.size();
  }
  nodes.resize(accepted);
}

/// Makes groups of the blocks that `find(n)` gives for nodes, each with its result at the end.
enum class Order : std::uint8_t { kFirstFirst, kLastFirst };
template <typename Find>
void match_each(FusionBuilder& builder, Pattern pattern, const Find& find,
                Order order = Order::kFirstFirst) {
  if (!builder.enabled(pattern)) return;
  for (std::int32_t i = 0; i < builder.size(); ++i) {
    ++builder.steps();
    const std::int32_t n = order == Order::kFirstFirst ? i : builder.size() - 1 - i;
    if (!builder.free(n) || !builder.enabled(pattern, n)) continue;
    NodeList nodes = find(n);
    if (!nodes.empty() && builder.fits(nodes.size())) builder.add_group(std::move(nodes), pattern);
  }
}

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

/// What follows a name that is no pattern's: the nearest one, of these or of `names`, or else.
std::string pattern_hint(std::string_view name, std::vector<std::string> names,
                         std::string_view otherwise);

/// Small letters, digits and single hyphens between them, at most 64.
bool is_pattern_name(std::string_view name);

}  // namespace npu::fusion
