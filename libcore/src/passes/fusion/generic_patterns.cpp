// SPDX-License-Identifier: Apache-2.0
// Patterns that depend only on the kinds of ops: reductions with their neighbours, and trees of
// element-wise ops.
//
// Both look from a node to its only reader. Nodes are visited from the last to the first, so the
// reader's group is known; a path of aliases between two members is walked once. O(nodes + edges).
#include "passes/fusion/fusion_builder.hpp"

namespace npu::fusion {
namespace {

bool is_elementwise(const NodeFacts& facts) {
  return !facts.alias && (facts.kind == OpKind::kElementwise || facts.kind == OpKind::kBroadcast);
}

bool is_injective(const NodeFacts& facts) {
  return !facts.alias && facts.kind == OpKind::kInjective;
}

Pattern reduction_pattern(Role role) {
  if (role == Role::kLayerNorm) return Pattern::kLayerNorm;
  return role == Role::kRmsNorm ? Pattern::kRmsNorm : Pattern::kReduction;
}

// A member of a group, with aliases on the way to it.
struct Reader {
  std::int32_t member = -1;
  std::vector<std::int32_t> aliases;
};

Reader reader_of(FusionBuilder& builder, std::int32_t n) {
  Reader reader;
  std::int32_t next = builder.facts(n).sole_consumer;
  while (next >= 0 && builder.same_device(n, next)) {
    ++builder.steps();
    if (!builder.free(next)) {
      reader.member = next;
      break;
    }
    if (!builder.facts(next).keeps_elements) break;
    reader.aliases.push_back(next);
    next = builder.facts(next).sole_consumer;
  }
  return reader;
}

// Whether `member` can compute the elements that it reads of `id` itself.
bool can_absorb(const FusionBuilder& builder, std::int32_t member, TensorId id, bool injective) {
  const NodeFacts& facts = builder.facts(member);
  if (facts.alias) return false;
  switch (facts.kind) {
    case OpKind::kElementwise:
    case OpKind::kBroadcast:
      return true;
    case OpKind::kInjective:
      return !injective || facts.role == Role::kCat;
    case OpKind::kReduction:
      // Windows overlap: what they read would be computed several times.
      return !injective && facts.role != Role::kWindow && builder.enters_first(member, id);
    default:
      return false;
  }
}

}  // namespace

void grow_reductions(FusionBuilder& builder) {
  for (std::int32_t n = builder.size(); n-- > 0;) {
    if (!builder.free(n) || builder.facts(n).kind != OpKind::kReduction) continue;
    const Pattern pattern = reduction_pattern(builder.facts(n).role);
    if (!builder.enabled(pattern, n)) continue;
    std::vector<std::int32_t> nodes{n};
    std::size_t accepted = 1;
    std::int32_t current = n;
    while (builder.fits(nodes.size() + 1)) {
      ++builder.steps();
      const std::int32_t next = builder.facts(current).sole_consumer;
      if (next < 0 || !builder.free(next) || !builder.same_device(n, next)) break;
      if (builder.facts(next).alias) {
        if (!builder.facts(next).keeps_elements) break;
      } else if (!builder.is_epilogue_op(next, builder.tensor_between(current, next))) {
        break;
      }
      nodes.push_back(next);
      if (!builder.facts(next).alias) accepted = nodes.size();
      current = next;
    }
    nodes.resize(accepted);
    const std::int32_t sink = nodes.back();
    const std::int32_t g = builder.add_group(std::move(nodes), number_of(pattern), sink);
    builder.group(g).absorbs = true;
  }
}

void absorb_elementwise(FusionBuilder& builder) {
  for (std::int32_t n = builder.size(); n-- > 0;) {
    if (!builder.free(n) || builder.node(n).outputs.empty()) continue;
    const bool moves = is_injective(builder.facts(n));
    if (!moves && !is_elementwise(builder.facts(n))) continue;
    if (!builder.enabled(moves ? Pattern::kInjective : Pattern::kElementwise, n)) continue;
    const Reader reader = reader_of(builder, n);
    if (reader.member >= 0) {
      const std::int32_t g = builder.group_of(reader.member);
      const std::int32_t last = reader.aliases.empty() ? n : reader.aliases.back();
      const TensorId entering = builder.tensor_between(last, reader.member);
      if (builder.group(g).absorbs && can_absorb(builder, reader.member, entering, moves) &&
          builder.fits(builder.group(g).nodes.size() + reader.aliases.size() + 1)) {
        for (const std::int32_t alias : reader.aliases) builder.join(g, alias);
        builder.join(g, n);
        if (moves && builder.group(g).pattern == number_of(Pattern::kElementwise)) {
          builder.group(g).pattern = number_of(Pattern::kInjective);
        }
        continue;
      }
    }
    const std::int32_t g =
        builder.add_group({n}, number_of(moves ? Pattern::kInjective : Pattern::kElementwise), n);
    builder.group(g).absorbs = true;
  }
}

}  // namespace npu::fusion
