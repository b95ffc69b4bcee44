// SPDX-License-Identifier: Apache-2.0
// The blocks strategy: the blocks that a model is built of, found from its graph alone.
//
// A chain of nodes through which everything passes (the post-dominators of the deepest source) cuts
// the graph into segments. A segment with more than its last node forks and joins again; if it has
// a convolution or matrix product, it is a block: a residual block, a module of branches. The
// segments between blocks form a chain, which becomes a stem, a tail or a stage; a chain of
// depthwise convolutions is cut into one block each, with the pointwise ones around it. Attention
// and the block after it are one layer. Channel gates and norms that are written out join their
// neighbours. At a depth of 2 and more, layers are split into such segments, and segments into
// their branches.
//
// Side inputs (masks, positions) go where they are first needed, side outputs where they are
// produced, so the blocks stay in order. Fusion groups stay whole. A block with nodes of several
// devices becomes several partitions. O((nodes + edges) log nodes) for each level.
#include "partition/strategies/blocks.hpp"

#include <algorithm>
#include <numeric>
#include <string>

#include "flow/dominators.hpp"
#include "npu/partition/strategies.hpp"
#include "npu/support/ids.hpp"
#include "ops/op_catalogue.hpp"
#include "partition/device_runs.hpp"
#include "partition/fused_graph.hpp"
#include "partition/plan_builder.hpp"
#include "passes/fusion/node_facts.hpp"

namespace npu {
namespace {

using fusion::FusionBuilder;
using fusion::Role;
using Nodes = std::vector<std::int32_t>;  // ascending, which is a topological order

// The nodes between two links of the chain: after the previous link, up to `join`.
struct Segment {
  Nodes nodes;
  std::int32_t join = -1;
  bool forks = false;     // a path from the previous link to `join` has a node in between
  bool anchored = false;  // has a convolution, matrix product or the like
  bool is_block = false;  // forks, anchored, and no gate
  bool attends = false;
};

struct Block {
  std::vector<Segment> segments;
  bool is_block = false;  // not a chain
  bool attends = false;
};

class BlockFinder {
 public:
  explicit BlockFinder(const Graph& graph)
      : graph_(graph), facts_(graph, options_), local_(graph.nodes().size(), -1) {}

  // Each block's nodes, in an order in which the blocks can run.
  std::vector<Nodes> find(std::int64_t depth) {
    Nodes all(graph_.nodes().size());
    std::iota(all.begin(), all.end(), 0);
    std::vector<Nodes> found;
    split(all, depth, found);
    return found;
  }

 private:
  // ---- levels ----

  void split(const Nodes& nodes, std::int64_t depth, std::vector<Nodes>& found) {
    for (const Block& block : assemble(segments_of(nodes))) refine(block, depth, found);
  }

  void refine(const Block& block, std::int64_t depth, std::vector<Nodes>& found) {
    const auto blocks = std::count_if(block.segments.begin(), block.segments.end(),
                                      [](const Segment& s) { return s.is_block; });
    if (depth <= 1 || blocks == 0) {
      found.push_back(nodes_of(block.segments));
      return;
    }
    if (blocks > 1) {  // a layer: its blocks, each with what follows it
      Block part;
      for (const Segment& segment : block.segments) {
        const bool has_block = std::any_of(part.segments.begin(), part.segments.end(),
                                           [](const Segment& s) { return s.is_block; });
        if (segment.is_block && has_block) {
          refine(part, depth - 1, found);
          part = {};
        }
        part.segments.push_back(segment);
      }
      refine(part, depth - 1, found);
      return;
    }
    // One block: its branches, then the join and what follows.
    Nodes before;
    Nodes rest;
    bool behind = false;
    for (const Segment& segment : block.segments) {
      if (!segment.is_block) {
        (behind ? rest : before)
            .insert((behind ? rest : before).end(), segment.nodes.begin(), segment.nodes.end());
        continue;
      }
      behind = true;
      if (!before.empty()) found.push_back(before);
      Nodes inside = segment.nodes;
      inside.erase(std::find(inside.begin(), inside.end(), segment.join));
      for (const Nodes& branch : components_of(inside)) split(branch, depth - 1, found);
      rest.push_back(segment.join);
    }
    found.push_back(rest);
  }

