// SPDX-License-Identifier: Apache-2.0
// Finds attentions that an exporter has written out, as those for ONNX without an op for it do:
// queries and transposed keys, one or both multiplied by a number, their product, a mask that is
// added or chosen by, a softmax, perhaps 0 in place of what is no number, and the product with the
// values. With softcaps, biases or sinks it stays as it is written, but for its mask. O(1) for a
// node.
#include "passes/states/written_attention.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include "ops/hidden_score.hpp"
#include "ops/op_catalogue.hpp"
#include "ops/op_name.hpp"
#include "support/json_fields.hpp"

namespace npu::states {
namespace {

class Matcher {
 public:
  Matcher(const PastModel& model, const PastTensors& tensors)
      : model_(model), graph_(model.graph()), tensors_(tensors) {}

  std::optional<MaskedScores> mask(const Node& node) {
    if (node.outputs.size() != 1) return std::nullopt;
    const SizeShape& shape = model_.shape(node.outputs[0]);  // [batch, heads, rows, keys]
    const auto scores = shape.size() == 4 ? masked_scores(node.outputs[0]) : std::nullopt;
    const KeyAxis* keys = scores ? tensors_.keys(*scores) : nullptr;
    const bool has_none = !has_mask_;  // the softmax gets one
    if (keys == nullptr || has_none || keys->dim != 3 || model_.shape(*scores) != shape ||
        graph_.tensor(*scores).dtype != graph_.tensor(node.outputs[0]).dtype) {
      return std::nullopt;
    }
    return MaskedScores{*scores, found_.mask};
  }

  std::optional<CacheAttention> match(const Node& node) {
    if (functional_name(node.op_type) == "scaled_dot_product_attention") return stated(node);
    if (functional_name(node.op_type) != "matmul" || node.inputs.size() != 2) return std::nullopt;
    found_.value = node.inputs[1];
    const Node* softmax = named(without_guard(behind_casts(node.inputs[0])), "softmax");
    if (softmax == nullptr) return std::nullopt;
    const auto scores = masked_scores(behind_casts(softmax->inputs[0]));
    if (!scores) return std::nullopt;
    double scale = 1;
    const Node* product = named(unscaled(*scores, scale), "matmul");
    if (product == nullptr) return std::nullopt;
    found_.query = unscaled(product->inputs[0], scale);
    const auto key = transposed(unscaled(product->inputs[1], scale));
    if (!key) return std::nullopt;
    found_.key = unscaled(*key, scale);
    found_.scale = scale;
    if (tensors_.keys(found_.key) == nullptr || tensors_.keys(found_.value) == nullptr) {
      return std::nullopt;
    }
    for (const TensorId id : {found_.query, found_.key, found_.value}) {
      if (model_.shape(id).size() != 4) return std::nullopt;
    }
    return found_;
  }

 private:
  const Node* producer(TensorId id) const {
    const NodeId node = graph_.tensor(id).producer;
    return node.valid() ? &graph_.node(node) : nullptr;
  }
  /// The node that gives a tensor, if it is of that name.
  const Node* named(TensorId id, std::string_view name) const {
    const Node* node = producer(id);
    return node != nullptr && functional_name(node->op_type) == name ? node : nullptr;
  }
  std::optional<BoundNode> bound(const Node& node) const {
    const OpInfo* op = find_op(node.op_type);
    if (op == nullptr) return std::nullopt;
    BindError error;
    return BoundNode::try_bind(graph_, node, op->schema, error);
  }

  TensorId behind_casts(TensorId id) const {
    while (const Node* node = producer(id)) {
      const std::string_view name = functional_name(node->op_type);
      const bool is_same = name == "to" || name == "_to_copy" || name == "clone" ||
                           name == "contiguous" || name == "dropout";
      if (!is_same || graph_.tensor(node->inputs[0]).dtype != graph_.tensor(id).dtype) break;
      id = node->inputs[0];
    }
    return id;
  }

