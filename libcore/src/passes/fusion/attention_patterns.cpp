// SPDX-License-Identifier: Apache-2.0
// Attention that is written out: a matrix product, what is done to the scores, a softmax, and the
// product with the values; and the projections around it.
//
// It is found from its softmax, up to the first product and down to the second. What may stand
// between is a limit: any element-wise ops and aliases, or what the kernel of a backend computes.
// Attention over a cache is one op, or written out with a cap or sinks, which the backends read by
// the same function (cached_attention_form); its mask of lengths is not computed where nothing else
// reads it.
//
// Only the last node has readers outside, so a block is convex; inside multi-head attention a
// result may have several readers, all of them in the block. O(nodes), since a walk is bounded.
#include <algorithm>
#include <numeric>
#include <queue>

#include "passes/fusion/cached_attention_form.hpp"
#include "passes/fusion/fusion_groups.hpp"
#include "passes/fusion/node_facts.hpp"
#include "passes/fusion/patterns.hpp"
#include "passes/fusion/written_form.hpp"
#include "support/json_fields.hpp"

namespace npu::fusion {
namespace {

constexpr std::size_t kMaxSteps = 16;   // of a chain between two ops of a block
constexpr std::size_t kMaxBlock = 128;  // nodes of one multi-head attention

/// What an attention may be made of.
struct AttentionLimits {
  /// A softmax over the last dimension of batched products, numbers as factors before or after the
  /// first one, or one for each plane after it, masks behind all of them that are added, or one
  /// that selects, views of the planes, and perhaps zeros in place of NaN; else any element-wise
  /// ops and aliases.
  bool as_kernel = false;
  Readers readers = Readers::kAll;
  std::size_t steps = kMaxSteps;     ///< nodes between the softmax and a product
  std::size_t scalings = kMaxSteps;  ///< nodes that scale an operand of the first product
  std::size_t masks = 0;             ///< those that are added, of a kernel
};
constexpr AttentionLimits kAnyAttention{};
constexpr AttentionLimits kKernelAttention{
    .as_kernel = true, .readers = Readers::kNeeded, .steps = 256, .scalings = 1, .masks = 4};

/// True if `from` broadcasts to `to` without making it larger.
bool broadcasts_to(const Shape& from, const Shape& to) {
  if (from.size() > to.size()) return false;
  for (std::size_t i = 1; i <= from.size(); ++i) {
    if (from[from.size() - i] != 1 && from[from.size() - i] != to[to.size() - i]) return false;
  }
  return true;
}

/// Dimensions that an attribute names, counted from the front.
std::vector<std::int64_t> dims_of(const Json* json, std::int64_t rank) {
  std::vector<std::int64_t> dims;
  if (json == nullptr) return dims;
  for (const Json& dim : json->is_array() ? *json : Json::array({*json})) {
    const std::int64_t value = dim.is_number_integer() ? dim.get<std::int64_t>() : rank;
    dims.push_back(value < 0 ? value + rank : value);
  }
  return dims;
}

const std::string kLength = "clamp(linalg_vector_norm(x))|clamp_min(linalg_vector_norm(x))";
const std::string kNormalized =
    "div(x,expand(" + kLength + ")|expand_as(" + kLength + ",_)|" + kLength + ")";
const std::string kNormalizedKeys = "transpose(" + kNormalized + ")|permute(" + kNormalized + ")";

class AttentionMatch {
 public:
  AttentionMatch(FusionBuilder& builder, const AttentionLimits& limits)
      : builder_(builder), limits_(limits) {}

  /// The nodes of an attention, the last one at the end; empty if there is none.
  NodeList around(std::int32_t softmax) {
    softmax_ = softmax;
    budget_ = 4 * limits_.steps;
    if (!is_centre() || !climb(builder_.operands(softmax), softmax, limits_.steps)) return {};
    const std::int32_t product = nodes_.back();
    const std::span<const TensorId> factors = builder_.operands(product);
    for (std::size_t i = 0; i < factors.size(); ++i) {
      if (!add_scaling(factors[i], product) && limits_.as_kernel) {
        add_normalization(factors[i], product, i == 1);
      }
    }
    nodes_.push_back(softmax);
    return descend() ? std::move(nodes_) : NodeList();
  }