  static Nodes nodes_of(const std::vector<Segment>& segments) {
    Nodes nodes;
    for (const Segment& segment : segments) {
      nodes.insert(nodes.end(), segment.nodes.begin(), segment.nodes.end());
    }
    std::sort(nodes.begin(), nodes.end());
    return nodes;
  }

  template <typename Visit>
  void for_each_successor(std::int32_t n, const Visit& visit) const {
    for (const TensorId output : facts_.node(n).outputs) {
      for (const NodeId consumer : graph_.tensor(output).consumers) {
        if (local_[index_of(consumer.value)] >= 0) visit(consumer.value);
      }
    }
  }

  // Connected components, in the order of their first nodes.
  std::vector<Nodes> components_of(const Nodes& nodes) {
    number(nodes);
    std::vector<std::int32_t> root(nodes.size());
    std::iota(root.begin(), root.end(), 0);
    const auto find_root = [&](std::int32_t v) {
      while (root[index_of(v)] != v) {
        root[index_of(v)] = root[index_of(root[index_of(v)])];
        v = root[index_of(v)];
      }
      return v;
    };
    for (const std::int32_t n : nodes) {
      for_each_successor(n, [&](std::int32_t next) {
        const std::int32_t a = find_root(local_[index_of(n)]);
        const std::int32_t b = find_root(local_[index_of(next)]);
        root[index_of(std::max(a, b))] = std::min(a, b);
      });
    }
    std::vector<Nodes> components;
    std::vector<std::int32_t> place(nodes.size(), -1);
    for (const std::int32_t n : nodes) {
      const std::int32_t r = find_root(local_[index_of(n)]);
      if (place[index_of(r)] < 0) {
        place[index_of(r)] = static_cast<std::int32_t>(components.size());
        components.emplace_back();
      }
      components[index_of(place[index_of(r)])].push_back(n);
    }
    forget(nodes);
    return components;
  }

  void number(const Nodes& nodes) {
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      local_[index_of(nodes[i])] = static_cast<std::int32_t>(i);
    }
  }
  void forget(const Nodes& nodes) {
    for (const std::int32_t n : nodes) local_[index_of(n)] = -1;
  }

  // ---- segments ----

  std::vector<Segment> segments_of(const Nodes& nodes) {
    if (nodes.empty()) return {};
    number(nodes);
    const std::size_t count = nodes.size();
    // The main result: the end of the longest path. Nodes that do not lead to it are side outputs.
    std::vector<std::int32_t> length(count, 0);
    std::vector<char> has_successor(count, 0);
    for (std::size_t i = 0; i < count; ++i) {
      for_each_successor(nodes[i], [&](std::int32_t next) {
        auto& value = length[index_of(local_[index_of(next)])];
        value = std::max(value, length[i] + 1);
        has_successor[i] = 1;
      });
    }
    const auto sink =
        static_cast<std::size_t>(std::max_element(length.begin(), length.end()) - length.begin());
    std::vector<char> leads(count, 0);
    leads[sink] = 1;
    for (std::size_t i = count; i-- > 0;) {
      for_each_successor(nodes[i], [&](std::int32_t next) {
        leads[i] = leads[i] | leads[index_of(local_[index_of(next)])];
      });
    }
    const std::vector<std::int32_t> links = chain_of(nodes, leads, sink);
    std::vector<std::int32_t> segment_of = label(nodes, leads, links);
    std::vector<Segment> segments(links.size());
    for (std::size_t i = 0; i < count; ++i) {
      segments[index_of(segment_of[i])].nodes.push_back(nodes[i]);
    }
    mark_forks(nodes, links, segment_of, segments);
    for (std::size_t s = 0; s < links.size(); ++s) {
      segments[s].join = nodes[index_of(links[s])];
      describe(segments[s]);
    }
    forget(nodes);
    return segments;
  }

