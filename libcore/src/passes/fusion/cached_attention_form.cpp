// SPDX-License-Identifier: Apache-2.0
// Reads an attention over a cache from the nodes that write it out, from its last product up:
//
//     softmax(where(mask, cap * tanh(scale * q k) + bias, -inf)) v
//
// with factors, the cap and the bias present or not, and npu.length_mask or its opposite as mask,
// also as numbers of 0 and -inf that are added, or that are in the bias already: the kernel reads
// that in front of the last key alone, whatever it has behind. Views may split and join the planes.
// Sinks are one more column of the scores, a number for a head, that is cut off behind the softmax;
// the largest score may be subtracted in front of it, which changes nothing. What fusion finds and
// what backends lower is one function, so that they agree. O(nodes of one attention).
#include "passes/fusion/cached_attention_form.hpp"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include "ops/hidden_score.hpp"
#include "ops/op_catalogue.hpp"
#include "ops/op_name.hpp"
#include "ops/schema.hpp"
#include "passes/fusion/fusion_groups.hpp"
#include "support/json_fields.hpp"

namespace npu {
namespace {

constexpr int kMostFactors = 8;
constexpr int kMostViews = 8;  // between a mask and what reads it

/// Whether a node gives the matrices of its operand, in the same order.
bool keeps_matrices(const Graph& graph, const Node& node) {
  const std::string_view name = functional_name(node.op_type);
  const bool is_view = name == "view" || name == "reshape" || name == "_unsafe_view" ||
                       name == "unsqueeze" || name == "squeeze";
  if (!is_view || node.inputs.empty() || node.outputs.size() != 1) return false;
  const Shape& from = graph.tensor(node.inputs[0]).shape;
  const Shape& to = graph.tensor(node.outputs[0]).shape;
  return from.size() >= 2 && to.size() >= 2 && std::equal(from.end() - 2, from.end(), to.end() - 2);
}

/// The mask of lengths that a tensor of bool is, or the opposite of, seen or repeated as matrices
/// of another shape; `keeps` becomes the opposite with it.
NodeId lengths_of(const Graph& graph, TensorId truth, bool& keeps) {
  for (int i = 0; i < kMostViews; ++i) {
    const NodeId id = graph.tensor(truth).producer;
    if (!id.valid() || graph.node(id).op_type == kLengthMask) return id;
    if (is_opposite_length_mask(graph, id)) {
      keeps = !keeps;
    } else if (!keeps_matrices(graph, graph.node(id))) {
      return {};
    }
    truth = graph.node(id).inputs[0];
  }
  return {};
}

/// The mask of lengths by which a node hides elements of its result: with minus infinity, or, where
/// each row sees the key at its own position, with any number that hides scores.
std::optional<NodeId> hidden_by(const Graph& graph, const SelectingMask& mask, DType scores) {
  bool keeps = mask.keeps;
  const NodeId lengths = lengths_of(graph, mask.truth, keeps);
  if (!lengths.valid() || !keeps || !hides_score(mask.fill, scores)) return std::nullopt;
  const Json* operands = find_member(graph.node(lengths).attrs(), "operands");
  const bool sees_one = operands != nullptr && *operands == "positions";
  if (!std::isinf(mask.fill) && !sees_one) return std::nullopt;
  return lengths;
}

/// A tensor that an op makes of nothing but zeros.
bool is_zero(const Graph& graph, TensorId id) {
  const TensorInfo& tensor = graph.tensor(id);
  if (tensor.kind != TensorKind::kResult || !tensor.producer.valid()) return false;
  const Node& node = graph.node(tensor.producer);
  const std::string_view name = functional_name(node.op_type);
  if (name == "zeros" || name == "zeros_like" || name == "new_zeros") return true;
  const char* key = name == "scalar_tensor" ? "s" : "fill_value";
  const bool is_filled = name == "full" || name == "full_like" || name == "scalar_tensor";
  return is_filled && member_double(node.attrs(), key) == 0.0;
}

/// A choice between 0 and another number, as one that fills zeros.
std::optional<SelectingMask> number_mask(const Graph& graph, const Node& node) {
  if (auto mask = selecting_mask(graph, node)) {
    return is_zero(graph, mask->elements) ? mask : std::nullopt;
  }
  if (node.op_type != "aten.where.Scalar" || node.inputs.size() != 1) return std::nullopt;
  const auto number = [&](const char* key) {
    const Json* value = find_member(node.attrs(), key);
    return value == nullptr ? std::nullopt : json_number(*value);
  };
  const auto if_true = number("self");
  const auto if_false = number("other");
  if (if_true == 0.0 && if_false) {
    return SelectingMask{{}, node.inputs[0], *if_false, true};
  }
  if (if_false == 0.0 && if_true) return SelectingMask{{}, node.inputs[0], *if_true, false};
  return std::nullopt;
}

/// As hidden_lengths, of numbers that are 0 for keys which are not hidden.
std::optional<NodeId> added_lengths(const Graph& graph, TensorId added) {
  const DType dtype = graph.tensor(added).dtype;
  for (int i = 0; i < kMostViews; ++i) {
    const TensorInfo& tensor = graph.tensor(added);
    if (tensor.kind != TensorKind::kResult || !tensor.producer.valid()) return std::nullopt;
    const Node& node = graph.node(tensor.producer);
    if (const auto mask = number_mask(graph, node)) {
      return hidden_by(graph, *mask, dtype);
    }
    const std::string_view name = functional_name(node.op_type);
    const bool repeats = name == "expand" && node.inputs.size() == 1 &&
                         graph.tensor(node.inputs[0]).shape.size() >= 2 &&
                         tensor.shape.size() >= 2 &&
                         std::equal(tensor.shape.end() - 2, tensor.shape.end(),
                                    graph.tensor(node.inputs[0]).shape.end() - 2);
    const bool converts = (name == "to" || name == "_to_copy") && !node.inputs.empty() &&
                          is_floating_point(graph.tensor(node.inputs[0]).dtype) &&
                          is_floating_point(tensor.dtype);
    if (!repeats && !converts && !keeps_matrices(graph, node)) return std::nullopt;
    added = node.inputs[0];
  }
  return std::nullopt;
}

/// A sum or difference without a factor.
bool is_plain(const Node& sum) { return member_double(sum.attrs(), "alpha").value_or(1) == 1; }

class FormReader {
 public:
  explicit FormReader(const Graph& graph) : graph_(graph) {}