 private:
  const Node& node(std::int32_t n) const { return builder_.node(n); }
  Role role(std::int32_t n) const { return builder_.role(n); }
  const TensorInfo& info(TensorId id) const { return builder_.tensor(id); }
  const TensorInfo& result(std::int32_t n) const { return info(node(n).outputs[0]); }
  bool is_like(std::int32_t n, TensorId operand) const {
    return result(n).shape == info(operand).shape && result(n).dtype == info(operand).dtype;
  }

  // Up to a matrix product, depth first over the operands: appends the nodes of the way.
  bool climb(std::span<const TensorId> from, std::int32_t reader, std::size_t steps) {
    if (steps == 0) return false;
    for (const TensorId id : from) {
      if (budget_ == 0) return false;
      --budget_;
      const std::int32_t n = builder_.above(id, reader, limits_.readers);
      if (n < 0) continue;
      nodes_.push_back(n);
      if (is_scores_product(n)) return true;
      const TensorId scores = limits_.as_kernel ? scores_above(n) : TensorId{};
      if (scores.valid() && climb({&scores, 1}, n, steps - 1)) return true;
      if (!limits_.as_kernel && passes(n) && climb(builder_.operands(n), n, steps - 1)) return true;
      nodes_.pop_back();
    }
    return false;
  }

  // Down to the product with the values.
  bool descend() {
    std::int32_t current = softmax_;
    for (std::size_t i = 0; i < limits_.steps; ++i) {
      Link next = builder_.below(current, limits_.readers);
      const bool is_guard = next.node < 0 && limits_.as_kernel;
      if (is_guard) next = guard_below(node(current).outputs[0]);
      if (next.node < 0) return false;
      nodes_.push_back(next.node);
      if (is_values_product(next)) return true;
      if (!is_guard && !passes_below(next)) return false;
      current = next.node;
    }
    return false;
  }

  bool passes(std::int32_t n) const {
    return builder_.facts(n).keeps_elements || builder_.facts(n).is_elementwise();
  }

  bool passes_below(const Link& next) const {
    if (!limits_.as_kernel) return passes(next.node);
    return keeps_row_major(builder_, next.node) && is_like(next.node, next.tensor);
  }

  bool is_scores_product(std::int32_t n) const {
    if (!limits_.as_kernel) return is_general_product(n);
    return is_batched_product(n) && result(n).shape == info(node(softmax_).inputs[0]).shape;
  }
  bool is_values_product(const Link& next) const {
    if (!limits_.as_kernel) return is_general_product(next.node);
    return is_batched_product(next.node) && node(next.node).inputs[0] == next.tensor;
  }
  bool is_general_product(std::int32_t n) const {
    return is_matrix_product(role(n)) && !is_projection(builder_, n);
  }

  /// [.., L, D] times [.., D, S], of equal batch dimensions and dtypes.
  bool is_batched_product(std::int32_t n) const {
    const std::vector<TensorId>& read = node(n).inputs;
    if (role(n) != Role::kMatmul || read.size() != 2 || node(n).outputs.size() != 1) return false;
    const TensorInfo& a = info(read[0]);
    const TensorInfo& b = info(read[1]);
    if (a.shape.size() < 3 || b.shape.empty() || a.dtype != b.dtype || a.dtype != result(n).dtype ||
        (!is_single(a.dtype) && a.dtype != DType::kBFloat16)) {
      return false;
    }
    Shape wanted = a.shape;
    wanted.back() = b.shape.back();
    if (result(n).shape != wanted) return false;
    wanted.end()[-2] = a.shape.back();
    return b.shape == wanted;
  }