  /// One number in an argument.
  std::optional<double> number(const BoundNode& node, std::string_view argument) const {
    if (const auto tensor = node.tensor(argument)) {
      const auto values = model_.constant(*tensor);
      if (!values || values->size() != 1) return std::nullopt;
      return values->front();
    }
    const BoundArgument* value = node.find(argument);
    if (value == nullptr || value->kind != BoundArgument::Kind::kValue) return std::nullopt;
    return json_number(value->value);
  }

  /// What a tensor is, but for factors that go into `scale`.
  TensorId unscaled(TensorId id, double& scale) const {
    for (id = behind_casts(id);; id = behind_casts(id)) {
      const Node* node = producer(id);
      if (node == nullptr) return id;
      const std::string_view name = functional_name(node->op_type);
      if (name != "mul" && name != "div") return id;
      const auto arguments = bound(*node);
      if (!arguments) return id;
      const auto self = arguments->tensor("self");
      const auto other = arguments->tensor("other");
      const auto right = number(*arguments, "other");
      const auto left = number(*arguments, "self");
      if (self && right) {
        scale = name == "mul" ? scale * *right : scale / *right;
        id = *self;
      } else if (other && left && name == "mul") {
        scale *= *left;
        id = *other;
      } else {
        return id;
      }
    }
  }

  /// Behind "where(isnan(x), 0, x)".
  TensorId without_guard(TensorId id) const {
    const Node* node = producer(id);
    if (node == nullptr || functional_name(node->op_type) != "where") return id;
    const auto arguments = bound(*node);
    if (!arguments || number(*arguments, "self") != 0.0) return id;
    const auto condition = arguments->tensor("condition");
    const auto other = arguments->tensor("other");
    const Node* test = condition ? named(*condition, "isnan") : nullptr;
    return test != nullptr && other && test->inputs[0] == *other ? behind_casts(*other) : id;
  }

  /// One that is an op.
  std::optional<CacheAttention> stated(const Node& node) {
    const auto arguments = bound(node);
    if (!arguments || arguments->number("dropout_p") != 0) return std::nullopt;
    const auto mask = arguments->tensor("attn_mask");
    const Formula* formula = mask ? tensors_.formula(*mask) : nullptr;
    if (!mask || (formula != nullptr && formula->number())) {
      found_.mask = {};
    } else if (!is_mask(*mask, false)) {
      return std::nullopt;
    }
    if (model_.caches().fresh == SizeExpression(1)) found_.mask.causal = true;
    found_.query = *arguments->tensor("query");
    found_.key = *arguments->tensor("key");
    found_.value = *arguments->tensor("value");
    if (!arguments->is_none("scale")) found_.scale = arguments->number("scale");
    found_.shares_heads = arguments->boolean("enable_gqa");
    return found_;
  }

  bool is_mask(TensorId id, bool hides_when_true) {
    const Formula* formula = tensors_.formula(id);
    std::string reason;
    if (formula == nullptr || formula->number()) return false;
    const SizeShape& shape = model_.shape(id);
    const auto form = mask_form(model_, *formula, shape, shape.size() - 1, reason);
    // Kernels' masks are of [rows, keys]; scores may have their heads between the two.
    if (!form || (form->rows && *form->rows + 2 != shape.size())) return false;
    found_.mask = *form;
    const DType dtype = graph_.tensor(id).dtype;
    if (dtype != DType::kBool) return form->shown == 0 && hides_score(form->hidden, dtype);
    return hides_when_true ? form->shown == 0 && form->hidden == 1
                           : form->shown == 1 && form->hidden == 0;
  }

  /// A mask that hides nothing.
  bool is_zero(TensorId id) const {
    const Formula* formula = tensors_.formula(id);
    return formula != nullptr && formula->number() == 0.0;
  }
  std::optional<TensorId> without_mask(TensorId scores) {
    has_mask_ = false;
    found_.mask = {};
    found_.mask.causal = model_.caches().fresh == SizeExpression(1);
    return scores;
  }