  std::optional<CachedAttentionForm> read(NodeId last) {
    if (!is_batched_product(last)) return std::nullopt;
    form_.value = node(last).inputs[1];
    add(last);
    if (!read_softmax(node(last).inputs[0], last)) return std::nullopt;
    std::sort(form_.nodes.begin(), form_.nodes.end());
    return form_;
  }

 private:
  const Node& node(NodeId id) const { return graph_.node(id); }
  const TensorInfo& info(TensorId id) const { return graph_.tensor(id); }
  const TensorInfo& result(NodeId id) const { return info(node(id).outputs.front()); }
  void add(NodeId id) { form_.nodes.push_back(id); }

  bool is_output(TensorId id) const {
    const auto& outputs = graph_.graph_outputs();
    return std::find(outputs.begin(), outputs.end(), id) != outputs.end();
  }

  /// Whether nothing else reads the results of a node.
  bool is_read_by(NodeId id, NodeId reader) const {
    return id.valid() &&
           std::all_of(node(id).outputs.begin(), node(id).outputs.end(), [&](TensorId output) {
             const auto& readers = info(output).consumers;
             return !is_output(output) && std::all_of(readers.begin(), readers.end(),
                                                      [&](NodeId each) { return each == reader; });
           });
  }

  /// The node that makes a tensor for `reader` alone, with one result.
  std::optional<NodeId> above(TensorId id, NodeId reader) const {
    const TensorInfo& tensor = info(id);
    const bool is_inner = tensor.kind == TensorKind::kResult && tensor.consumers.size() == 1 &&
                          tensor.consumers.front() == reader && !is_output(id);
    if (!is_inner || node(tensor.producer).outputs.size() != 1) return std::nullopt;
    return tensor.producer;
  }

  /// The same behind views of the matrices, which join the nodes.
  std::optional<NodeId> inner(TensorId id, NodeId reader) {
    auto found = above(id, reader);
    while (found && keeps_matrices(graph_, node(*found))) {
      add(*found);
      found = above(node(*found).inputs[0], *found);
    }
    return found;
  }

