// SPDX-License-Identifier: Apache-2.0
// Blocks that one kernel computes: attention that is written out, channel gates (squeeze and
// excitation), and linear layers that read one input.
//
// Each starts at the op that gives the block away and walks along tensors with one reader, so that
// only the block's last node has readers outside; linear siblings read one tensor besides weights.
// O(nodes + edges).
#include <algorithm>
#include <map>

#include "passes/fusion/fusion_groups.hpp"
#include "passes/fusion/kernel_patterns.hpp"

namespace npu::fusion {
namespace {

Shape batch_of(const Shape& shape) { return Shape(shape.begin(), shape.end() - 2); }

/// True if `from` broadcasts to `to` without making it larger.
bool broadcasts_to(const Shape& from, const Shape& to) {
  if (from.size() > to.size()) return false;
  for (std::size_t i = 1; i <= from.size(); ++i) {
    if (from[from.size() - i] != 1 && from[from.size() - i] != to[to.size() - i]) return false;
  }
  return true;
}

/// A product of queries and transposed keys, which may be divided by their lengths, numbers as
/// factors before or after it, or one for each plane after it, masks that are added or one that
/// selects, a softmax over the last dimension, perhaps zeros in place of NaN, and the product with
/// the values.
class AttentionMatch {
 public:
  AttentionMatch(FusionBuilder& builder, const Readers& readers)
      : builder_(builder), readers_(readers) {}

  bool find(std::int32_t softmax) {
    if (!is_softmax_of_rows(softmax)) return false;
    std::int32_t up = sole_producer(node(softmax).inputs[0], softmax);
    while (up >= 0 && builder_.facts(up).role != Role::kMatmul) {
      const TensorId scores = join_above(up);
      if (!scores.valid()) return false;
      up = sole_producer(scores, softmax);
    }
    if (up < 0 || !is_batched_product(up) ||
        info(node(up).outputs[0]).shape != info(node(softmax).inputs[0]).shape) {
      return false;
    }
    nodes_.push_back(up);
    for (std::size_t i = 0; i < 2; ++i) {
      const TensorId operand = node(up).inputs[i];
      const std::int32_t producer = sole_producer(operand, softmax);
      if (producer >= 0 && is_factor(builder_, producer) &&
          same_shape(node(producer).inputs[0], producer)) {
        nodes_.push_back(producer);
      } else {
        join_normalized(operand, i == 1, softmax);
      }
    }
    nodes_.push_back(softmax);
    return find_below(softmax);
  }

  /// The last one gives the result.
  std::vector<std::int32_t> take() { return std::move(nodes_); }

 private:
  const Node& node(std::int32_t n) const { return builder_.node(n); }
  const TensorInfo& info(TensorId id) const { return builder_.graph().tensor(id); }

  bool is_softmax_of_rows(std::int32_t n) const {
    if (builder_.facts(n).role != Role::kSoftmax) return false;
    if (node(n).inputs.size() != 1 || node(n).outputs.size() != 1) return false;
    const TensorInfo& input = info(node(n).inputs[0]);
    const TensorInfo& result = info(node(n).outputs[0]);
    const Json* dimension = find_member(node(n).attrs(), "dim");
    if (dimension == nullptr || !dimension->is_number_integer()) return false;
    const auto rank = static_cast<std::int64_t>(input.shape.size());
    const auto last = dimension->get<std::int64_t>();
    const Json* half = find_member(node(n).attrs(), "half_to_float");
    return rank >= 3 && (last == -1 || last == rank - 1) && input.shape == result.shape &&
           input.dtype == result.dtype && (half == nullptr || *half == false);
  }

  /// [.., L, D] times [.., D, S], of equal batch dimensions and dtypes.
  bool is_batched_product(std::int32_t n) const {
    if (node(n).inputs.size() != 2 || node(n).outputs.size() != 1) return false;
    const TensorInfo& a = info(node(n).inputs[0]);
    const TensorInfo& b = info(node(n).inputs[1]);
    const TensorInfo& c = info(node(n).outputs[0]);
    const std::size_t rank = a.shape.size();
    if (rank < 3 || b.shape.size() != rank || c.shape.size() != rank) return false;
    return batch_of(a.shape) == batch_of(b.shape) && batch_of(a.shape) == batch_of(c.shape) &&
           a.shape[rank - 1] == b.shape[rank - 2] && c.shape[rank - 2] == a.shape[rank - 2] &&
           c.shape[rank - 1] == b.shape[rank - 1] && a.dtype == b.dtype && a.dtype == c.dtype &&
           (is_single(a.dtype) || a.dtype == DType::kBFloat16);
  }

