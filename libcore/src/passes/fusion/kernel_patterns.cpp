// SPDX-License-Identifier: Apache-2.0
// What the kernel patterns share, and the patterns of nodes that need no kernel: results that
// nothing needs, results of weights alone, and concatenations whose operands are written in place.
// O(nodes + edges).
#include "passes/fusion/kernel_patterns.hpp"

#include <algorithm>

#include "npu/support/ids.hpp"
#include "ops/schema.hpp"

namespace npu::fusion {
namespace {

const TensorInfo& info_of(const FusionBuilder& builder, TensorId id) {
  return builder.graph().tensor(id);
}

}  // namespace

Readers::Readers(const FusionBuilder& builder)
    : unused_(index_of(builder.size()), 1), only_(builder.graph().tensors().size(), -1) {
  const Graph& graph = builder.graph();
  std::vector<char> needed(graph.tensors().size(), 0);
  for (const TensorId id : graph.graph_outputs()) needed[index_of(id.value)] = 1;
  for (std::int32_t n = builder.size(); n-- > 0;) {
    for (const TensorId id : builder.node(n).outputs) {
      if (needed[index_of(id.value)] != 0) unused_[index_of(n)] = 0;
    }
    if (unused(n)) continue;
    for (const TensorId id : builder.node(n).inputs) needed[index_of(id.value)] = 1;
  }
  // By tensor, how often it is read; the host reads outputs, which are so never read only once.
  std::vector<char> readers(only_.size(), 0);
  for (const TensorId id : graph.graph_outputs()) readers[index_of(id.value)] = 2;
  for (std::int32_t n = 0; n < builder.size(); ++n) {
    if (unused(n)) continue;
    for (const TensorId id : builder.node(n).inputs) {
      char& count = readers[index_of(id.value)];
      only_[index_of(id.value)] = count == 0 ? n : -1;
      count = count == 0 ? 1 : 2;
    }
  }
}

bool is_weight(const FusionBuilder& builder, TensorId id) {
  return info_of(builder, id).kind == TensorKind::kWeight;
}

bool is_factor(const FusionBuilder& builder, std::int32_t n) {
  const Node& node = builder.node(n);
  const Role role = builder.facts(n).role;
  return (role == Role::kMul || role == Role::kDiv) && node.inputs.size() == 1 &&
         node.outputs.size() == 1;
}

bool keeps_row_major(const FusionBuilder& builder, std::int32_t n) {
  const Node& node = builder.node(n);
  const Role role = builder.facts(n).role;
  if (role != Role::kSameOrder && role != Role::kPermute) return false;
  if (node.inputs.empty() || node.outputs.size() != 1) return false;
  const TensorInfo& from = info_of(builder, node.inputs.front());
  const TensorInfo& to = info_of(builder, node.outputs.front());
  if (from.dtype != to.dtype || from.bytes() != to.bytes()) return false;
  if (role == Role::kSameOrder) return true;
  // A permutation that only moves dimensions of 1 leaves the others in order: the shapes without
  // ones are equal, and no two of their extents are, so that none can have changed places.
  const auto without_ones = [](Shape shape) {
    std::erase(shape, 1);
    return shape;
  };
  Shape before = without_ones(from.shape);
  if (before != without_ones(to.shape)) return false;
  std::sort(before.begin(), before.end());
  return std::adjacent_find(before.begin(), before.end()) == before.end();
}

bool ConvolutionFacts::is_pointwise() const {
  const auto all_are = [](const std::vector<std::int64_t>& values, std::int64_t value) {
    return std::all_of(values.begin(), values.end(), [&](auto each) { return each == value; });
  };
  return weight[2] == 1 && weight[3] == 1 && groups == 1 && weight[1] == source[1] &&
         all_are(stride, 1) && all_are(padding, 0);
}

std::optional<ConvolutionFacts> convolution_facts(const FusionBuilder& builder, std::int32_t n) {
  const Node& node = builder.node(n);
  const Json* mode = find_member(node.json, "align_mode");
  if (builder.facts(n).role != Role::kConv || node.inputs.size() < 2 || node.outputs.size() != 1 ||
      (mode != nullptr && *mode == "NALIGN") || !is_weight(builder, node.inputs[1])) {
    return std::nullopt;
  }
  ConvolutionFacts facts;
  facts.source = info_of(builder, node.inputs[0]).shape;
  facts.weight = info_of(builder, node.inputs[1]).shape;
  facts.result = info_of(builder, node.outputs.front()).shape;
  if (facts.source.size() != 4 || facts.weight.size() != 4 || facts.result.size() != 4) {
    return std::nullopt;
  }
  try {
    const BoundNode bound(builder.graph(), node, find_op(node.op_type)->schema);
    const bool says = bound.find("transposed") != nullptr;
    if (says ? bound.boolean("transposed") : bound.find("output_padding") != nullptr) {
      return std::nullopt;
    }
    const auto spatial = [&](std::string_view argument) {
      std::vector<std::int64_t> values = bound.integers(argument);
      if (values.size() == 1) values.assign(2, values.front());
      return values;
    };
    facts.stride = spatial("stride");
    facts.padding = spatial("padding");  // padding by name is left to the general convolution
    facts.dilation = spatial("dilation");
    facts.groups = bound.integer("groups");
  } catch (const Error&) {
    return std::nullopt;  // the backend that lowers the node says what is wrong with it
  }
  const bool complete =
      facts.stride.size() == 2 && facts.padding.size() == 2 && facts.dilation.size() == 2;
  return complete ? std::optional(facts) : std::nullopt;
}

void claim_unused(FusionBuilder& builder, const Readers& readers) {
  for (std::int32_t n = 0; n < builder.size(); ++n) {
    ++builder.steps();
    if (!readers.unused(n) || !builder.free(n) || builder.facts(n).alias) continue;
    if (!builder.enabled(Pattern::kUnused, n)) continue;
    builder.add_group({n}, number_of(Pattern::kUnused), n);
  }
}

void claim_constants(FusionBuilder& builder) {
  std::vector<char> known(index_of(builder.size()), 0);
  for (std::int32_t n = 0; n < builder.size(); ++n) {
    ++builder.steps();
    if (!builder.enabled(Pattern::kConstant, n)) continue;
    const std::vector<TensorId>& inputs = builder.node(n).inputs;
    const bool skips_first = builder.facts(n).role == Role::kFill && !inputs.empty();
    const auto first = inputs.begin() + (skips_first ? 1 : 0);
    const bool is_known = std::all_of(first, inputs.end(), [&](TensorId id) {
      const std::int32_t above = builder.producer(id);
      return is_weight(builder, id) || (above >= 0 && known[index_of(above)] != 0 &&
                                        builder.node(above).device == builder.node(n).device);
    });
    if (!is_known) continue;
    known[index_of(n)] = 1;
    if (!builder.free(n) || builder.facts(n).alias) continue;
    builder.add_group({n}, number_of(Pattern::kConstant), n);
  }
}

namespace {

/// Finds concatenations along whole blocks of channels whose operands all lie in their results, so
/// that whoever computes an operand writes it there. A tensor lies in one place, so it is an
/// operand of one of them; but a longer concatenation may begin, or go on, with all operands of
/// another one, which then lies in it as a whole (as in DenseNet).
class ConcatPlacer {
 public:
  ConcatPlacer(FusionBuilder& builder, const Readers& readers)
      : builder_(builder),
        readers_(readers),
        place_of_(builder.graph().tensors().size(), -1),
        is_placed_(index_of(builder.size()), 0) {}