  /// The same behind a conversion to float32, or, if `is_back`, from there, which joins the nodes:
  /// the kernel computes in float32 and rounds the result alone.
  std::optional<NodeId> unconverted(TensorId id, NodeId reader, bool is_back) {
    const auto found = inner(id, reader);
    if (!found || !is_conversion(*found, is_back)) return found;
    add(*found);
    return inner(node(*found).inputs[0], *found);
  }
  bool is_conversion(NodeId id, bool is_back) const {
    const std::string_view name = functional_name(node(id).op_type);
    if ((name != "to" && name != "_to_copy") || node(id).inputs.size() != 1) return false;
    DType from = info(node(id).inputs[0]).dtype;
    DType to = result(id).dtype;
    if (is_back) std::swap(from, to);
    return to == DType::kFloat32 && (from == DType::kFloat16 || from == DType::kBFloat16) &&
           result(id).shape == info(node(id).inputs[0]).shape;
  }

  bool is_like(NodeId id, TensorId operand) const {
    return result(id).shape == info(operand).shape && result(id).dtype == info(operand).dtype;
  }

  /// [.., L, D] times [.., D, S], of equal batch dimensions and dtypes.
  bool is_batched_product(NodeId id) const {
    const Node& product = node(id);
    if (fusion_role(product.op_type) != FusionRole::kMatmul || product.inputs.size() != 2 ||
        product.outputs.size() != 1) {
      return false;
    }
    const TensorInfo& a = info(product.inputs[0]);
    const TensorInfo& b = info(product.inputs[1]);
    if (a.shape.size() < 3 || a.shape.size() != b.shape.size() || a.dtype != b.dtype ||
        a.dtype != result(id).dtype || !is_floating_point(a.dtype)) {
      return false;
    }
    Shape wanted = a.shape;
    wanted.back() = b.shape.back();
    if (result(id).shape != wanted) return false;
    wanted.end()[-2] = a.shape.back();
    return b.shape == wanted;
  }

  std::optional<BoundNode> bound(NodeId id) const {
    const OpInfo* op = find_op(node(id).op_type);
    if (op == nullptr) return std::nullopt;
    BindError error;
    return BoundNode::try_bind(graph_, node(id), op->schema, error);
  }

  bool is_last(std::int64_t dim, const Shape& shape) const {
    const auto rank = static_cast<std::int64_t>(shape.size());
    return dim == -1 || dim == rank - 1;
  }

  bool read_softmax(TensorId weights, NodeId reader) {
    auto id = unconverted(weights, reader, true);
    if (!id) return false;
    const bool has_sinks = functional_name(node(*id).op_type) == "slice";
    if (has_sinks) {
      if (!cuts_last_column(*id)) return false;
      add(*id);
      id = above(node(*id).inputs[0], *id);
      if (!id) return false;
    }
    const Node& softmax = node(*id);
    if (fusion_role(softmax.op_type) != FusionRole::kSoftmax || softmax.inputs.size() != 1 ||
        !is_like(*id, softmax.inputs[0])) {
      return false;
    }
    const auto arguments = bound(*id);
    const Json* half = find_member(softmax.attrs(), "half_to_float");
    if (!arguments || !is_last(arguments->integer("dim"), result(*id).shape) ||
        (half != nullptr && *half == true)) {
      return false;
    }
    add(*id);
    if (!has_sinks) return read_mask(softmax.inputs[0], *id);
    return read_sinks(softmax.inputs[0], *id);
  }

  /// All but the last column.
  bool cuts_last_column(NodeId id) const {
    const Shape& from = info(node(id).inputs[0]).shape;
    Shape wanted = from;
    if (wanted.empty()) return false;
    --wanted.back();
    const auto arguments = bound(id);
    if (!arguments || result(id).shape != wanted) return false;
    const bool is_from_front = arguments->is_none("start") || arguments->integer("start") == 0;
    return is_from_front && arguments->integer("step") == 1 &&
           is_last(arguments->integer("dim"), from);
  }