  // Local numbers of the post-dominators of the source that has most of them, ending at the sink.
  std::vector<std::int32_t> chain_of(const Nodes& nodes, const std::vector<char>& leads,
                                     std::size_t sink) const {
    std::vector<std::int64_t> offsets{0};
    std::vector<std::int32_t> targets;
    std::vector<char> has_predecessor(nodes.size(), 0);
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      if (leads[i] != 0) {
        for_each_successor(nodes[i], [&](std::int32_t next) {
          const std::int32_t to = local_[index_of(next)];
          if (leads[index_of(to)] == 0) return;
          targets.push_back(to);
          has_predecessor[index_of(to)] = 1;
        });
      }
      offsets.push_back(static_cast<std::int64_t>(targets.size()));
    }
    const DominatorTree tree = find_post_dominators(offsets, targets);
    std::int32_t source = static_cast<std::int32_t>(sink);
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      const auto v = static_cast<std::int32_t>(i);
      if (leads[i] != 0 && has_predecessor[i] == 0 && tree.depth(v) > tree.depth(source)) {
        source = v;
      }
    }
    std::vector<std::int32_t> links;
    for (std::int32_t v = source; v != tree.virtual_root(); v = tree.parent(v)) links.push_back(v);
    return links;
  }

  // The segment of each node. Every edge leads to the same segment or a later one: a node that
  // leads to the main result goes with the first of its readers, any
  // other with the last of its producers.
  std::vector<std::int32_t> label(const Nodes& nodes, const std::vector<char>& leads,
                                  const std::vector<std::int32_t>& links) const {
    const auto last = static_cast<std::int32_t>(links.size()) - 1;
    std::vector<std::int32_t> labels(nodes.size(), last);
    std::vector<char> fixed(nodes.size(), 0);
    for (std::size_t s = 0; s < links.size(); ++s) {
      labels[index_of(links[s])] = static_cast<std::int32_t>(s);
      fixed[index_of(links[s])] = 1;
    }
    for (std::size_t i = nodes.size(); i-- > 0;) {
      if (leads[i] == 0 || fixed[i] != 0) continue;
      for_each_successor(nodes[i], [&](std::int32_t next) {
        const auto to = index_of(local_[index_of(next)]);
        if (leads[to] != 0) labels[i] = std::min(labels[i], labels[to]);
      });
    }
    std::vector<std::int32_t> least(nodes.size(), 0);
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      if (leads[i] == 0) labels[i] = least[i];
      for_each_successor(nodes[i], [&](std::int32_t next) {
        auto& value = least[index_of(local_[index_of(next)])];
        value = std::max(value, labels[i]);
      });
    }
    return labels;
  }

  // A segment forks if a node of it other than its join reads the previous link.
  void mark_forks(const Nodes& nodes, const std::vector<std::int32_t>& links,
                  const std::vector<std::int32_t>& segment_of,
                  std::vector<Segment>& segments) const {
    for (std::size_t s = 0; s + 1 < links.size(); ++s) {
      for_each_successor(nodes[index_of(links[s])], [&](std::int32_t next) {
        const std::int32_t to = local_[index_of(next)];
        if (segment_of[index_of(to)] == static_cast<std::int32_t>(s) + 1 && to != links[s + 1]) {
          segments[s + 1].forks = true;
        }
      });
    }
  }

  bool is_anchor(std::int32_t n) const {
    if (facts_.facts(n).kind == OpKind::kAnchor) return true;
    if (facts_.facts(n).kind != OpKind::kOpaque) return false;
    const auto read = facts_.operands(n);  // recurrent layers and custom ops with weights
    return std::any_of(read.begin(), read.end(),
                       [&](TensorId id) { return graph_.tensor(id).kind == TensorKind::kWeight; });
  }

  void describe(Segment& segment) const {
    bool softmax = false;
    bool product = false;
    for (const std::int32_t n : segment.nodes) {
      const Role role = facts_.facts(n).role;
      segment.anchored = segment.anchored || is_anchor(n);
      softmax = softmax || role == Role::kSoftmax || role == Role::kSafeSoftmax;
      product = product || (is_matrix_product(role) && !fusion::is_projection(facts_, n));
      segment.attends = segment.attends || role == Role::kAttention ||
                        facts_.node(n).op_type.find("multi_head_attention") != std::string::npos;
    }
    segment.attends = segment.attends || (softmax && product);
    segment.is_block = segment.forks && segment.anchored && !is_gate(segment);
  }

  // Multiplies the segment's input by a smaller tensor computed from it.
  bool is_gate(const Segment& segment) const {
    if (facts_.facts(segment.join).role != Role::kMul) return false;
    const auto read = facts_.operands(segment.join);
    return std::any_of(read.begin(), read.end(), [&](TensorId id) {
      return facts_.elements(id) < facts_.result_elements(segment.join);
    });
  }

  // ---- blocks ----

  // A segment that belongs to the one before it: element-wise ops, or a norm.
  bool follows(const Segment& segment) const {
    if (segment.is_block || segment.anchored) return false;
    return std::all_of(segment.nodes.begin(), segment.nodes.end(), [&](std::int32_t n) {
      const auto& f = facts_.facts(n);
      if (f.alias) return f.keeps_elements;
      return f.kind == OpKind::kElementwise || f.kind == OpKind::kBroadcast ||
             f.role == Role::kLayerNorm || f.role == Role::kRmsNorm || f.role == Role::kMean;
    });
  }

  std::vector<Block> assemble(std::vector<Segment> segments) {
    std::vector<Block> blocks;
    std::vector<Segment> chain;
    for (std::size_t s = 0; s < segments.size(); ++s) {
      if (!segments[s].is_block) {
        chain.push_back(std::move(segments[s]));
        continue;
      }
      close_chain(chain, false, blocks);
      Block block{.segments = {}, .is_block = true, .attends = segments[s].attends};
      block.segments.push_back(std::move(segments[s]));
      while (s + 1 < segments.size() && follows(segments[s + 1])) {
        block.segments.push_back(std::move(segments[++s]));
      }
      blocks.push_back(std::move(block));
    }
    close_chain(chain, true, blocks);
    return join_layers(std::move(blocks));
  }

  static void append(Block& block, std::vector<Segment>& segments) {
    for (Segment& segment : segments) block.segments.push_back(std::move(segment));
    segments.clear();
  }

  // Makes blocks of a chain, cut after poolings and around depthwise convolutions.
  void close_chain(std::vector<Segment>& chain, bool at_end, std::vector<Block>& blocks) {
    if (chain.empty()) return;
    const bool anchored =
        std::any_of(chain.begin(), chain.end(), [](const Segment& s) { return s.anchored; });
    if (!anchored && !blocks.empty() && (!at_end || blocks.back().is_block)) {
      append(blocks.back(), chain);
      return;
    }
    std::vector<std::vector<Segment>> kernels = kernels_of(chain);
    chain.clear();
    const auto anchor_is = [&](std::size_t k, bool (*test)(const FusionBuilder&, std::int32_t)) {
      for (const Segment& segment : kernels[k]) {
        for (const std::int32_t n : segment.nodes) {
          if (is_anchor(n)) return test(facts_, n);
        }
      }
      return false;
    };
    Block run;
    const auto flush = [&] {
      if (!run.segments.empty()) blocks.push_back(std::move(run));
      run = {};
    };
    for (std::size_t k = 0; k < kernels.size(); ++k) {
      const bool depthwise = anchor_is(k, fusion::is_depthwise);
      const bool expands = k + 1 < kernels.size() && anchor_is(k, fusion::is_pointwise) &&
                           !depthwise && anchor_is(k + 1, fusion::is_depthwise);
      if (depthwise || expands) {
        flush();
        if (expands) append(run, kernels[k++]);
        append(run, kernels[k]);
        if (k + 1 < kernels.size() && anchor_is(k + 1, fusion::is_pointwise)) {
          append(run, kernels[++k]);
        }
        flush();
        continue;
      }
      const bool ends_stage = !kernels[k].empty() && ends_with_pooling(kernels[k]);
      append(run, kernels[k]);
      if (ends_stage) flush();
    }
    flush();
  }

  bool ends_with_pooling(const std::vector<Segment>& kernel) const {
    return facts_.facts(kernel.back().join).role == Role::kWindow;
  }

  // Each anchor with the segments that follow it; those before the first anchor belong to it.
  static std::vector<std::vector<Segment>> kernels_of(std::vector<Segment>& chain) {
    std::vector<std::vector<Segment>> kernels(1);
    bool has_anchor = false;
    for (Segment& segment : chain) {
      // A gate has anchors as well, but belongs to the convolution before it.
      const bool starts = segment.anchored && !segment.forks;
      if (starts && has_anchor) kernels.emplace_back();
      has_anchor = has_anchor || segment.anchored;
      kernels.back().push_back(std::move(segment));
    }
    return kernels;
  }

  // Attention, or several in a row (self- and cross-attention), and the block after it.
  static std::vector<Block> join_layers(std::vector<Block> blocks) {
    std::vector<Block> joined;
    for (std::size_t b = 0; b < blocks.size();) {
      std::size_t end = b;
      while (end < blocks.size() && blocks[end].is_block && blocks[end].attends) ++end;
      const bool feeds =
          end > b && end < blocks.size() && blocks[end].is_block && !blocks[end].attends;
      if (!feeds) {
        // Attention without a block after it: one block each.
        end = std::max(end, b + 1);
        for (; b < end; ++b) joined.push_back(std::move(blocks[b]));
        continue;
      }
      Block& layer = joined.emplace_back(Block{.segments = {}, .is_block = true, .attends = true});
      for (; b <= end; ++b) append(layer, blocks[b].segments);
    }
    return joined;
  }

  const Graph& graph_;
  FuseOptions options_{.patterns = {"none"}};
  FusionBuilder facts_;
  std::vector<std::int32_t> local_;  // by node: its number in the current set, or -1
};

}  // namespace