  bool is_centre() const {
    if (!limits_.as_kernel) {
      return role(softmax_) == Role::kSoftmax || role(softmax_) == Role::kSafeSoftmax;
    }
    const Node& softmax = node(softmax_);
    if (role(softmax_) != Role::kSoftmax || softmax.inputs.size() != 1 ||
        softmax.outputs.size() != 1) {
      return false;
    }
    const auto rank = std::ssize(info(softmax.inputs[0]).shape);
    const Json* half = find_member(softmax.attrs(), "half_to_float");
    return rank >= 3 && is_like(softmax_, softmax.inputs[0]) &&
           dims_of(find_member(softmax.attrs(), "dim"), rank) == std::vector{rank - 1} &&
           (half == nullptr || *half == false);
  }

  /// What scales an operand of the first product, aliases in between. True if anything does.
  bool add_scaling(TensorId read, std::int32_t reader) {
    NodeList way;
    std::size_t useful = 0;
    while (way.size() < limits_.scalings) {
      const std::int32_t n = builder_.above(read, reader, limits_.readers);
      if (n < 0 || std::find(nodes_.begin(), nodes_.end(), n) != nodes_.end()) break;
      const TensorId scaled = scaled_operand(n);
      if (!scaled.valid() && (limits_.as_kernel || !builder_.facts(n).keeps_elements)) break;
      way.push_back(n);
      if (scaled.valid()) useful = way.size();
      reader = n;
      read = scaled.valid() ? scaled : builder_.operands(n).front();
    }
    nodes_.insert(nodes_.end(), way.begin(), way.begin() + static_cast<std::ptrdiff_t>(useful));
    return useful > 0;
  }

  /// The only activation that a product or quotient reads; none of other nodes.
  TensorId scaled_operand(std::int32_t n) const {
    if (limits_.as_kernel) {
      const TensorId operand = node(n).inputs.front();
      return is_factor(builder_, n) && is_like(n, operand) ? operand : TensorId{};
    }
    if (!builder_.facts(n).is_elementwise() || (role(n) != Role::kMul && role(n) != Role::kDiv)) {
      return {};
    }
    TensorId activation;
    for (const TensorId id : builder_.operands(n)) {
      if (is_weight(builder_, id)) continue;
      if (activation.valid()) return {};
      activation = id;
    }
    return activation;
  }

  // ---- what a kernel computes ----

  /// A factor or a mask between product and softmax, or another view of the planes; a factor after
  /// a mask would have to scale the mask as well. Gives the scores that it reads; none if it is
  /// something else.
  TensorId scores_above(std::int32_t n) {
    TensorId scores = node(n).inputs[0];
    if (keeps_row_major(builder_, n) && keeps_planes(n)) return scores;
    const bool may_be_mask = !has_factor_ && masks_ != limits_.masks;
    if (is_factor(builder_, n)) {
      has_factor_ = true;
    } else if (!has_plane_factor_ && is_plane_factor(n)) {
      has_factor_ = has_plane_factor_ = true;
    } else if (const auto mask = selecting_mask(builder_.graph(), node(n)); may_be_mask && mask) {
      if (masks_ != 0 || !broadcasts_to(info(mask->truth).shape, info(mask->elements).shape)) {
        return {};
      }
      masks_ = limits_.masks;  // it is the only one
      scores = mask->elements;
    } else if (may_be_mask && is_mask(n)) {
      ++masks_;
    } else {
      return {};
    }
    return is_like(n, scores) ? scores : TensorId{};
  }

  /// The last two dimensions stay, those before them may be split or joined.
  bool keeps_planes(std::int32_t n) const {
    const Shape& from = info(node(n).inputs[0]).shape;
    const Shape& to = result(n).shape;
    return from.size() >= 3 && to.size() >= 3 &&
           std::equal(from.end() - 2, from.end(), to.end() - 2);
  }