  /// A factor or a mask between product and softmax, or another view of the planes; a factor after
  /// a mask would have to scale the mask as well. Gives the scores that it reads; none if it is
  /// something else.
  TensorId join_above(std::int32_t n) {
    TensorId scores = node(n).inputs[0];
    if (keeps_row_major(builder_, n) && keeps_planes(n)) {
      nodes_.push_back(n);
      return scores;
    }
    if (is_factor(builder_, n)) {
      has_factor_ = true;
    } else if (!has_plane_factor_ && is_plane_factor(n)) {
      has_factor_ = has_plane_factor_ = true;
    } else if (has_factor_ || masks_ == kMostMasks) {
      return {};
    } else if (const auto mask = selecting_mask(builder_.graph(), node(n))) {
      if (masks_ != 0 || !broadcasts_to(info(mask->truth).shape, info(mask->elements).shape)) {
        return {};
      }
      masks_ = kMostMasks;  // it is the only one
      scores = mask->elements;
    } else if (is_mask(n)) {
      ++masks_;
    } else {
      return {};
    }
    if (!same_shape(scores, n)) return {};
    nodes_.push_back(n);
    return scores;
  }

  /// The last two dimensions stay, those before them may be split or joined.
  bool keeps_planes(std::int32_t n) const {
    const Shape& from = info(node(n).inputs[0]).shape;
    const Shape& to = info(node(n).outputs[0]).shape;
    return from.size() >= 3 && to.size() >= 3 &&
           std::equal(from.end() - 2, from.end(), to.end() - 2);
  }

  /// A product with a tensor that has one number for a plane, or for several.
  bool is_plane_factor(std::int32_t n) const {
    if (builder_.facts(n).role != Role::kMul || node(n).inputs.size() != 2 ||
        node(n).outputs.size() != 1) {
      return false;
    }
    const TensorInfo& scores = info(node(n).inputs[0]);
    const TensorInfo& factor = info(node(n).inputs[1]);
    const std::size_t rank = factor.shape.size();
    return factor.dtype == scores.dtype && broadcasts_to(factor.shape, scores.shape) && rank >= 2 &&
           factor.shape[rank - 1] == 1 && factor.shape[rank - 2] == 1;
  }

  /// x / expand(max(|x|, a number)) over the last dimension, of keys with the last two dimensions
  /// exchanged behind that: its nodes, if nothing else reads their results.
  void join_normalized(TensorId operand, bool is_key, std::int32_t softmax) {
    std::vector<std::int32_t> found;
    const auto step = [&](TensorId id, Role role) {
      const std::int32_t n = sole_producer(id, softmax);
      if (n < 0 || builder_.facts(n).role != role) return false;
      found.push_back(n);
      return true;
    };
    if (is_key) {
      if (!step(operand, Role::kPermute) || !exchanges_last(found.back())) return;
      operand = node(found.back()).inputs[0];
    }
    if (!step(operand, Role::kDiv) || node(found.back()).inputs.size() != 2) return;
    const TensorId x = node(found.back()).inputs[0];
    const Shape& shape = info(x).shape;
    TensorId length = node(found.back()).inputs[1];
    if (info(operand).shape != shape || info(operand).dtype != info(x).dtype) return;
    const std::int32_t expand = sole_producer(length, softmax);
    if (expand >= 0 && node(expand).op_type.starts_with("aten.expand")) {
      found.push_back(expand);
      length = node(expand).inputs[0];
    }
    if (!step(length, Role::kClip) || node(found.back()).inputs.size() != 1) return;
    const std::int32_t norm = sole_producer(node(found.back()).inputs[0], softmax);
    Shape lengths = shape;
    lengths.back() = 1;
    if (norm < 0 || !is_length(norm) || node(norm).inputs != std::vector<TensorId>{x} ||
        !has_least(found.back()) || info(length).shape != lengths) {
      return;
    }
    found.push_back(norm);
    nodes_.insert(nodes_.end(), found.begin(), found.end());
  }

