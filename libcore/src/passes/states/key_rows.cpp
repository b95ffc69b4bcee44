// SPDX-License-Identifier: Apache-2.0
// Proves that rows of a cache behind the last position change no result: they may be moved with the
// others, joined or mixed row by row, multiplied into scores, hidden by a mask, given no weight by
// the softmax, and added up with that weight. Scores that are hidden may have a sink behind them
// until it is cut off behind the softmax. Whatever else reads them is refused. O(rank) for a node.
#include "passes/states/key_rows.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "ops/hidden_score.hpp"
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
    if (is_one_of({"cat"})) return joins_rows() ? joined() : with_sink();
    if (is_one_of({"linear"})) return mixed();
    if (is_one_of({"reshape", "view", "_unsafe_view", "unsqueeze", "squeeze", "flatten",
                   "unflatten", "expand", "repeat", "permute", "transpose", "t", "index_select",
                   "slice", "select", "narrow"})) {
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
  std::size_t rank(TensorId id) const { return model_.shape(id).size(); }
  /// A result whose rows of a cache lie along a dimension, perhaps with a sink behind them.
  KeyRule along(UnusedRows rows, std::size_t dim, bool has_sink = false) const {
    const SizeShape& shape = model_.shape(result_);
    const SizeExpression& total = model_.caches().total;
    if (dim >= shape.size() || shape[dim] != (has_sink ? total + SizeExpression(1) : total)) {
      return refused("has a size that follows from the past, other than the number of all rows");
    }
    for (std::size_t d = 0; d < shape.size(); ++d) {
      if (d != dim && model_.has_past(shape[d])) {
        return refused("has two sizes that follow from the past");
      }
    }
    return {.result = KeyAxis{dim, rows, has_sink}};
  }
  /// The same of an op that broadcasts an operand with such rows.
  KeyRule along(UnusedRows rows, const KeyAxis& axis, TensorId operand) const {
    if (rank(result_) < rank(operand)) return unknown();
    return along(rows, axis.dim + rank(result_) - rank(operand));
  }

  /// The value that a mask has for keys that it hides; nothing, and why, if it is no mask.
  /// Its keys lie along `from_back` dimensions in front of the last one.
  std::optional<MaskForm> mask(TensorId id, std::size_t from_back, std::string& reason) const {
    const Formula* formula = tensors_.formula(id);
    if (formula == nullptr) return std::nullopt;
    const SizeShape& shape = model_.shape(id);
    const std::size_t dim = from_back < shape.size() ? shape.size() - 1 - from_back : shape.size();
    auto form = mask_form(model_, *formula, shape, dim, reason);
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
    if (!given && model_.caches().is_fixed) {
      return refused("attends to rows of a buffer that no step has written");
    }
    if (!given) return {.needs_mask = true};
    const SizeShape& shape = model_.shape(*given);
    const Placed* placed = shape.empty() ? nullptr : tensors_.placed(*given);
    if (placed != nullptr && placed->hidden == shape.size() - 1) return {};
    if (placed != nullptr && tensors_.formula(*given) == nullptr && !placed->hidden &&
        shape.back() == model_.caches().total && !model_.caches().is_fixed &&
        is_floating_point(model_.graph().tensor(*given).dtype)) {
      return {.needs_mask = true};
    }
    std::string reason = "has a mask that does not follow from positions";
    const auto form = mask(*given, 0, reason);
    if (!form) return refused(reason);
    const DType dtype = model_.graph().tensor(*given).dtype;
    const bool is_bool = dtype == DType::kBool;
    if (const auto number = tensors_.formula(*given)->number()) {
      if (*number == (is_bool ? 1 : 0)) return {.needs_mask = true};
    }
    const bool hides =
        is_bool ? form->hidden == 0 && form->shown == 1 : hides_score(form->hidden, dtype);
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
    if (b != nullptr && b->dim + 1 == rank(inputs()[1])) return along(b->rows, rank(result_) - 1);
    return along(axis->rows, *axis, inputs()[a != nullptr ? 0 : 1]);
  }

  KeyRule softmax() const {
    const KeyAxis* self = tensors_.keys(inputs()[0]);
    if (self == nullptr) return unknown();
    const auto rank = static_cast<std::int64_t>(model_.shape(inputs()[0]).size());
    std::int64_t dim = node_.integer("dim");
    if (dim < 0) dim += rank;
    if (dim != static_cast<std::int64_t>(self->dim)) {
      return self->rows == kFinite ? along(kFinite, self->dim) : unknown();
    }
    if (self->rows == kHidden) return along(kZero, self->dim, self->has_sink);
    // Of what has grown by a step all rows count, which a mask says of a state.
    if (self->rows == kFinite && !model_.caches().is_fixed) {
      KeyRule rule = along(kZero, self->dim);
      rule.needs_mask = true;
      return rule;
    }
    return refused("gives weights to all rows, without a mask");
  }

  /// Whether rows of caches are joined along another dimension than theirs.
  bool joins_rows() const {
    const KeyAxis* first = tensors_.keys(inputs()[0]);
    const auto count = static_cast<std::int64_t>(rank(inputs()[0]));
    const std::int64_t dim = node_.integer("dim") + (node_.integer("dim") < 0 ? count : 0);
    return first != nullptr && dim != static_cast<std::int64_t>(first->dim);
  }
  KeyRule joined() const {
    const KeyAxis& first = *tensors_.keys(inputs()[0]);
    const bool are_alike = std::all_of(inputs().begin(), inputs().end(), [&](TensorId id) {
      const KeyAxis* axis = tensors_.keys(id);
      return axis != nullptr && axis->dim == first.dim && axis->rows == first.rows &&
             axis->has_sink == first.has_sink;
    });
    return are_alike ? along(first.rows, first.dim, first.has_sink) : unknown();
  }

  /// Each row by a matrix: finite numbers stay so.
  KeyRule mixed() const {
    const KeyAxis* self = tensors_.keys(inputs()[0]);
    const bool is_alone = std::none_of(inputs().begin() + 1, inputs().end(), [&](TensorId id) {
      return tensors_.keys(id) != nullptr || !tensors_.stays(id);
    });
    const bool fits =
        self != nullptr && is_alone && self->rows == kFinite && self->dim + 1 < rank(inputs()[0]);
    return fits ? along(kFinite, self->dim) : unknown();
  }

  /// Scores that are hidden, and one more that no row has.
  KeyRule with_sink() const {
    if (inputs().size() != 2) return unknown();
    const KeyAxis* scores = tensors_.keys(inputs()[0]);
    const SizeShape& sink = model_.shape(inputs()[1]);
    const auto count = static_cast<std::int64_t>(rank(inputs()[0]));
    const std::int64_t dim = node_.integer("dim") + (node_.integer("dim") < 0 ? count : 0);
    const bool fits = scores != nullptr && scores->rows == kHidden && !scores->has_sink &&
                      dim == static_cast<std::int64_t>(scores->dim) && scores->dim < sink.size() &&
                      sink[scores->dim] == SizeExpression(1) &&
                      tensors_.keys(inputs()[1]) == nullptr &&
                      tensors_.formula(inputs()[1]) == nullptr;
    return fits ? along(kHidden, scores->dim, true) : unknown();
  }

  KeyRule sum() const {
    const KeyAxis* a = keys("self");
    const KeyAxis* b = keys("other");
    const bool is_plain = node_.find("alpha") == nullptr || node_.number("alpha") == 1;
    const KeyAxis* axis = a != nullptr ? a : b;
    if (axis == nullptr) return unknown();
    const TensorId self = *node_.tensor(a != nullptr ? "self" : "other");
    if (a != nullptr && b != nullptr) {
      const bool fits = a->rows == b->rows && a->rows != kHidden && !a->has_sink && !b->has_sink;
      return fits ? along(a->rows, *a, self) : unknown();
    }
    if (axis->rows == kZero) return unknown();
    const auto other = node_.tensor(a != nullptr ? "other" : "self");
    const bool is_added = name_ == "add" && is_plain;
    if (axis->rows == kHidden && a == nullptr && !is_added) return unknown();
    const Formula* formula = other ? tensors_.formula(*other) : nullptr;
    const Placed* placed = other && formula == nullptr ? tensors_.placed(*other) : nullptr;
    if (placed != nullptr && placed->hidden) {
      const bool is_along = rank(*other) - *placed->hidden == rank(self) - axis->dim;
      if (is_along && is_added) return along(kHidden, *axis, self);
      return refused("hides keys other than by a sum");
    }
    if (other && formula == nullptr && placed == nullptr && model_.mentions_past(*other)) {
      return refused("adds what does not follow from positions");
    }
    if (formula == nullptr || formula->integer || formula->number()) {
      return along(axis->rows, *axis, self);
    }
    std::string reason;
    const auto form = mask(*other, rank(self) - 1 - axis->dim, reason);
    if (!form) return refused(reason);
    const bool hides = hides_score(form->hidden, model_.graph().tensor(self).dtype);
    if (hides && is_added) return along(kHidden, *axis, self);
    if (!hides && form->hidden < 0 && !takes_lowered()) {
      return refused("hides keys by adding no less than " + std::to_string(form->hidden));
    }
    return along(axis->rows, *axis, self);
  }

  /// Whether scores may be made low and no more, such as -10000: the softmax of what has grown gets
  /// a mask for the rows that no step has written.
  bool takes_lowered() const { return !model_.caches().is_fixed; }

  KeyRule scaled() const {
    const KeyAxis* a = keys("self");
    const KeyAxis* b = keys("other");
    const KeyAxis* axis = a != nullptr ? a : b;
    if (axis == nullptr || axis->rows == kHidden) return unknown();
    const TensorId self = *node_.tensor(a != nullptr ? "self" : "other");
    if (a != nullptr && b != nullptr) {
      if (b->rows == kHidden || name_ != "mul") return unknown();
      return along(a->rows == kZero || b->rows == kZero ? kZero : kFinite, *a, self);
    }
    if (b != nullptr && name_ == "div") return unknown();
    const auto other = node_.tensor(a != nullptr ? "other" : "self");
    const Placed* placed = other ? tensors_.placed(*other) : nullptr;
    if (placed != nullptr && placed->hidden) return unknown();
    return along(axis->rows, *axis, self);
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
      if (axis->rows != kZero || kept == nullptr) return unknown();
      return along(kept->rows, *kept, *node_.tensor(if_false));
    }
    const std::string_view scores = keys(if_true) != nullptr ? if_true : if_false;
    const KeyAxis* axis = keys(scores);
    if (axis == nullptr) return unknown();
    const TensorId self = *node_.tensor(scores);
    std::string reason = "chooses by what does not follow from positions";
    const auto form = mask(*condition, rank(self) - 1 - axis->dim, reason);
    if (!form) return refused(reason);
    const std::string_view unused = form->hidden != 0 ? if_true : if_false;
    if (const KeyAxis* kept = keys(unused)) {
      return along(kept->rows, *kept, *node_.tensor(unused));
    }
    const auto number = constant(unused);
    if (number && hides_score(*number, model_.graph().tensor(self).dtype)) {
      return along(kHidden, *axis, self);
    }
    if (number && *number == 0) return along(kZero, *axis, self);
    if (number && std::isfinite(*number) && axis->rows == kFinite && takes_lowered()) {
      return along(kFinite, *axis, self);
    }
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
    return along(self->rows, *self, inputs()[0]);
  }

  KeyRule moved() const {
    const KeyAxis* self = tensors_.keys(inputs()[0]);
    if (self == nullptr) return unknown();
    const auto count = static_cast<std::int64_t>(rank(inputs()[0]));
    const auto from_front = [&](std::int64_t dim) { return dim < 0 ? dim + count : dim; };
    const auto own = static_cast<std::int64_t>(self->dim);
    if (is_one_of({"index_select", "slice", "select", "narrow"})) {
      const std::int64_t dim = from_front(node_.integer("dim"));
      if (dim == own) return without_sink(*self);
      return along(self->rows, self->dim - (name_ == "select" && dim < own ? 1 : 0));
    }
    if (name_ == "expand" || name_ == "repeat") return along(self->rows, *self, inputs()[0]);
    if (name_ == "permute") {
      const std::vector<std::int64_t> dims = node_.integers("dims");
      for (std::size_t d = 0; d < dims.size(); ++d) {
        if (from_front(dims[d]) == own) return along(self->rows, d);
      }
      return unknown();
    }
    if (name_ == "transpose" || name_ == "t") {
      const std::int64_t a = name_ == "t" ? 0 : from_front(node_.integer("dim0"));
      const std::int64_t b = name_ == "t" ? 1 : from_front(node_.integer("dim1"));
      const std::int64_t to = own == a ? b : own == b ? a : own;
      return along(self->rows, static_cast<std::size_t>(to));
    }
    return reshaped(*self);
  }

  /// All rows, and not the sink.
  KeyRule without_sink(const KeyAxis& self) const {
    const bool cuts = name_ == "slice" && self.has_sink &&
                      (node_.is_none("start") || node_.integer("start") == 0) &&
                      node_.integer("step") == 1;
    return cuts ? along(self.rows, self.dim) : unknown();
  }

  /// The rows stay rows: as many elements lie in front of them, and in one of them.
  KeyRule reshaped(const KeyAxis& self) const {
    const SizeShape& from = model_.shape(inputs()[0]);
    const SizeShape& to = model_.shape(result_);
    const auto product = [](const SizeShape& shape, std::size_t begin, std::size_t end) {
      SizeExpression count(1);
      for (std::size_t d = begin; d < end; ++d) count = count * shape[d];
      return count;
    };
    for (std::size_t d = 0; d < to.size(); ++d) {
      const bool stays = to[d] == from[self.dim] &&
                         product(from, 0, self.dim) == product(to, 0, d) &&
                         product(from, self.dim + 1, from.size()) == product(to, d + 1, to.size());
      if (stays) return along(self.rows, d);
    }
    return refused("puts rows of a cache into other ones");
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
