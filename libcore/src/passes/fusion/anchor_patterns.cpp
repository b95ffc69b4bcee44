// SPDX-License-Identifier: Apache-2.0
// Convolutions and matrix products with the ops after them, and the plain chains that stop at
// forks and joins.
//
// An anchor takes ops along results that have one reader. Anchors are visited from the last to the
// first, so that an add of two of them goes to the later one, when the other operand exists. Each
// node is looked at by at most as many anchors as it has operands: O(nodes + edges).
#include <optional>

#include "passes/fusion/fusion_builder.hpp"

namespace npu::fusion {
namespace {

bool is_anchor(const FusionBuilder& builder, std::int32_t n) {
  return builder.facts(n).kind == OpKind::kAnchor && !builder.node(n).outputs.empty();
}

// What an epilogue op is to the named patterns: 'B' batch norm, 'A' activation, 'P' add of another
// activation, 'b' add of a bias, 'E' anything else.
char letter_of(const FusionBuilder& builder, std::int32_t n, TensorId entering) {
  const NodeFacts& facts = builder.facts(n);
  if (facts.role == Role::kBatchNorm) return 'B';
  if (is_activation(facts.role)) return 'A';
  if (facts.role != Role::kAdd) return 'E';
  for (const TensorId id : builder.operands(n)) {
    if (id == entering) continue;
    if (builder.graph().tensor(id).kind == TensorKind::kWeight) return 'b';
    return builder.elements(id) == builder.elements(entering) ? 'P' : 'E';
  }
  return 'E';
}

// The pattern that a sequence of letters after an anchor stands for, if any.
std::optional<Pattern> named_pattern(Role role, std::string_view letters) {
  const bool conv = role == Role::kConv;
  if (!conv && !is_matrix_product(role)) return std::nullopt;
  if (letters == "B") return conv ? Pattern::kConvBn : Pattern::kLinearBnAct;
  if (letters == "BA") return conv ? Pattern::kConvBnAct : Pattern::kLinearBnAct;
  if (letters == "A") return conv ? Pattern::kConvAct : Pattern::kLinearAct;
  if (letters == "P" || letters == "PA" || letters == "BP" || letters == "BPA") {
    return Pattern::kResidual;
  }
  return std::nullopt;
}

class AnchorGrower {
 public:
  AnchorGrower(FusionBuilder& builder, std::int32_t anchor)
      : builder_(builder), anchor_(anchor), nodes_{anchor} {}

  void grow() {
    const bool any = builder_.enabled(Pattern::kEpilogue, anchor_);
    std::int32_t current = anchor_;
    while (builder_.fits(nodes_.size() + 1)) {
      ++builder_.steps();
      const std::int32_t next = builder_.facts(current).sole_consumer;
      if (next < 0 || !builder_.free(next) || !builder_.same_device(anchor_, next)) break;
      if (builder_.facts(next).alias) {
        if (!builder_.facts(next).keeps_elements) break;
        nodes_.push_back(next);
        current = next;
        continue;
      }
      const TensorId entering = builder_.tensor_between(current, next);
      if (!builder_.is_epilogue_op(next, entering)) break;
      const char letter = letter_of(builder_, next, entering);
      if (letter != 'b') letters_ += letter;
      plain_ = plain_ && letter != 'P' && letter != 'E';
      nodes_.push_back(next);
      current = next;
      const auto pattern = named_pattern(builder_.facts(anchor_).role, letters_);
      if (pattern && builder_.enabled(*pattern, anchor_)) {
        accept(*pattern);
      } else if (any) {
        accept(pattern.value_or(Pattern::kEpilogue));
      } else if (letters_.size() >= 4) {
        break;  // longer than every named pattern
      }
    }
    nodes_.resize(accepted_);
    const std::int32_t sink = nodes_.back();
    const std::int32_t g = builder_.add_group(std::move(nodes_), number_of(pattern_), sink);
    builder_.group(g).anchor = anchor_;
    builder_.group(g).absorbs = true;
    builder_.group(g).plain = accepted_plain_;
  }

 private:
  void accept(Pattern pattern) {
    accepted_ = nodes_.size();
    accepted_plain_ = plain_;
    pattern_ = pattern;
  }

  FusionBuilder& builder_;
  std::int32_t anchor_;
  std::vector<std::int32_t> nodes_;
  std::string letters_;
  bool plain_ = true;
  std::size_t accepted_ = 1;
  bool accepted_plain_ = true;
  Pattern pattern_ = Pattern::kEpilogue;
};

// The reader of the only result of `n`, if it can be the next of a chain: no join, nothing in
// between.
std::int32_t next_of_chain(FusionBuilder& builder, std::int32_t n) {
  ++builder.steps();
  const std::int32_t next = builder.facts(n).sole_consumer;
  if (next < 0 || !builder.free(next) || !builder.same_device(n, next)) return -1;
  const TensorId entering = builder.tensor_between(n, next);
  if (!builder.enters_first(next, entering) || !builder.is_epilogue_op(next, entering)) return -1;
  for (const TensorId id : builder.operands(next)) {
    if (id != entering && builder.graph().tensor(id).kind != TensorKind::kWeight) return -1;
  }
  return next;
}

}  // namespace

void match_chains(FusionBuilder& builder) {
  if (!builder.enabled(Pattern::kChain)) return;
  for (std::int32_t n = 0; n < builder.size(); ++n) {
    const Role role = builder.facts(n).role;
    const bool anchor = role == Role::kConv || is_matrix_product(role);
    if (!builder.free(n) || !builder.enabled(Pattern::kChain, n)) continue;
    if (!anchor && role != Role::kBatchNorm && role != Role::kAdd) continue;
    std::vector<std::int32_t> nodes{n};
    std::int32_t next = next_of_chain(builder, n);
    if (anchor && next >= 0 && builder.fits(2) && builder.facts(next).role == Role::kBatchNorm) {
      nodes.push_back(next);
      next = next_of_chain(builder, next);
    }
    if (next >= 0 && builder.fits(nodes.size() + 1) && is_activation(builder.facts(next).role)) {
      nodes.push_back(next);
    }
    if (nodes.size() < 2) continue;
    const std::int32_t sink = nodes.back();
    builder.add_group(std::move(nodes), number_of(Pattern::kChain), sink);
  }
}

void grow_anchors(FusionBuilder& builder) {
  for (std::int32_t n = builder.size(); n-- > 0;) {
    if (builder.free(n) && is_anchor(builder, n)) AnchorGrower(builder, n).grow();
  }
}

}  // namespace npu::fusion
