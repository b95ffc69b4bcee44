// SPDX-License-Identifier: Apache-2.0
// Single nodes: those that need no kernel, since nothing needs their results, or these are known,
// or lie in the memory of an operand; and element-wise ops, which join the group of their only
// reader.
//
// For the latter nodes are visited from the last to the first, so the reader's group is known; a
// path of aliases between two members is walked once. O(nodes + edges).
#include <algorithm>

#include "passes/fusion/node_facts.hpp"
#include "passes/fusion/patterns.hpp"

namespace npu::fusion {
namespace {

// Whether a reader can compute the elements that it reads itself.
bool can_absorb(const FusionBuilder& builder, const Link& reader, bool injective) {
  const NodeFacts& facts = builder.facts(reader.node);
  if (facts.alias) return false;
  switch (facts.kind) {
    case OpKind::kElementwise:
    case OpKind::kBroadcast:
      return true;
    case OpKind::kInjective:
      return !injective || facts.role == Role::kCat;
    case OpKind::kReduction:
      // Windows overlap: what they read would be computed several times.
      return !injective && facts.role != Role::kWindow &&
             builder.enters_first(reader.node, reader.tensor);
    default:
      return false;
  }
}

}  // namespace

void claim_unused(FusionBuilder& builder) {
  match_each(builder, "unused"_pattern, [&](std::int32_t n) {
    const bool is_unused = builder.unused(n) && !builder.facts(n).alias;
    return NodeList(is_unused ? 1 : 0, n);
  });
}

void claim_constants(FusionBuilder& builder) {
  std::vector<char> known(index_of(builder.size()), 0);
  for (std::int32_t n = 0; n < builder.size(); ++n) {
    ++builder.steps();
    if (!builder.enabled("constant"_pattern, n)) continue;
    const std::vector<TensorId>& inputs = builder.node(n).inputs;
    const bool skips_first = builder.role(n) == Role::kFill && !inputs.empty();
    const auto first = inputs.begin() + (skips_first ? 1 : 0);
    const bool is_known = std::all_of(first, inputs.end(), [&](TensorId id) {
      const std::int32_t above = builder.producer(id);
      return is_weight(builder, id) || (above >= 0 && known[index_of(above)] != 0 &&
                                        builder.node(above).device == builder.node(n).device);
    });
    if (!is_known) continue;
    known[index_of(n)] = 1;
    if (!builder.free(n) || builder.facts(n).alias) continue;
    builder.add_group({n}, "constant"_pattern);
  }
}

void share_copies(FusionBuilder& builder) {
  match_each(builder, "no-copy"_pattern, [&](std::int32_t n) {
    // Repeated elements are read where they are.
    const bool is_copy = builder.node(n).op_type == "aten.repeat_interleave.self_int" ||
                         (builder.role(n) == Role::kSameOrder && !builder.facts(n).alias &&
                          keeps_row_major(builder, n));
    return NodeList(is_copy ? 1 : 0, n);
  });
}

void absorb_elementwise(FusionBuilder& builder) {
  for (std::int32_t n = builder.size(); n-- > 0;) {
    if (!builder.free(n) || builder.node(n).outputs.empty()) continue;
    const NodeFacts& facts = builder.facts(n);
    const bool moves = facts.kind == OpKind::kInjective && !facts.alias;
    if (!moves && !facts.is_elementwise()) continue;
    const Pattern pattern = moves ? "injective"_pattern : "elementwise"_pattern;
    if (!builder.enabled(pattern, n)) continue;
    NodeList nodes{n};
    follow(builder, Readers::kAll, builder.most(), nodes, [&](const Link& next) {
      return builder.facts(next.node).keeps_elements ? Step::kAccept : Step::kStop;
    });
    const Link reader = builder.reader_of(nodes.back(), Readers::kAll);
    const std::int32_t g = reader.node < 0 || !builder.same_device(n, reader.node)
                               ? -1
                               : builder.group_of(reader.node);
    if (g >= 0 && builder.group(g).absorbs && can_absorb(builder, reader, moves) &&
        builder.fits(builder.group(g).nodes.size() + nodes.size())) {
      for (const std::int32_t each : nodes) builder.join(g, each);
      if (moves && builder.group(g).pattern == "elementwise"_pattern) {
        builder.group(g).pattern = "injective"_pattern;
      }
      continue;
    }
    builder.add_group({n}, pattern).absorbs = true;
  }
}

}  // namespace npu::fusion