  /// The scores that a mask was applied to, which is found_.mask then.
  std::optional<TensorId> masked_scores(TensorId id) {
    const Node* node = producer(id);
    if (node == nullptr) return std::nullopt;
    const std::string_view name = functional_name(node->op_type);
    // Without a mask all keys up to the last one count.
    if (name == "matmul" || name == "mul" || name == "div") return without_mask(id);
    const auto arguments = bound(*node);
    if (!arguments) return std::nullopt;
    if (name == "add") {
      const auto a = arguments->tensor("self");
      const auto b = arguments->tensor("other");
      if (!a || !b || arguments->number("alpha") != 1) return std::nullopt;
      if (tensors_.keys(*a) != nullptr && is_zero(*b)) return without_mask(*a);
      if (tensors_.keys(*b) != nullptr && is_zero(*a)) return without_mask(*b);
      if (tensors_.keys(*a) != nullptr && is_mask(*b, false)) return a;
      if (tensors_.keys(*b) != nullptr && is_mask(*a, false)) return b;
      return std::nullopt;
    }
    const bool fills = name == "masked_fill";
    if (!fills && name != "where") return std::nullopt;
    const auto condition = arguments->tensor(fills ? "mask" : "condition");
    const auto hidden = number(*arguments, fills ? "value" : "other");
    const auto scores = arguments->tensor("self");
    if (!condition || !hidden || !scores || !hides_score(*hidden, graph_.tensor(*scores).dtype)) {
      return std::nullopt;
    }
    return is_mask(*condition, fills) ? scores : std::nullopt;
  }

  bool swaps_last(const Node& node) const {
    const auto arguments = bound(node);
    const auto rank = static_cast<std::int64_t>(model_.shape(node.outputs[0]).size());
    if (!arguments || rank < 2) return false;
    const auto from_front = [&](std::int64_t dim) { return dim < 0 ? dim + rank : dim; };
    const std::string_view name = functional_name(node.op_type);
    if (name == "transpose") {
      const std::int64_t a = from_front(arguments->integer("dim0"));
      const std::int64_t b = from_front(arguments->integer("dim1"));
      return std::min(a, b) == rank - 2 && std::max(a, b) == rank - 1;
    }
    if (name != "permute") return false;
    const std::vector<std::int64_t> dims = arguments->integers("dims");
    for (std::int64_t d = 0; d < rank; ++d) {
      const std::int64_t wanted = d == rank - 1 ? rank - 2 : d == rank - 2 ? rank - 1 : d;
      if (from_front(dims[index_of(d)]) != wanted) return false;
    }
    return true;
  }

  /// The tensor of which another is the transpose in its last two dimensions, perhaps without the
  /// batch in between.
  std::optional<TensorId> transposed(TensorId id) const {
    const SizeShape& shape = model_.shape(id);
    const Node* node = producer(id);
    if (node == nullptr) return std::nullopt;
    if (swaps_last(*node)) return node->inputs[0];
    const auto is_without_batch = [&](const SizeShape& less, const SizeShape& more) {
      return more.size() == 4 && less.size() == 3 && more[0] == SizeExpression(1) &&
             SizeShape(more.begin() + 1, more.end()) == less;
    };
    const auto is_view = [](const Node* view) {
      if (view == nullptr) return false;
      const std::string_view name = functional_name(view->op_type);
      return name == "reshape" || name == "view" || name == "unsqueeze" || name == "squeeze";
    };
    if (!is_view(node) || !is_without_batch(model_.shape(node->inputs[0]), shape)) {
      return std::nullopt;
    }
    const Node* swap = producer(node->inputs[0]);
    if (swap == nullptr || !swaps_last(*swap)) return std::nullopt;
    const Node* view = producer(swap->inputs[0]);
    if (!is_view(view) ||
        !is_without_batch(model_.shape(swap->inputs[0]), model_.shape(view->inputs[0]))) {
      return std::nullopt;
    }
    return view->inputs[0];
  }

  const PastModel& model_;
  const Graph& graph_;
  const PastTensors& tensors_;
  CacheAttention found_ = {};
  bool has_mask_ = true;
};

}  // namespace

std::optional<MaskedScores> masked_scores(const PastModel& model, const Node& node,
                                          const PastTensors& tensors) {
  return Matcher(model, tensors).mask(node);
}

std::optional<CacheAttention> written_attention(const PastModel& model, const Node& node,
                                                const PastTensors& tensors) {
  return Matcher(model, tensors).match(node);
}

}  // namespace npu::states
