// SPDX-License-Identifier: Apache-2.0
// Reads an attention over a cache from the nodes that write it out, from its last product up:
//
//     softmax(where(mask, cap * tanh(scale * q k), -inf)) v
//
// with factors and the cap present or not, and npu.length_mask or its opposite as mask, also as
// numbers of 0 and -inf that are added. Sinks are one more column of the scores, a number for a
// head, that is cut off behind the softmax; the largest score may be subtracted in front of it,
// which changes nothing. What fusion finds and what backends lower is one function, so that they
// agree. O(nodes of one attention).
#include "passes/fusion/cached_attention_form.hpp"

#include <algorithm>
#include <string_view>

#include "ops/op_catalogue.hpp"
#include "ops/op_name.hpp"
#include "ops/schema.hpp"
#include "passes/fusion/fusion_groups.hpp"
#include "support/json_fields.hpp"

namespace npu {
namespace {

constexpr double kHiddenScore = -1e30;  // less than any score of a key that is seen
constexpr int kMostFactors = 8;

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

  /// A sum or difference without a factor.
  static bool is_plain(const Node& sum) {
    return member_double(sum.attrs(), "alpha").value_or(1) == 1;
  }

  bool is_last(std::int64_t dim, const Shape& shape) const {
    const auto rank = static_cast<std::int64_t>(shape.size());
    return dim == -1 || dim == rank - 1;
  }

  bool read_softmax(TensorId weights, NodeId reader) {
    auto id = above(weights, reader);
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
    const auto id = above(scores, reader);
    if (!id) return false;
    auto mask = selecting_mask(graph_, node(*id));
    if (mask) form_.mask = mask->truth;
    if (!mask) mask = added_mask(*id);
    if (!mask || mask->fill > kHiddenScore || !is_like(*id, mask->elements)) return false;
    NodeId lengths = info(mask->truth).producer;
    bool keeps = mask->keeps;
    if (lengths.valid() && is_opposite_length_mask(graph_, lengths)) {
      lengths = info(node(lengths).inputs[0]).producer;
      keeps = !keeps;
    }
    if (!lengths.valid() || !keeps || node(lengths).op_type != kLengthMask) return false;
    form_.lengths = lengths;
    form_.masking = *id;
    add(*id);
    const Shape& shape = result(lengths).shape;  // [1, 1, L or 1, S]
    const Shape& planes = result(*id).shape;
    const bool fits = shape.size() == 4 && planes.size() >= 4 && shape[3] == planes.back() &&
                      (shape[2] == 1 || shape[2] == planes.end()[-2]);
    return fits && read_scores(mask->elements, *id);
  }

  /// Scores and a mask that is 0, or hides them: as if it filled them. Who else reads the mask does
  /// not matter.
  std::optional<SelectingMask> added_mask(NodeId id) {
    const Node& sum = node(id);
    if (fusion_role(sum.op_type) != FusionRole::kAdd || sum.inputs.size() != 2 || !is_plain(sum)) {
      return std::nullopt;
    }
    for (const std::size_t scores : {0U, 1U}) {
      form_.mask = sum.inputs[1 - scores];
      const NodeId producer = info(form_.mask).producer;
      auto mask = producer.valid() ? selecting_mask(graph_, node(producer)) : std::nullopt;
      if (!mask || info(form_.mask).kind != TensorKind::kResult || !is_zero(mask->elements) ||
          info(mask->truth).shape != info(form_.mask).shape) {
        continue;
      }
      mask->elements = sum.inputs[scores];
      return mask;
    }
    return std::nullopt;
  }

  /// A tensor that an op makes of nothing but zeros.
  bool is_zero(TensorId id) const {
    const NodeId producer = info(id).producer;
    if (info(id).kind != TensorKind::kResult || !producer.valid()) return false;
    const std::string_view name = functional_name(node(producer).op_type);
    if (name == "zeros" || name == "zeros_like" || name == "new_zeros") return true;
    const char* key = name == "scalar_tensor" ? "s" : "fill_value";
    const bool is_filled = name == "full" || name == "full_like" || name == "scalar_tensor";
    return is_filled && member_double(node(producer).attrs(), key) == 0.0;
  }

  bool read_scores(TensorId scores, NodeId reader) {
    double factor = 1;
    for (int i = 0; i < kMostFactors; ++i) {
      const auto id = above(scores, reader);
      if (!id) return false;
      const Node& inner = node(*id);
      add(*id);
      if (is_batched_product(*id)) {
        form_.scale = factor;
        form_.query = inner.inputs[0];
        form_.key = inner.inputs[1];
        return true;
      }
      if (inner.inputs.size() != 1 || !is_like(*id, inner.inputs[0])) return false;
      const FusionRole role = fusion_role(inner.op_type);
      if (functional_name(inner.op_type) == "tanh") {
        if (form_.cap != 0 || factor == 0) return false;
        form_.cap = factor;
        factor = 1;
      } else if (role == FusionRole::kMul || role == FusionRole::kDiv) {
        const auto number = member_double(inner.attrs(), "other");
        if (!number || *number == 0 || find_member(inner.attrs(), "rounding_mode") != nullptr) {
          return false;
        }
        factor = role == FusionRole::kMul ? factor * *number : factor / *number;
      } else {
        return false;
      }
      scores = inner.inputs[0];
      reader = *id;
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

bool is_opposite_length_mask(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  const std::string_view name = functional_name(node.op_type);
  if ((name != "logical_not" && name != "bitwise_not") || node.inputs.size() != 1) return false;
  const TensorInfo& mask = graph.tensor(node.inputs[0]);
  return mask.dtype == DType::kBool && mask.producer.valid() &&
         graph.node(mask.producer).op_type == kLengthMask;
}

}  // namespace npu
