// SPDX-License-Identifier: Apache-2.0
// Proves that rows of a cache behind the last position change no result: they may be moved with the
// others, multiplied into scores, hidden by a mask, given no weight by the softmax, and added up
// with that weight. Whatever else reads them is refused. O(rank) for a node.
#include "passes/states/key_rows.hpp"

#include <algorithm>
#include <vector>

#include "ops/op_name.hpp"
#include "passes/states/mask_form.hpp"
#include "support/text.hpp"

namespace npu::states {
namespace {

using enum UnusedRows;

KeyRule refused(std::string why) { return {.refusal = std::move(why)}; }

class RuleFinder {
 public:
  RuleFinder(const PastModel& model, const BoundNode& node, const PastTensors& tensors)
      : model_(model),
        node_(node),
        tensors_(tensors),
        result_(node.node().outputs.front()),
        name_(functional_name(node.node().op_type)) {}

  KeyRule find() {
    if (is_one_of({"scaled_dot_product_attention"})) return attention();
    if (is_one_of({"matmul", "bmm", "mm"})) return product();
    if (is_one_of({"softmax", "_softmax", "_safe_softmax"})) return softmax();
    if (is_one_of({"where", "masked_fill"})) return choice();
    if (is_one_of({"add", "sub"})) return sum();
    if (is_one_of({"mul", "div"})) return scaled();
    if (is_one_of({"reshape", "view", "_unsafe_view", "unsqueeze", "squeeze", "flatten",
                   "unflatten", "expand", "permute", "transpose", "t", "index_select", "slice",
                   "select", "narrow"})) {
      return moved();
    }
    if (is_one_of({"to", "_to_copy", "clone", "contiguous", "detach", "alias", "neg", "abs", "tanh",
                   "isnan", "isinf", "dropout"})) {
      return mapped();
    }
    return unknown();
  }

 private:
  bool is_one_of(std::initializer_list<std::string_view> names) const {
    return std::find(names.begin(), names.end(), name_) != names.end();
  }
  const std::vector<TensorId>& inputs() const { return node_.node().inputs; }
  const KeyAxis* keys(std::string_view argument) const {
    const auto tensor = node_.tensor(argument);
    return tensor ? tensors_.keys(*tensor) : nullptr;
  }
  KeyRule unknown() const { return refused("reads rows of a cache, which only an attention may"); }
  /// A result along whose one dimension of all rows the unused ones are such.
  KeyRule along(UnusedRows rows) const {
    const auto dim = model_.past_dim(result_);
    if (!dim || model_.shape(result_)[*dim] != model_.caches().total) {
      return refused("has a size that follows from the past, other than the number of all rows");
    }
    return {.result = KeyAxis{*dim, rows}};
  }

  /// The value that a mask has for keys that it hides; nothing, and why, if it is no mask.
  std::optional<MaskForm> mask(TensorId id, std::string& reason) const {
    const Formula* formula = tensors_.formula(id);
    if (formula == nullptr) return std::nullopt;
    auto form = mask_form(model_, *formula, model_.shape(id), reason);
    if (form) return form;
    reason = "reads a mask '" + short_text(model_.graph().tensor(id).name) + "' that " + reason;
    return std::nullopt;
  }

  KeyRule attention() const {
    const auto query = node_.tensor("query");
    const auto key = node_.tensor("key");
    const auto value = node_.tensor("value");
    if (!query || !key || !value || tensors_.keys(*query) != nullptr) return unknown();
    for (const TensorId id : {*key, *value}) {
      const KeyAxis* axis = tensors_.keys(id);
      const std::size_t rank = model_.shape(id).size();
      if (axis == nullptr || axis->rows != kFinite || axis->dim + 2 != rank) {
        return refused("attends to something other than the rows of a cache");
      }
    }
    if (node_.boolean("is_causal")) {
      return refused("is causal from the first key on, whatever the past has");
    }
    const auto given = node_.tensor("attn_mask");
    if (!given) return {.needs_mask = true};
    std::string reason = "has a mask that does not follow from positions";
    const auto form = mask(*given, reason);
    if (!form) return refused(reason);
    const bool is_bool = model_.graph().tensor(*given).dtype == DType::kBool;
    if (const auto number = tensors_.formula(*given)->number()) {
      if (*number == (is_bool ? 1 : 0)) return {.needs_mask = true};
    }
    const bool hides =
        is_bool ? form->hidden == 0 && form->shown == 1 : form->hidden <= kHiddenScore;
    if (!hides) return refused("has a mask that hides no key for certain");
    return {};
  }

  KeyRule product() const {
    const KeyAxis* a = tensors_.keys(inputs()[0]);
    const KeyAxis* b = tensors_.keys(inputs()[1]);
    const auto is_inner = [&](const KeyAxis* axis, std::size_t operand) {
      const std::size_t rank = model_.shape(inputs()[operand]).size();
      return axis != nullptr && axis->dim + (operand == 0 ? 1U : 2U) == rank;
    };
    if (is_inner(a, 0) != is_inner(b, 1)) return unknown();
    if (is_inner(a, 0)) {
      const bool is_weighted =
          (a->rows == kZero && b->rows != kHidden) || (b->rows == kZero && a->rows != kHidden);
      if (!is_weighted) return refused("adds up rows of a cache without weights from a softmax");
      return {};
    }
    if (a != nullptr && b != nullptr) return unknown();
    const KeyAxis* axis = a != nullptr ? a : b;
    if (axis == nullptr || axis->rows == kHidden) return unknown();
    return along(axis->rows);
  }