  /// Whether a node joins the scores with another tensor, which broadcasts to them.
  bool joins(std::int32_t n, Role wanted) const {
    if (role(n) != wanted || node(n).inputs.size() != 2) return false;
    const TensorInfo& scores = info(node(n).inputs[0]);
    const TensorInfo& other = info(node(n).inputs[1]);
    return other.dtype == scores.dtype && broadcasts_to(other.shape, scores.shape);
  }

  bool is_mask(std::int32_t n) const {
    return joins(n, Role::kAdd) && find_member(node(n).attrs(), "alpha") == nullptr;
  }

  /// A product with a tensor that has one number for a plane, or for several.
  bool is_plane_factor(std::int32_t n) const {
    if (!joins(n, Role::kMul)) return false;
    const Shape& factor = info(node(n).inputs[1]).shape;
    return factor.size() >= 2 && factor.end()[-1] == 1 && factor.end()[-2] == 1;
  }

  /// A division by the lengths of the rows, which a number bounds from below, of keys with the last
  /// two dimensions exchanged behind that.
  void add_normalization(TensorId operand, std::int32_t product, bool is_key) {
    const std::int32_t n = builder_.above(operand, product, limits_.readers);
    WrittenForm form(builder_, limits_.readers);
    if (n < 0 || !form.matches(n, is_key ? kNormalizedKeys : kNormalized)) return;
    const NodeList& found = form.nodes();
    Shape lengths = info(form.x()).shape;
    lengths.back() = 1;
    const bool is_exact = is_like(found[is_key ? 1 : 0], form.x()) && is_length(found.back()) &&
                          has_least(found.end()[-2]) && result(found.end()[-2]).shape == lengths &&
                          result(found.back()).shape == lengths;
    if (!is_exact || (is_key && !exchanges_last(n))) return;
    nodes_.insert(nodes_.end(), found.begin(), found.end());
  }

  /// The 2-norm along the last dimension.
  bool is_length(std::int32_t n) const {
    const Json* order = find_member(node(n).attrs(), "ord");
    const TensorInfo& x = info(node(n).inputs[0]);
    const auto rank = std::ssize(x.shape);
    return (order == nullptr || *order == 2.0) && result(n).dtype == x.dtype &&
           dims_of(find_member(node(n).attrs(), "dim"), rank) == std::vector{rank - 1};
  }

  /// A lower bound that is a number by which can be divided, and no upper one.
  bool has_least(std::int32_t n) const {
    constexpr double kLeast = 1e-30;
    const Json* most = find_member(node(n).attrs(), "max");
    return member_double(node(n).attrs(), "min").value_or(0) >= kLeast &&
           (most == nullptr || most->is_null());
  }

  /// A permutation that exchanges the last two dimensions.
  bool exchanges_last(std::int32_t n) const {
    const Json& attrs = node(n).attrs();
    const auto rank = std::ssize(info(node(n).inputs[0]).shape);
    const auto first = dims_of(find_member(attrs, "dim0"), rank);
    const auto second = dims_of(find_member(attrs, "dim1"), rank);
    if (first.size() == 1 && second.size() == 1) {
      return std::min(first, second)[0] == rank - 2 && std::max(first, second)[0] == rank - 1;
    }
    std::vector<std::int64_t> exchanged(index_of(rank));
    std::iota(exchanged.begin(), exchanged.end(), std::int64_t{0});
    if (rank >= 2) std::swap(exchanged.end()[-1], exchanged.end()[-2]);
    return rank >= 2 && dims_of(find_member(attrs, "dims"), rank) == exchanged;
  }