std::vector<std::vector<NodeId>> find_blocks(const Graph& graph, std::int64_t depth) {
  std::vector<std::vector<NodeId>> blocks;
  for (const Nodes& nodes : BlockFinder(graph).find(depth)) {
    auto& block = blocks.emplace_back();
    for (const std::int32_t n : nodes) block.push_back(NodeId{n});
    std::sort(block.begin(), block.end());
  }
  return blocks;
}

StrategyOutcome partition_blocks(Graph& graph, const Target&, const PartitionOptions& options,
                                 Diagnostics&) {
  const FusedGraph fused = build_fused_graph(graph);
  const std::vector<std::vector<NodeId>> found = find_blocks(graph, options.depth);
  // A fusion group that spans blocks goes to the last one; its readers must not come earlier.
  std::vector<std::int32_t> block_of(fused.size(), 0);
  for (std::size_t b = 0; b < found.size(); ++b) {
    for (const NodeId id : found[b]) {
      auto& block = block_of[index_of(fused.fused_node_of[index_of(id.value)])];
      block = std::max(block, static_cast<std::int32_t>(b));
    }
  }
  std::vector<std::vector<std::int32_t>> blocks(found.size());
  for (const std::int32_t fused_node : fused.order) {
    for (const std::int32_t next : fused.successors(fused_node)) {
      auto& block = block_of[index_of(next)];
      block = std::max(block, block_of[index_of(fused_node)]);
    }
    blocks[index_of(block_of[index_of(fused_node)])].push_back(fused_node);
  }
  StrategyOutcome outcome;
  outcome.plan.strategy = "blocks";
  BlocksFacts facts;
  std::vector<std::int32_t> local(fused.size(), -1);
  for (const std::vector<std::int32_t>& part : blocks) {
    if (part.empty()) continue;  // its nodes went to a later block with their groups
    const FusedGraph own = induced_fused_graph(fused, part, local);
    BlocksFacts::Block& block = facts.blocks.emplace_back();
    const std::size_t first = outcome.plan.partitions.size();
    append_runs(outcome.plan, own, fewest_device_runs(own));
    for (std::size_t p = first; p < outcome.plan.partitions.size(); ++p) {
      const std::vector<NodeId>& nodes = outcome.plan.partitions[p].nodes;
      block.partitions.push_back(static_cast<std::int32_t>(p));
      block.nodes.insert(block.nodes.end(), nodes.begin(), nodes.end());
    }
    std::sort(block.nodes.begin(), block.nodes.end());
  }
  connect_partitions(graph, outcome.plan);
  outcome.facts = std::move(facts);
  return outcome;
}

}  // namespace npu