  void run() {
    for (std::int32_t n = 0; n < builder_.size(); ++n) {
      ++builder_.steps();
      if (builder_.facts(n).role != Role::kCat || !builder_.free(n) || readers_.unused(n)) continue;
      if (!builder_.enabled(Pattern::kConcatInPlace, n) || !has_blocks(n) || !place(n)) continue;
      builder_.add_group({n}, number_of(Pattern::kConcatInPlace), n);
    }
  }

 private:
  /// Along the channels of one image, each operand a number of whole blocks.
  bool has_blocks(std::int32_t n) const {
    const Node& node = builder_.node(n);
    if (node.inputs.size() < 2 || node.outputs.size() != 1) return false;
    const TensorInfo& result = info_of(builder_, node.outputs.front());
    const Json* dim = find_member(node.attrs(), "dim");
    if (dim == nullptr || !dim->is_number_integer()) return false;
    const auto rank = static_cast<std::int64_t>(result.shape.size());
    const auto axis = dim->get<std::int64_t>() + (dim->get<std::int64_t>() < 0 ? rank : 0);
    const bool is_float = is_single(result.dtype) || result.dtype == DType::kBFloat16;
    if (rank < 3 || rank > 5 || axis != 1 || result.shape[0] != 1 || !is_float) return false;
    return std::all_of(node.inputs.begin(), node.inputs.end(), [&](TensorId id) {
      const TensorInfo& part = info_of(builder_, id);
      return part.dtype == result.dtype && part.shape.size() == result.shape.size() &&
             part.shape[1] % kChannelBlock == 0;
    });
  }