  /// where(isnan(value), 0, value), as exporters write a softmax that gives zeros where everything
  /// is masked: takes in the isnan and gives the where.
  Link guard_below(TensorId value) {
    NodeList readers;
    builder_.for_each_consumer(value, [&](std::int32_t n) {
      if (!builder_.unused(n)) readers.push_back(n);
    });
    if (builder_.is_output(value) || readers.size() != 2) return {};
    if (node(readers[0]).op_type != "aten.isnan.default") std::swap(readers[0], readers[1]);
    const std::int32_t test = readers[0];
    const std::int32_t guard = readers[1];
    const auto mask = selecting_mask(builder_.graph(), node(guard));
    if (node(test).op_type != "aten.isnan.default" || !mask || mask->keeps || mask->fill != 0 ||
        mask->elements != value || builder_.above(mask->truth, guard, limits_.readers) != test ||
        !is_like(guard, value) || !builder_.free(guard) || !builder_.same_device(guard, softmax_)) {
      return {};
    }
    nodes_.push_back(test);
    return {guard, value};
  }

  FusionBuilder& builder_;
  const AttentionLimits& limits_;
  std::int32_t softmax_ = -1;
  std::size_t budget_ = 0;  // operands that are still looked at
  NodeList nodes_;
  std::size_t masks_ = 0;
  bool has_factor_ = false;
  bool has_plane_factor_ = false;
};

// ---- multi-head attention ----

// Adds what lies between the projections and the core: a node joins once all of its readers have.
// Gives the number of projections.
std::size_t add_projections(FusionBuilder& builder, NodeList& nodes) {
  std::priority_queue<std::int32_t> candidates;  // the last one first: its readers are decided
  const auto contains = [&](std::int32_t n) {
    return std::find(nodes.begin(), nodes.end(), n) != nodes.end();
  };
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
    if (n == last || contains(n)) continue;
    last = n;
    if (!builder.free(n) || !builder.same_device(n, nodes.front())) continue;
    const bool projection = is_projection(builder, n);
    const NodeFacts& facts = builder.facts(n);
    if (!projection && !facts.alias && facts.kind != OpKind::kInjective && !facts.is_elementwise())
      continue;
    bool inside = true;
    std::size_t readers = 0;
    for (const TensorId output : builder.node(n).outputs) {
      if (builder.is_output(output)) inside = false;
      if (builder.tensor(output).consumers.size() > kMaxBlock) inside = false;
      if (!inside) break;
      builder.for_each_consumer(output, [&](std::int32_t reader) {
        ++readers;
        inside = inside && contains(reader);
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
void keep_behind_projections(const FusionBuilder& builder, std::size_t core, NodeList& nodes) {
  const auto begin = nodes.begin() + static_cast<std::ptrdiff_t>(core);
  std::sort(begin, nodes.end());
  NodeList kept;
  for (auto n = begin; n != nodes.end(); ++n) {
    bool keep = is_projection(builder, *n);
    for (const TensorId id : builder.operands(*n)) {
      keep = keep || std::find(kept.begin(), kept.end(), builder.producer(id)) != kept.end();
    }
    if (keep) kept.push_back(*n);
  }
  nodes.resize(core);
  nodes.insert(nodes.end(), kept.begin(), kept.end());
}

// From the core over aliases to the output projection and its element-wise ops.
void add_output_projection(FusionBuilder& builder, std::int32_t core_sink, NodeList& nodes) {
  NodeList way{core_sink};
  bool projected = false;
  follow(builder, Readers::kAll, 1 + 2 * kMaxSteps, way, [&](const Link& next) {
    const bool projection = !projected && is_projection(builder, next.node) &&
                            builder.enters_first(next.node, next.tensor);
    const NodeFacts& facts = builder.facts(next.node);
    if (!projection && !facts.keeps_elements &&
        !(projected && builder.is_epilogue_op(next.node, next.tensor))) {
      return Step::kStop;
    }
    projected = projected || projection;
    return projected && !facts.alias ? Step::kAccept : Step::kPass;
  });
  std::erase(nodes, core_sink);
  nodes.insert(nodes.end(), way.begin(), way.end());
}

}  // namespace

void match_attention(FusionBuilder& builder, Pattern pattern) {
  const AttentionLimits& limits =
      pattern == "scaled-attention"_pattern ? kKernelAttention : kAnyAttention;
  match_each(builder, pattern,
             [&](std::int32_t n) { return AttentionMatch(builder, limits).around(n); });
}

namespace {

/// The mask of lengths that an attention on the same device reads, or that what it adds to scores
/// hides keys by; -1 if there is none.
std::int32_t length_mask_of(const FusionBuilder& builder, std::int32_t n) {
  if (builder.node(n).op_type != "aten.scaled_dot_product_attention.default") return -1;
  for (const TensorId id : builder.operands(n)) {
    std::int32_t above = builder.producer(id);
    if (above < 0) continue;
    if (const auto hidden = hidden_lengths(builder.graph(), id)) above = hidden->lengths.value;
    const bool is_mask = builder.node(above).op_type == kLengthMask;
    if (is_mask && builder.same_device(above, n)) return above;
  }
  return -1;
}

/// The nodes of an attention over a cache that is written out, whose last product is `n`. Its mask
/// may be in another group.
NodeList written_cached_attention(const FusionBuilder& builder, std::int32_t n) {
  const auto form = cached_attention_form(builder.graph(), NodeId{n});
  if (!form) return {};
  const bool is_near =
      builder.options().within_groups || builder.same_device(form->lengths.value, n);
  NodeList nodes;
  for (const NodeId id : form->nodes) {
    if (!is_near || !builder.free(id.value) || !builder.same_device(id.value, n)) return {};
    nodes.push_back(id.value);
  }
  return nodes;
}

/// Whether a node reads a mask of lengths, or its opposite, by what it is made of alone.
bool reads_lengths(FusionBuilder& builder, std::int32_t reader, std::int32_t mask) {
  const std::int32_t g = builder.group_of(reader);
  if (g < 0) return false;
  if (builder.group(g).pattern == "mask-on-read"_pattern) return true;  // its opposite
  if (builder.group(g).pattern != "cached-attention"_pattern) return false;
  if (length_mask_of(builder, reader) == mask) return true;
  const auto selects = selecting_mask(builder.graph(), builder.node(reader));
  return selects && builder.producer(selects->truth) == mask;
}

}  // namespace

void match_cached_attention(FusionBuilder& builder) {
  match_each(builder, "cached-attention"_pattern, [&](std::int32_t n) {
    return length_mask_of(builder, n) < 0 ? written_cached_attention(builder, n) : NodeList{n};
  });
  // From the last one on, so that who reads an opposite is known in front of the mask.
  match_each(
      builder, "mask-on-read"_pattern,
      [&](std::int32_t n) {
        const bool is_mask = builder.node(n).op_type == kLengthMask ||
                             is_opposite_length_mask(builder.graph(), NodeId{n});
        if (!is_mask || builder.unused(n)) return NodeList();
        const TensorId mask = builder.node(n).outputs.front();
        bool waits = !builder.is_output(mask);
        builder.for_each_consumer(mask, [&](std::int32_t reader) {
          waits = waits && (builder.unused(reader) || reads_lengths(builder, reader, n));
        });
        return waits ? NodeList{n} : NodeList();
      },
      Order::kLastFirst);
}

void match_multi_head_attention(FusionBuilder& builder) {
  match_each(builder, "multi-head-attention"_pattern, [&](std::int32_t n) {
    NodeList nodes{n};
    if (builder.role(n) != Role::kAttention) {
      nodes = AttentionMatch(builder, kAnyAttention).around(n);
    }
    if (nodes.empty()) return nodes;
    const std::int32_t core_sink = nodes.back();
    const std::size_t core = nodes.size();
    if (add_projections(builder, nodes) == 0) return NodeList();
    keep_behind_projections(builder, core, nodes);
    add_output_projection(builder, core_sink, nodes);
    return nodes;
  });
}

}  // namespace npu::fusion