  KeyRule softmax() const {
    const KeyAxis* self = tensors_.keys(inputs()[0]);
    if (self == nullptr) return unknown();
    const auto rank = static_cast<std::int64_t>(model_.shape(inputs()[0]).size());
    std::int64_t dim = node_.integer("dim");
    if (dim < 0) dim += rank;
    if (dim != static_cast<std::int64_t>(self->dim)) {
      return self->rows == kFinite ? along(kFinite) : unknown();
    }
    if (self->rows != kHidden) return refused("gives weights to all rows, without a mask");
    return along(kZero);
  }

  KeyRule sum() const {
    const KeyAxis* a = keys("self");
    const KeyAxis* b = keys("other");
    const bool is_plain = node_.find("alpha") == nullptr || node_.number("alpha") == 1;
    if (a != nullptr && b != nullptr) {
      return a->rows == kFinite && b->rows == kFinite ? along(kFinite) : unknown();
    }
    const KeyAxis* axis = a != nullptr ? a : b;
    if (axis == nullptr || axis->rows == kZero) return unknown();
    const auto other = node_.tensor(a != nullptr ? "other" : "self");
    if (!other || !model_.mentions_past(*other)) return along(axis->rows);
    std::string reason = "adds what does not follow from positions";
    const auto form = mask(*other, reason);
    if (!form) {
      const Formula* formula = tensors_.formula(*other);
      return formula != nullptr && formula->integer ? along(axis->rows) : refused(reason);
    }
    if (form->hidden <= kHiddenScore && name_ == "add" && is_plain) return along(kHidden);
    if (form->hidden > kHiddenScore && form->hidden < 0) {
      return refused("hides keys by adding no less than " + std::to_string(form->hidden));
    }
    return along(axis->rows);
  }

  KeyRule scaled() const {
    const KeyAxis* a = keys("self");
    const KeyAxis* b = keys("other");
    if (a != nullptr && b != nullptr) {
      return a->rows != kHidden && b->rows != kHidden && name_ == "mul"
                 ? along(a->rows == kZero || b->rows == kZero ? kZero : kFinite)
                 : unknown();
    }
    if (b != nullptr && name_ == "div") return unknown();
    const KeyAxis* axis = a != nullptr ? a : b;
    if (axis == nullptr || axis->rows == kHidden) return unknown();
    return along(axis->rows);
  }

  KeyRule choice() const {
    const bool fills = name_ == "masked_fill";
    const auto condition = node_.tensor(fills ? "mask" : "condition");
    if (!condition) return unknown();
    const std::string_view if_true = fills ? "value" : "self";
    const std::string_view if_false = fills ? "self" : "other";
    if (const KeyAxis* axis = tensors_.keys(*condition)) {
      // False for unused rows, as whether a weight of 0 is no number.
      const KeyAxis* kept = keys(if_false);
      return axis->rows == kZero && kept != nullptr ? along(kept->rows) : unknown();
    }
    std::string reason = "chooses by what does not follow from positions";
    const auto form = mask(*condition, reason);
    if (!form) return refused(reason);
    const std::string_view unused = form->hidden != 0 ? if_true : if_false;
    if (const KeyAxis* kept = keys(unused)) return along(kept->rows);
    const auto number = constant(unused);
    if (number && *number <= kHiddenScore) return along(kHidden);
    if (number && *number == 0) return along(kZero);
    return refused("puts something into scores that it hides which is not the lowest number");
  }
  /// A number, or the one number of a tensor.
  std::optional<double> constant(std::string_view argument) const {
    if (const auto tensor = node_.tensor(argument)) {
      const Formula* formula = tensors_.formula(*tensor);
      return formula == nullptr ? std::nullopt : formula->number();
    }
    const BoundArgument* bound = node_.find(argument);
    if (bound == nullptr || bound->kind != BoundArgument::Kind::kValue) return std::nullopt;
    return json_number(bound->value);
  }

  KeyRule mapped() const {
    const KeyAxis* self = tensors_.keys(inputs()[0]);
    if (self == nullptr) return unknown();
    if (self->rows == kHidden && is_one_of({"neg", "abs", "tanh", "isnan", "isinf"})) {
      return unknown();
    }
    return along(self->rows);
  }

  KeyRule moved() const {
    const KeyAxis* self = tensors_.keys(inputs()[0]);
    if (self == nullptr) return unknown();
    const KeyRule rule = along(self->rows);
    if (!rule.refusal.empty()) return rule;
    const SizeShape& from = model_.shape(inputs()[0]);
    const SizeShape& to = model_.shape(result_);
    if (is_one_of({"index_select", "slice", "select", "narrow"})) {
      std::int64_t dim = node_.integer("dim");
      if (dim < 0) dim += static_cast<std::int64_t>(from.size());
      return dim == static_cast<std::int64_t>(self->dim) ? unknown() : rule;
    }
    if (is_one_of({"permute", "transpose", "t", "expand"})) return rule;
    // The rows stay rows: as many elements lie in front of them, and in one of them.
    const auto product = [](const SizeShape& shape, std::size_t begin, std::size_t end) {
      SizeExpression count(1);
      for (std::size_t d = begin; d < end; ++d) count = count * shape[d];
      return count;
    };
    const std::size_t at = rule.result->dim;
    const bool stays = product(from, 0, self->dim) == product(to, 0, at) &&
                       product(from, self->dim + 1, from.size()) == product(to, at + 1, to.size());
    return stays ? rule : refused("puts rows of a cache into other ones");
  }

  const PastModel& model_;
  const BoundNode& node_;
  const PastTensors& tensors_;
  TensorId result_;
  std::string_view name_;
};

}  // namespace

KeyRule key_rule(const PastModel& model, const BoundNode& node, const PastTensors& tensors) {
  if (node.node().outputs.size() != 1) {
    return refused("reads rows of a cache and gives several results");
  }
  return RuleFinder(model, node, tensors).find();
}

}  // namespace npu::states