  /// A kernel on channels computes it: what others write lies in other orders.
  bool is_written_in_blocks(TensorId id, std::int32_t cat) const {
    const std::int32_t n = builder_.producer(id);
    if (n < 0 || builder_.node(n).device != builder_.node(cat).device) return false;
    const std::int32_t g = builder_.group_of(n);
    if (g >= 0 && is_kernel_of_weights(g)) return false;
    switch (sink_role(n)) {
      case Role::kConv:
      case Role::kWindow:
      case Role::kCat:
        return true;
      default:
        return false;
    }
  }

  bool is_kernel_of_weights(std::int32_t g) const {
    return builder_.group(g).pattern == number_of(Pattern::kConstant);
  }

  /// What computes the layout of a node's result: through element-wise ops of one operand.
  Role sink_role(std::int32_t n) const {
    for (std::size_t step = 0; step < 16; ++step) {
      const NodeFacts& facts = builder_.facts(n);
      const bool passes = facts.kind == OpKind::kElementwise || facts.role == Role::kBatchNorm ||
                          facts.role == Role::kAdd || facts.role == Role::kMul;
      if (!passes || facts.alias || builder_.node(n).inputs.empty()) return facts.role;
      const std::int32_t above = builder_.producer(builder_.node(n).inputs.front());
      if (above < 0) return Role::kOther;
      n = above;
    }
    return Role::kOther;
  }

  bool place(std::int32_t n) {
    const std::vector<TensorId>& inputs = builder_.node(n).inputs;
    std::vector<TensorId> sorted = inputs;
    std::sort(sorted.begin(), sorted.end());
    if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end()) return false;
    std::vector<std::int32_t> wholes;
    for (std::size_t i = 0; i < inputs.size();) {
      ++builder_.steps();
      if (!is_written_in_blocks(inputs[i], n)) return false;
      const std::int32_t in = place_of_[index_of(inputs[i].value)];
      if (in < 0) {
        ++i;
        continue;
      }
      const std::vector<TensorId>& parts = builder_.node(in).inputs;
      if (is_placed_[index_of(in)] != 0 || parts.size() > inputs.size() - i ||
          !std::equal(parts.begin(), parts.end(),
                      inputs.begin() + static_cast<std::ptrdiff_t>(i))) {
        return false;
      }
      wholes.push_back(in);
      i += parts.size();
    }
    for (const std::int32_t whole : wholes) is_placed_[index_of(whole)] = 1;
    for (const TensorId id : inputs) {
      place_of_[index_of(id.value)] = n;
      // An operand that is a concatenation itself lies in this one with all of its parts.
      const std::int32_t above = builder_.producer(id);
      if (builder_.facts(above).role == Role::kCat) is_placed_[index_of(above)] = 1;
    }
    return true;
  }

  FusionBuilder& builder_;
  const Readers& readers_;
  std::vector<std::int32_t> place_of_;  ///< by tensor: the concatenation that it lies in
  std::vector<char> is_placed_;         ///< by node: a concatenation that lies in another one
};

}  // namespace

void place_concats(FusionBuilder& builder, const Readers& readers) {
  if (!builder.enabled(Pattern::kConcatInPlace)) return;
  ConcatPlacer(builder, readers).run();
}

void share_copies(FusionBuilder& builder) {
  for (std::int32_t n = 0; n < builder.size(); ++n) {
    ++builder.steps();
    if (!builder.free(n) || !builder.enabled(Pattern::kNoCopy, n)) continue;
    // Repeated elements are read where they are.
    if (builder.node(n).op_type != "aten.repeat_interleave.self_int") {
      if (builder.facts(n).role != Role::kSameOrder || builder.facts(n).alias) continue;
      if (!keeps_row_major(builder, n)) continue;
    }
    builder.add_group({n}, number_of(Pattern::kNoCopy), n);
  }
}

void match_kernels(FusionBuilder& builder) {
  bool any = false;
  for (auto p = static_cast<std::size_t>(Pattern::kScaledAttention); p < kPatternCount; ++p) {
    any = any || builder.enabled(static_cast<Pattern>(p));
  }
  if (!any) return;
  const Readers readers(builder);
  claim_unused(builder, readers);
  match_integer_products(builder, readers);
  claim_constants(builder);
  match_quantized(builder, readers);
  match_scaled_attention(builder, readers);
  match_channel_gates(builder, readers);
  match_written_gelu(builder, readers);
  match_linear_siblings(builder, readers);
  match_post_ops(builder, readers);
  place_concats(builder, readers);
  share_copies(builder);
}

}  // namespace npu::fusion