  /// The 2-norm along the last dimension, which stays.
  bool is_length(std::int32_t n) const {
    if (node(n).op_type != "aten.linalg_vector_norm.default") return false;
    const Json& attrs = node(n).attrs();
    const Json* order = find_member(attrs, "ord");
    const Json* dims = find_member(attrs, "dim");
    const auto last = std::ssize(info(node(n).inputs[0]).shape) - 1;
    const TensorInfo& result = info(node(n).outputs[0]);
    return (order == nullptr || *order == 2.0) && dims != nullptr &&
           (*dims == Json{-1} || *dims == Json{last}) && std::ssize(result.shape) == last + 1 &&
           result.shape.back() == 1 && result.dtype == info(node(n).inputs[0]).dtype;
  }

  /// A lower bound that is a number by which can be divided, and no upper one.
  bool has_least(std::int32_t n) const {
    constexpr double kLeast = 1e-30;
    const Json* least = find_member(node(n).attrs(), "min");
    const Json* most = find_member(node(n).attrs(), "max");
    return least != nullptr && least->is_number() && least->get<double>() >= kLeast &&
           (most == nullptr || most->is_null());
  }

  /// A permutation that exchanges the last two dimensions.
  bool exchanges_last(std::int32_t n) const {
    const Json& attrs = node(n).attrs();
    const auto rank = static_cast<std::int64_t>(info(node(n).inputs[0]).shape.size());
    const auto at = [&](const Json& json) {
      const auto dim = json.is_number_integer() ? json.get<std::int64_t>() : rank;
      return dim < 0 ? dim + rank : dim;
    };
    const Json* first = find_member(attrs, "dim0");
    const Json* second = find_member(attrs, "dim1");
    if (first != nullptr && second != nullptr) {
      return std::min(at(*first), at(*second)) == rank - 2 &&
             std::max(at(*first), at(*second)) == rank - 1;
    }
    const Json* dims = find_member(attrs, "dims");
    if (dims == nullptr || !dims->is_array() || std::ssize(*dims) != rank) return false;
    for (std::int64_t i = 0; i < rank; ++i) {
      const std::int64_t wanted = i < rank - 2 ? i : 2 * rank - 3 - i;
      if (at((*dims)[static_cast<std::size_t>(i)]) != wanted) return false;
    }
    return true;
  }

  bool is_mask(std::int32_t n) const {
    if (builder_.facts(n).role != Role::kAdd || node(n).inputs.size() != 2 ||
        node(n).outputs.size() != 1 || find_member(node(n).attrs(), "alpha") != nullptr) {
      return false;
    }
    const TensorInfo& scores = info(node(n).inputs[0]);
    const TensorInfo& mask = info(node(n).inputs[1]);
    return mask.dtype == scores.dtype && broadcasts_to(mask.shape, scores.shape);
  }

  bool find_below(std::int32_t softmax) {
    TensorId value = node(softmax).outputs[0];
    for (;;) {
      ++builder_.steps();
      std::int32_t next = readers_.only(value);
      const bool is_guard = next < 0 && (next = join_nan_guard(value)) >= 0;
      if (next < 0 || !builder_.free(next) || !builder_.same_device(next, softmax)) return false;
      nodes_.push_back(next);
      if (builder_.facts(next).role == Role::kMatmul) {
        return is_batched_product(next) && node(next).inputs[0] == value &&
               builder_.fits(nodes_.size());
      }
      if (!is_guard && (!keeps_row_major(builder_, next) || !same_shape(value, next))) return false;
      value = node(next).outputs[0];
    }
  }

  /// where(isnan(value), 0, value), as exporters write a softmax that gives zeros where everything
  /// is masked: joins the isnan and gives the where; -1 if that is not what reads the tensor.
  std::int32_t join_nan_guard(TensorId value) {
    std::int32_t guard = -1;
    std::int32_t test = -1;
    bool is_alone = !builder_.is_output(value);
    builder_.for_each_consumer(value, [&](std::int32_t n) {
      if (readers_.unused(n)) return;
      std::int32_t& place = node(n).op_type == "aten.isnan.default" ? test : guard;
      is_alone = is_alone && place < 0 && node(n).outputs.size() == 1;
      place = n;
    });
    if (!is_alone || guard < 0 || test < 0) return -1;
    const auto mask = selecting_mask(builder_.graph(), node(guard));
    const bool fits = mask && !mask->keeps && mask->fill == 0 && mask->elements == value &&
                      mask->truth == node(test).outputs[0] && readers_.only(mask->truth) == guard &&
                      same_shape(value, guard);
    if (!fits || !builder_.free(test) || !builder_.same_device(test, guard)) return -1;
    nodes_.push_back(test);
    return guard;
  }