  /// x, or x less its largest element.
  std::optional<NodeId> behind_shift(TensorId scores, NodeId reader) {
    const auto shift = above(scores, reader);
    if (!shift || fusion_role(node(*shift).op_type) != FusionRole::kSub) return shift;
    const Node& difference = node(*shift);
    if (difference.inputs.size() != 2 || !is_plain(difference)) return std::nullopt;
    const TensorId of = difference.inputs[0];
    auto most = above(difference.inputs[1], *shift);
    if (!most) return std::nullopt;
    if (node(*most).op_type == kGetitem) {
      const Json* index = find_member(node(*most).attrs(), "index");
      const NodeId tuple = info(node(*most).inputs[0]).producer;
      if (index == nullptr || *index != 0 || !is_read_by(tuple, *most)) return std::nullopt;
      add(*most);
      most = tuple;
    }
    const std::string_view name = functional_name(node(*most).op_type);
    if ((name != "amax" && name != "max") || node(*most).inputs != std::vector{of}) {
      return std::nullopt;
    }
    const auto arguments = bound(*most);
    if (!arguments || arguments->find("dim") == nullptr) return std::nullopt;
    const std::vector<std::int64_t> dims =
        name == "amax" ? arguments->integers("dim") : std::vector{arguments->integer("dim")};
    if (dims.size() != 1 || !is_last(dims[0], info(of).shape) || !arguments->boolean("keepdim") ||
        info(of).kind != TensorKind::kResult || info(of).consumers.size() != 2 || is_output(of) ||
        node(info(of).producer).outputs.size() != 1) {
      return std::nullopt;
    }
    add(*shift);
    add(*most);
    return info(of).producer;
  }

  bool read_sinks(TensorId scores, NodeId reader) {
    const auto cat = behind_shift(scores, reader);
    if (!cat || functional_name(node(*cat).op_type) != "cat" || node(*cat).inputs.size() != 2) {
      return false;
    }
    const auto arguments = bound(*cat);
    const TensorId sinks = node(*cat).inputs[1];
    if (!arguments || !is_last(arguments->integer("dim"), result(*cat).shape) ||
        info(sinks).shape.back() != 1 || info(sinks).dtype != result(*cat).dtype) {
      return false;
    }
    add(*cat);
    form_.sinks = sinks;
    // The same for all queries.
    if (info(sinks).shape.end()[-2] != 1) {
      const NodeId producer = info(sinks).producer;
      if (info(sinks).kind != TensorKind::kResult ||
          fusion_role(node(producer).op_type) != FusionRole::kExpand) {
        return false;
      }
      form_.sinks = node(producer).inputs[0];
      const Shape& shape = info(form_.sinks).shape;
      if (shape.size() < 2 || shape.back() != 1 || shape.end()[-2] != 1) return false;
    }
    return read_mask(node(*cat).inputs[0], *cat);
  }

  bool read_mask(TensorId scores, NodeId reader) {
    const auto id = unconverted(scores, reader, false);
    if (!id) return false;
    TensorId elements;
    if (const auto mask = selecting_mask(graph_, node(*id))) {
      const auto lengths = hidden_by(graph_, *mask, result(*id).dtype);
      if (!lengths) return false;
      elements = mask->elements;
      form_.mask = mask->truth;
      form_.lengths = *lengths;
    } else if (!read_added_mask(*id, elements)) {
      return false;
    }
    form_.masking = *id;
    if (!is_like(*id, elements)) return false;
    add(*id);
    const Shape& shape = result(form_.lengths).shape;  // [1, 1, L or 1, S]
    const Shape& planes = result(*id).shape;
    const bool fits = shape.size() == 4 && planes.size() >= 2 && shape[3] == planes.back() &&
                      (shape[2] == 1 || shape[2] == planes.end()[-2]);
    return fits && read_scores(elements, *id, 1);
  }

  /// Scores and what hides some of them when it is added, which may be a bias, too. Who else reads
  /// that does not matter.
  bool read_added_mask(NodeId id, TensorId& elements) {
    const Node& sum = node(id);
    if (!is_sum(id)) return false;
    for (const std::size_t scores : {0U, 1U}) {
      const TensorId added = sum.inputs[1 - scores];
      const auto hidden = hidden_lengths(graph_, added);
      if (!hidden || info(added).dtype != result(id).dtype) continue;
      elements = sum.inputs[scores];
      form_.lengths = hidden->lengths;
      if (hidden->is_mask) {
        form_.mask = added;
      } else {
        set_bias(added, id);
      }
      return true;
    }
    return false;
  }

  bool is_sum(NodeId id) const {
    const Node& sum = node(id);
    return fusion_role(sum.op_type) == FusionRole::kAdd && sum.inputs.size() == 2 && is_plain(sum);
  }
  void set_bias(TensorId bias, NodeId sum) {
    form_.bias = bias;
    form_.bias_space = result(sum).shape;
  }

