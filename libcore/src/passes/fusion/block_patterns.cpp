// SPDX-License-Identifier: Apache-2.0
// Blocks that are found by their shape: attention, multi-head attention, channel gates, and norms
// that are written out.
//
// Each starts at the op that gives the block away (softmax, a multiply, a root) and looks at a
// bounded number of nodes around it. Inside these blocks a result may have several readers, all of
// them in the block; only the block's last node has readers outside, so it is convex. O(nodes).
#include <algorithm>
#include <functional>
#include <optional>
#include <queue>

#include "passes/fusion/fusion_builder.hpp"

namespace npu::fusion {
namespace {

bool is_softmax(Role role) { return role == Role::kSoftmax || role == Role::kSafeSoftmax; }

constexpr std::size_t kMaxSteps = 16;   // of a chain between two ops of a block
constexpr std::size_t kMaxBlock = 128;  // nodes of one attention block

bool contains(const std::vector<std::int32_t>& nodes, std::int32_t n) {
  return std::find(nodes.begin(), nodes.end(), n) != nodes.end();
}

bool is_elementwise(const FusionBuilder& builder, std::int32_t n) {
  const NodeFacts& facts = builder.facts(n);
  return !facts.alias && (facts.kind == OpKind::kElementwise || facts.kind == OpKind::kBroadcast);
}

// The producer of a tensor, if it is free, on the device of `like`, and has no other reader.
std::int32_t private_producer(FusionBuilder& builder, TensorId id, std::int32_t reader) {
  ++builder.steps();
  const std::int32_t n = builder.producer(id);
  if (n < 0 || !builder.free(n) || !builder.same_device(n, reader)) return -1;
  return builder.facts(n).sole_consumer == reader ? n : -1;
}

// ---- attention ----

// Walks up from `n` over aliases and element-wise ops to a matrix product, depth first over the
// operands. Appends the nodes of the way, without `n`; false if there is none.
bool find_product_above(FusionBuilder& builder, std::int32_t n, std::size_t depth,
                        std::size_t& budget, std::vector<std::int32_t>& way) {
  if (depth == 0) return false;
  for (const TensorId id : builder.operands(n)) {
    if (budget == 0) return false;
    --budget;
    const std::int32_t above = private_producer(builder, id, n);
    if (above < 0) continue;
    const NodeFacts& facts = builder.facts(above);
    const bool product = is_matrix_product(facts.role) && !is_projection(builder, above);
    if (!product && !facts.keeps_elements && !is_elementwise(builder, above)) continue;
    way.push_back(above);
    if (product || find_product_above(builder, above, depth - 1, budget, way)) return true;
    way.pop_back();
  }
  return false;
}

// Element-wise ops with one activation, such as the scaling of the query, before a product.
void add_scaling(FusionBuilder& builder, std::int32_t product, std::vector<std::int32_t>& nodes) {
  for (const TensorId id : builder.operands(product)) {
    std::vector<std::int32_t> way;
    std::size_t useful = 0;
    std::int32_t reader = product;
    TensorId read = id;
    while (way.size() < kMaxSteps) {
      const std::int32_t n = private_producer(builder, read, reader);
      if (n < 0 || contains(nodes, n)) break;
      std::size_t activations = 0;
      for (const TensorId operand : builder.operands(n)) {
        activations += builder.graph().tensor(operand).kind != TensorKind::kWeight;
      }
      const bool scaling =
          is_elementwise(builder, n) && activations == 1 &&
          (builder.facts(n).role == Role::kMul || builder.facts(n).role == Role::kDiv);
      if (!scaling && !builder.facts(n).keeps_elements) break;
      way.push_back(n);
      if (scaling) useful = way.size();
      reader = n;
      read = builder.operands(n).front();
      if (scaling) {
        for (const TensorId operand : builder.operands(n)) {
          if (builder.graph().tensor(operand).kind != TensorKind::kWeight) read = operand;
        }
      }
    }
    nodes.insert(nodes.end(), way.begin(), way.begin() + static_cast<std::ptrdiff_t>(useful));
  }
}

// The nodes of an attention around a softmax, the last one at the end; empty if it is none.
std::vector<std::int32_t> attention_around(FusionBuilder& builder, std::int32_t softmax) {
  std::vector<std::int32_t> nodes;
  std::size_t budget = 4 * kMaxSteps;
  if (!find_product_above(builder, softmax, kMaxSteps, budget, nodes)) return {};
  const std::int32_t scores = nodes.back();
  add_scaling(builder, scores, nodes);
  nodes.push_back(softmax);
  std::int32_t current = softmax;
  for (std::size_t i = 0; i < kMaxSteps; ++i) {
    ++builder.steps();
    const std::int32_t next = builder.facts(current).sole_consumer;
    if (next < 0 || !builder.free(next) || !builder.same_device(next, softmax)) return {};
    const NodeFacts& facts = builder.facts(next);
    nodes.push_back(next);
    if (is_matrix_product(facts.role)) {
      return is_projection(builder, next) ? std::vector<std::int32_t>() : nodes;
    }
    if (!facts.keeps_elements && !is_elementwise(builder, next)) return {};
    current = next;
  }
  return {};
}

// ---- multi-head attention ----

// Adds what lies between the projections and the core: a node joins once all of its readers have.
// Gives the number of projections.
std::size_t add_projections(FusionBuilder& builder, std::vector<std::int32_t>& nodes) {
  std::priority_queue<std::int32_t> candidates;  // the last one first: its readers are decided
  const auto push_producers = [&](std::int32_t n) {
    for (const TensorId id : builder.operands(n)) {
      const std::int32_t above = builder.producer(id);
      if (above >= 0) candidates.push(above);
    }
  };
  for (const std::int32_t n : std::vector(nodes)) push_producers(n);
  std::size_t projections = 0;
  std::int32_t last = -1;
  while (!candidates.empty() && nodes.size() < kMaxBlock) {
    const std::int32_t n = candidates.top();
    candidates.pop();
    ++builder.steps();
    if (n == last || contains(nodes, n)) continue;
    last = n;
    if (!builder.free(n) || !builder.same_device(n, nodes.front())) continue;
    const bool projection = is_projection(builder, n);
    const NodeFacts& facts = builder.facts(n);
    if (!projection && !facts.alias && facts.kind != OpKind::kInjective &&
        !is_elementwise(builder, n)) {
      continue;
    }
    bool inside = true;
    std::size_t readers = 0;
    for (const TensorId output : builder.node(n).outputs) {
      if (builder.is_output(output)) inside = false;
      if (builder.graph().tensor(output).consumers.size() > kMaxBlock) inside = false;
      if (!inside) break;
      builder.for_each_consumer(output, [&](std::int32_t reader) {
        ++readers;
        inside = inside && contains(nodes, reader);
      });
    }
    if (!inside || readers == 0) continue;
    nodes.push_back(n);
    if (projection) {
      ++projections;
    } else {
      push_producers(n);
    }
  }
  return projections;
}

// Nodes that do nothing but lead away from the block's inputs (an alias above which no projection
// was found) would only make the group larger: keeps those from which a projection is read.
void keep_behind_projections(const FusionBuilder& builder, std::size_t core,
                             std::vector<std::int32_t>& nodes) {
  std::vector<std::int32_t> sorted(nodes.begin() + static_cast<std::ptrdiff_t>(core), nodes.end());
  std::sort(sorted.begin(), sorted.end());
  std::vector<std::int32_t> kept;
  for (const std::int32_t n : sorted) {
    bool keep = is_projection(builder, n);
    for (const TensorId id : builder.operands(n))
      keep = keep || contains(kept, builder.producer(id));
    if (keep) kept.push_back(n);
  }
  nodes.resize(core);
  nodes.insert(nodes.end(), kept.begin(), kept.end());
}

// From the core over aliases to the output projection and its element-wise ops; gives the new sink.
std::int32_t add_output_projection(FusionBuilder& builder, std::int32_t core_sink,
                                   std::vector<std::int32_t>& nodes) {
  std::vector<std::int32_t> way;
  std::int32_t current = core_sink;
  std::size_t accepted = 0;
  bool projected = false;
  while (way.size() < 2 * kMaxSteps) {
    ++builder.steps();
    const std::int32_t next = builder.facts(current).sole_consumer;
    if (next < 0 || !builder.free(next) || !builder.same_device(next, core_sink)) break;
    if (contains(nodes, next)) break;
    const TensorId entering = builder.tensor_between(current, next);
    const bool projection =
        !projected && is_projection(builder, next) && builder.enters_first(next, entering);
    if (!projection && !builder.facts(next).keeps_elements &&
        !(projected && builder.is_epilogue_op(next, entering))) {
      break;
    }
    projected = projected || projection;
    way.push_back(next);
    if (projected && !builder.facts(next).alias) accepted = way.size();
    current = next;
  }
  way.resize(accepted);
  nodes.insert(nodes.end(), way.begin(), way.end());
  return way.empty() ? core_sink : way.back();
}

// ---- norms that are written out ----

// For x * rsqrt(mean(x^2) + eps) or x / sqrt(...): the nodes around the root, the last one at the
// end; empty if it is no norm. `is_layer_norm` tells whether x is itself less its mean.
std::vector<std::int32_t> norm_around(FusionBuilder& builder, std::int32_t root,
                                      bool& is_layer_norm) {
  const Role root_role = builder.facts(root).role;
  if (builder.operands(root).size() != 1) return {};
  std::vector<std::int32_t> nodes{root};
  // Up: root, [+ eps], mean, square.
  std::int32_t mean = private_producer(builder, builder.operands(root).front(), root);
  if (mean >= 0 && builder.facts(mean).role == Role::kAdd) {
    nodes.push_back(mean);
    std::int32_t above = -1;
    for (const TensorId id : builder.operands(mean)) {
      if (above < 0) above = private_producer(builder, id, mean);
    }
    mean = above;
  }
  if (mean < 0 || builder.facts(mean).role != Role::kMean) return {};
  nodes.push_back(mean);
  const TensorId mean_of = builder.operands(mean).front();
  const std::int32_t square = private_producer(builder, mean_of, mean);
  if (square < 0) return {};
  const std::span<const TensorId> squared = builder.operands(square);
  const bool self_product =
      builder.facts(square).role == Role::kMul && squared.size() == 2 && squared[0] == squared[1];
  if (!self_product && (builder.facts(square).role != Role::kSquare || squared.size() != 1)) {
    return {};
  }
  nodes.push_back(square);
  const TensorId x = squared.front();
  // Down: the root times or under x.
  const std::int32_t scaled = builder.facts(root).sole_consumer;
  if (scaled < 0 || !builder.free(scaled) || !builder.same_device(scaled, root)) return {};
  const std::span<const TensorId> factors = builder.operands(scaled);
  const Role wanted = root_role == Role::kRsqrt ? Role::kMul : Role::kDiv;
  if (builder.facts(scaled).role != wanted || factors.size() != 2) return {};
  const TensorId root_result = builder.node(root).outputs.front();
  const bool x_first = factors[0] == x && factors[1] == root_result;
  const bool root_first = factors[1] == x && factors[0] == root_result;
  if (!x_first && !(root_first && wanted == Role::kMul)) return {};
  if (builder.elements(root_result) >= builder.elements(x)) return {};
  nodes.push_back(scaled);
  // x itself, if only the norm reads it: a cast, or x less its mean.
  is_layer_norm = false;
  const std::int32_t above = builder.producer(x);
  if (above < 0 || !builder.free(above) || !builder.same_device(above, root)) return nodes;
  bool inside = !builder.is_output(x) && builder.node(above).outputs.size() == 1;
  if (builder.graph().tensor(x).consumers.size() > 2) inside = false;
  if (!inside) return nodes;
  builder.for_each_consumer(
      x, [&](std::int32_t n) { inside = inside && (n == square || n == scaled); });
  if (!inside) return nodes;
  if (builder.facts(above).role == Role::kSub && builder.operands(above).size() == 2) {
    const TensorId original = builder.operands(above)[0];
    const std::int32_t centre = private_producer(builder, builder.operands(above)[1], above);
    if (centre >= 0 && builder.facts(centre).role == Role::kMean &&
        builder.operands(centre).front() == original) {
      is_layer_norm = true;
      nodes.insert(nodes.end() - 1, {above, centre});
    }
  } else if (builder.facts(above).kind == OpKind::kElementwise && !builder.facts(above).alias &&
             builder.node(above).op_type.find("to") != std::string::npos &&
             builder.operands(above).size() == 1) {
    nodes.insert(nodes.end() - 1, above);
  }
  return nodes;
}

// Scale and shift by weights, and any other element-wise op after a norm.
void add_epilogue(FusionBuilder& builder, std::vector<std::int32_t>& nodes) {
  std::vector<std::int32_t> way;
  std::size_t accepted = 0;
  std::int32_t current = nodes.back();
  const std::int32_t first = current;
  while (builder.fits(nodes.size() + way.size() + 1)) {
    ++builder.steps();
    const std::int32_t next = builder.facts(current).sole_consumer;
    if (next < 0 || !builder.free(next) || !builder.same_device(next, first)) break;
    if (builder.facts(next).alias) {
      if (!builder.facts(next).keeps_elements) break;
    } else if (!builder.is_epilogue_op(next, builder.tensor_between(current, next))) {
      break;
    }
    way.push_back(next);
    if (!builder.facts(next).alias) accepted = way.size();
    current = next;
  }
  nodes.insert(nodes.end(), way.begin(), way.begin() + static_cast<std::ptrdiff_t>(accepted));
}

// ---- channel gates ----

// From the multiply up over the gate's side to a pooling of what is multiplied; empty if it is no
// gate.
std::vector<std::int32_t> gate_below(FusionBuilder& builder, std::int32_t multiply) {
  const std::span<const TensorId> read = builder.operands(multiply);
  if (read.size() != 2) return {};
  const std::int64_t elements = builder.result_elements(multiply);
  for (std::size_t side = 0; side < 2; ++side) {
    const TensorId features = read[1 - side];
    if (builder.elements(read[side]) >= elements || builder.elements(features) != elements)
      continue;
    std::vector<std::int32_t> nodes;
    std::size_t anchors = 0;
    bool gated = false;
    std::int32_t reader = multiply;
    TensorId id = read[side];
    while (nodes.size() < 2 * kMaxSteps) {
      const std::int32_t n = private_producer(builder, id, reader);
      if (n < 0 || builder.operands(n).empty()) break;
      const NodeFacts& facts = builder.facts(n);
      const TensorId first = builder.operands(n).front();
      nodes.push_back(n);
      if (facts.role == Role::kGlobalPool || facts.role == Role::kGlobalMaxPool ||
          facts.role == Role::kMean) {
        if (anchors == 0 || !gated || first != features) break;
        nodes.push_back(multiply);
        return nodes;
      }
      const bool anchor = facts.role == Role::kConv || is_matrix_product(facts.role);
      if (!anchor && !facts.keeps_elements && !builder.is_epilogue_op(n, first)) break;
      anchors += anchor;
      gated = gated || is_activation(facts.role);
      reader = n;
      id = first;
    }
  }
  return {};
}

}  // namespace

bool is_projection(const FusionBuilder& builder, std::int32_t n) {
  if (!is_matrix_product(builder.facts(n).role)) return false;
  const std::span<const TensorId> read = builder.operands(n);
  for (std::size_t i = 1; i < read.size(); ++i) {
    TensorId id = read[i];
    for (std::size_t step = 0; step < kMaxSteps; ++step) {
      if (builder.graph().tensor(id).kind == TensorKind::kWeight) return true;
      const std::int32_t above = builder.producer(id);
      if (above < 0 || !builder.facts(above).alias || builder.operands(above).empty()) break;
      id = builder.operands(above).front();
    }
  }
  return false;
}

void match_attention(FusionBuilder& builder) {
  if (!builder.enabled(Pattern::kAttention)) return;
  for (std::int32_t n = 0; n < builder.size(); ++n) {
    if (!builder.free(n) || !is_softmax(builder.facts(n).role)) continue;
    if (!builder.enabled(Pattern::kAttention, n)) continue;
    std::vector<std::int32_t> nodes = attention_around(builder, n);
    if (nodes.empty() || !builder.fits(nodes.size())) continue;
    const std::int32_t sink = nodes.back();
    builder.add_group(std::move(nodes), number_of(Pattern::kAttention), sink);
  }
}

void match_multi_head_attention(FusionBuilder& builder) {
  if (!builder.enabled(Pattern::kMultiHeadAttention)) return;
  for (std::int32_t n = 0; n < builder.size(); ++n) {
    const Role role = builder.facts(n).role;
    if (!builder.free(n) || !builder.enabled(Pattern::kMultiHeadAttention, n)) continue;
    std::vector<std::int32_t> nodes;
    if (role == Role::kAttention) nodes = {n};
    if (is_softmax(role)) nodes = attention_around(builder, n);
    if (nodes.empty()) continue;
    const std::int32_t core_sink = nodes.back();
    const std::size_t core = nodes.size();
    if (add_projections(builder, nodes) == 0) continue;
    keep_behind_projections(builder, core, nodes);
    const std::int32_t sink = add_output_projection(builder, core_sink, nodes);
    if (!builder.fits(nodes.size())) continue;
    builder.add_group(std::move(nodes), number_of(Pattern::kMultiHeadAttention), sink);
  }
}

void match_squeeze_excite(FusionBuilder& builder) {
  if (!builder.enabled(Pattern::kSqueezeExcite)) return;
  for (std::int32_t n = 0; n < builder.size(); ++n) {
    if (!builder.free(n) || builder.facts(n).role != Role::kMul) continue;
    if (!builder.enabled(Pattern::kSqueezeExcite, n)) continue;
    std::vector<std::int32_t> nodes = gate_below(builder, n);
    if (nodes.empty() || !builder.fits(nodes.size())) continue;
    builder.add_group(std::move(nodes), number_of(Pattern::kSqueezeExcite), n);
  }
}

void match_norms(FusionBuilder& builder) {
  if (!builder.enabled(Pattern::kRmsNorm) && !builder.enabled(Pattern::kLayerNorm)) return;
  for (std::int32_t n = 0; n < builder.size(); ++n) {
    const Role role = builder.facts(n).role;
    if (!builder.free(n) || (role != Role::kRsqrt && role != Role::kSqrt)) continue;
    bool is_layer_norm = false;
    std::vector<std::int32_t> nodes = norm_around(builder, n, is_layer_norm);
    if (nodes.empty()) continue;
    const Pattern pattern = is_layer_norm ? Pattern::kLayerNorm : Pattern::kRmsNorm;
    if (!builder.enabled(pattern, n)) continue;
    if (!builder.fits(nodes.size())) continue;
    add_epilogue(builder, nodes);
    const std::int32_t sink = nodes.back();
    builder.add_group(std::move(nodes), number_of(pattern), sink);
  }
}

}  // namespace npu::fusion