  /// The producer of a tensor that nothing else reads.
  std::int32_t sole_producer(TensorId id, std::int32_t softmax) const {
    ++builder_.steps();
    const std::int32_t n = builder_.producer(id);
    if (n < 0 || !builder_.free(n) || !builder_.same_device(n, softmax)) return -1;
    return readers_.only(id) < 0 || node(n).inputs.empty() || node(n).outputs.size() != 1 ? -1 : n;
  }

  /// Whether a node's result is like a tensor that it reads.
  bool same_shape(TensorId operand, std::int32_t n) const {
    const TensorInfo& from = info(operand);
    const TensorInfo& to = info(node(n).outputs[0]);
    return from.shape == to.shape && from.dtype == to.dtype;
  }

  FusionBuilder& builder_;
  const Readers& readers_;
  std::vector<std::int32_t> nodes_;
  static constexpr int kMostMasks = 4;
  int masks_ = 0;
  bool has_factor_ = false;
  bool has_plane_factor_ = false;
};

/// A tensor times a gate that two pointwise convolutions compute from the tensor's channel means.
class ChannelGateMatch {
 public:
  ChannelGateMatch(FusionBuilder& builder, const Readers& readers)
      : builder_(builder), readers_(readers) {}

  bool find(std::int32_t product) {
    const Node& node = builder_.node(product);
    if (builder_.facts(product).role != Role::kMul || node.inputs.size() != 2 ||
        node.outputs.size() != 1) {
      return false;
    }
    for (const std::size_t side : {std::size_t{0}, std::size_t{1}}) {
      nodes_ = {product};
      if (find_gate(node.inputs[side], node.inputs[1 - side])) return builder_.fits(nodes_.size());
    }
    return false;
  }

  std::vector<std::int32_t> take() { return std::move(nodes_); }

 private:
  bool find_gate(TensorId gate, TensorId source) {
    const TensorInfo& features = builder_.graph().tensor(source);
    const Shape& shape = features.shape;
    // Vectors run along the channels.
    if (shape.size() != 4 || shape[1] % 8 != 0) return false;
    if (!is_single(features.dtype) && features.dtype != DType::kBFloat16) return false;
    const Shape squeezed{shape[0], shape[1], 1, 1};
    TensorId value = gate;
    const auto shape_of = [&](TensorId id) -> const Shape& {
      return builder_.graph().tensor(id).shape;
    };
    if (shape_of(gate) != squeezed || builder_.graph().tensor(gate).dtype != features.dtype) {
      return false;
    }
    const auto is_gate = [&](std::int32_t n) {
      const Role role = builder_.facts(n).role;
      return role == Role::kSigmoid || role == Role::kHardSigmoid;
    };
    if (!step(value, is_gate)) {
      return false;
    }
    if (!step(value, [&](std::int32_t n) { return is_layer(n); })) return false;
    if (!step(value, [&](std::int32_t n) {
          const Role role = builder_.facts(n).role;
          return role == Role::kRelu || role == Role::kSilu || role == Role::kHardSwish;
        })) {
      return false;
    }
    return step(value, [&](std::int32_t n) { return is_layer(n); }) &&
           shape_of(value) == squeezed &&
           step(value, [&](std::int32_t n) { return is_plane_mean(n); }) && value == source;
  }

  /// Goes from `value` up to the first operand of the node that makes it, if it fits.
  template <typename Fits>
  bool step(TensorId& value, const Fits& fits) {
    ++builder_.steps();
    const std::int32_t n = builder_.producer(value);
    if (n < 0 || !builder_.free(n) || !builder_.same_device(n, nodes_.front()) ||
        readers_.only(value) < 0 || builder_.node(n).outputs.size() != 1 || !fits(n)) {
      return false;
    }
    const bool is_layer_node = builder_.facts(n).role == Role::kConv;
    if (!is_layer_node && builder_.node(n).inputs.size() != 1) return false;
    nodes_.push_back(n);
    value = builder_.node(n).inputs.front();
    return true;
  }

  bool is_layer(std::int32_t n) const {
    const auto facts = convolution_facts(builder_, n);
    if (!facts || facts->groups != 1 || facts->weight[2] != 1 || facts->weight[3] != 1 ||
        facts->weight[1] != facts->source[1] || facts->result[1] != facts->weight[0]) {
      return false;
    }
    const bool has_padding = facts->padding[0] != 0 || facts->padding[1] != 0;
    return !has_padding && facts->source[2] == 1 && facts->source[3] == 1;
  }