  /// The product, behind a sum with a bias, a cap and factors; `factor` is that of what is read so
  /// far.
  bool read_scores(TensorId scores, NodeId reader, double factor) {
    for (int i = 0; i < kMostFactors; ++i) {
      const auto id = unconverted(scores, reader, false);
      if (!id) return false;
      const Node& inside = node(*id);
      if (is_batched_product(*id)) {
        add(*id);
        const Node& last = node(form_.nodes.front());
        const Shape& planes = result(*id).shape;
        form_.scale = factor;
        form_.query = inside.inputs[0];
        form_.key = inside.inputs[1];
        return planes == info(last.inputs[0]).shape;
      }
      if (is_sum(*id)) return factor == 1 && read_bias(*id);
      add(*id);
      if (inside.inputs.size() != 1 || !is_like(*id, inside.inputs[0])) return false;
      const FusionRole role = fusion_role(inside.op_type);
      if (functional_name(inside.op_type) == "tanh") {
        if (form_.cap != 0 || factor == 0) return false;
        form_.cap = factor;
        factor = 1;
      } else if (role == FusionRole::kMul || role == FusionRole::kDiv) {
        const auto number = member_double(inside.attrs(), "other");
        if (!number || *number == 0 || find_member(inside.attrs(), "rounding_mode") != nullptr) {
          return false;
        }
        factor = role == FusionRole::kMul ? factor * *number : factor / *number;
      } else {
        return false;
      }
      scores = inside.inputs[0];
      reader = *id;
    }
    return false;
  }

  /// A sum of scores and a bias, in front of which nothing has happened to them but the mask.
  bool read_bias(NodeId sum) {
    if (form_.bias.valid() || form_.cap != 0) return false;
    add(sum);
    for (const std::size_t scores : {0U, 1U}) {
      const TensorId elements = node(sum).inputs[scores];
      const TensorInfo& bias = info(node(sum).inputs[1 - scores]);
      if (!is_like(sum, elements) || bias.dtype != result(sum).dtype ||
          bias.shape.size() > result(sum).shape.size()) {
        continue;
      }
      const CachedAttentionForm before = form_;
      set_bias(node(sum).inputs[1 - scores], sum);
      if (read_scores(elements, sum, 1)) return true;
      form_ = before;
    }
    return false;
  }

  const Graph& graph_;
  CachedAttentionForm form_;
};

}  // namespace

std::optional<CachedAttentionForm> cached_attention_form(const Graph& graph, NodeId last) {
  return FormReader(graph).read(last);
}

std::optional<HiddenLengths> hidden_lengths(const Graph& graph, TensorId added) {
  const auto fits = [&](NodeId lengths) {
    const Shape& mask = graph.tensor(graph.node(lengths).outputs.front()).shape;
    const Shape& shape = graph.tensor(added).shape;
    return mask.size() == 4 && shape.size() >= 2 && mask[3] == shape.back() &&
           (mask[2] == 1 || mask[2] == shape.end()[-2]);
  };
  if (const auto lengths = added_lengths(graph, added); lengths && fits(*lengths)) {
    return HiddenLengths{*lengths, true};
  }
  const TensorInfo& tensor = graph.tensor(added);
  if (tensor.kind != TensorKind::kResult || !tensor.producer.valid()) return std::nullopt;
  const Node& node = graph.node(tensor.producer);
  if (const auto mask = selecting_mask(graph, node)) {
    const auto lengths = hidden_by(graph, *mask, tensor.dtype);
    return lengths && fits(*lengths) ? std::optional(HiddenLengths{*lengths}) : std::nullopt;
  }
  if (fusion_role(node.op_type) != FusionRole::kAdd || !is_plain(node)) return std::nullopt;
  for (const TensorId input : node.inputs) {
    const auto lengths = added_lengths(graph, input);
    if (lengths && fits(*lengths)) return HiddenLengths{*lengths};
  }
  return std::nullopt;
}

bool is_opposite_length_mask(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  const std::string_view name = functional_name(node.op_type);
  if ((name != "logical_not" && name != "bitwise_not") || node.inputs.size() != 1) return false;
  const TensorInfo& mask = graph.tensor(node.inputs[0]);
  return mask.dtype == DType::kBool && mask.producer.valid() &&
         graph.node(mask.producer).op_type == kLengthMask;
}

}  // namespace npu