  bool is_plane_mean(std::int32_t n) const {
    const Role role = builder_.facts(n).role;
    if (role == Role::kGlobalPool) return true;  // by its result's shape
    const Node& node = builder_.node(n);
    const Json* dims = find_member(node.attrs(), "dim");
    const Json* keeps = find_member(node.attrs(), "keepdim");
    return role == Role::kMean && keeps != nullptr && *keeps == true && dims != nullptr &&
           (*dims == Json{2, 3} || *dims == Json{-2, -1} || *dims == Json{-1, -2});
  }

  FusionBuilder& builder_;
  const Readers& readers_;
  std::vector<std::int32_t> nodes_;
};

/// A linear layer with known weights whose result is only reshaped or permuted: one that feeds an
/// activation or a sum saves more by fusing that.
bool is_plain_linear(const FusionBuilder& builder, const Readers& readers, std::int32_t n,
                     TensorId input) {
  const Node& node = builder.node(n);
  if (!builder.free(n) || readers.unused(n) || builder.facts(n).role != Role::kLinear ||
      node.outputs.size() != 1 || node.inputs.size() < 2 || node.inputs.size() > 3 ||
      !node.attrs().empty() || node.inputs[0] != input) {
    return false;
  }
  const TensorInfo& source = builder.graph().tensor(input);
  const TensorInfo& weight = builder.graph().tensor(node.inputs[1]);
  const TensorInfo& result = builder.graph().tensor(node.outputs[0]);
  if (!is_weight(builder, node.inputs[1]) || weight.shape.size() != 2 || source.shape.size() < 2 ||
      weight.shape[1] != source.shape.back() || weight.dtype != source.dtype ||
      result.dtype != source.dtype) {
    return false;
  }
  if (node.inputs.size() == 3) {
    const TensorInfo& bias = builder.graph().tensor(node.inputs[2]);
    if (!is_weight(builder, node.inputs[2]) || bias.shape != Shape{weight.shape[0]} ||
        bias.dtype != source.dtype) {
      return false;
    }
  }
  Shape expected = source.shape;
  expected.back() = weight.shape[0];
  if (result.shape != expected) return false;
  const std::int32_t next = readers.only(node.outputs[0]);
  return next >= 0 &&
         (keeps_row_major(builder, next) || builder.facts(next).role == Role::kPermute);
}

}  // namespace

void match_scaled_attention(FusionBuilder& builder, const Readers& readers) {
  for (std::int32_t n = 0; n < builder.size(); ++n) {
    ++builder.steps();
    if (!builder.free(n) || !builder.enabled(Pattern::kScaledAttention, n)) continue;
    AttentionMatch match(builder, readers);
    if (!match.find(n)) continue;
    std::vector<std::int32_t> nodes = match.take();
    const std::int32_t sink = nodes.back();
    builder.add_group(std::move(nodes), number_of(Pattern::kScaledAttention), sink);
  }
}

void match_channel_gates(FusionBuilder& builder, const Readers& readers) {
  for (std::int32_t n = 0; n < builder.size(); ++n) {
    ++builder.steps();
    if (!builder.free(n) || !builder.enabled(Pattern::kChannelGate, n)) continue;
    ChannelGateMatch match(builder, readers);
    if (match.find(n)) builder.add_group(match.take(), number_of(Pattern::kChannelGate), n);
  }
}

void match_linear_siblings(FusionBuilder& builder, const Readers& readers) {
  if (!builder.enabled(Pattern::kLinearSiblings)) return;
  for (std::size_t t = 0; t < builder.graph().tensors().size(); ++t) {
    const TensorId id{static_cast<std::int32_t>(t)};
    const std::vector<NodeId>& consumers = builder.graph().tensor(id).consumers;
    if (consumers.size() < 2) continue;
    // By device and by whether there is a bias: one stack of weights each.
    std::map<std::pair<std::int32_t, std::size_t>, std::vector<std::int32_t>> siblings;
    for (const NodeId consumer : consumers) {
      ++builder.steps();
      const std::int32_t n = consumer.value;
      if (!builder.enabled(Pattern::kLinearSiblings, n)) continue;
      if (!is_plain_linear(builder, readers, n, id)) continue;
      siblings[{builder.facts(n).device, builder.node(n).inputs.size()}].push_back(n);
    }
    for (auto& [key, nodes] : siblings) {
      if (nodes.size() < 2 || !builder.fits(nodes.size())) continue;
      builder.add_group(std::move(nodes), number_of(Pattern::kLinearSiblings), -1);
    }
  }
}

}  // namespace npu::fusion
