// SPDX-License-Identifier: Apache-2.0
// Tells nodes that compute biases of attention scores by position: element by element, of numbers
// of rows and keys, of weights, and of rows of tables that such numbers choose. Each element then
// follows from the places that it stands for, so that it can be computed for as many keys as a
// state has, and for the new rows alone where all were computed and most cut off. O(rank) for an
// operand.
#include "passes/states/place_step.hpp"

#include <algorithm>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include "ops/constant_ops.hpp"
#include "ops/hidden_score.hpp"
#include "ops/op_catalogue.hpp"
#include "ops/op_name.hpp"
#include "passes/states/mask_form.hpp"
#include "passes/states/row_lookup.hpp"

namespace npu::states {
namespace {

using Step = std::optional<PlaceStep>;
using Kind = PlaceStep::Kind;

class StepFinder {
 public:
  StepFinder(const PastModel& model, const BoundNode& node, const PastTensors& tensors)
      : model_(model),
        node_(node),
        tensors_(tensors),
        shape_(model.shape(node.node().outputs.front())),
        name_(functional_name(node.node().op_type)) {}

  Step find() {
    if (inputs().empty() || !has_rows_alone(shape_)) return std::nullopt;
    if (is_one_of({"slice", "narrow"})) return cut();
    if (is_one_of({"expand", "broadcast_to"})) return checked(aligned(Kind::kExpand));
    if (is_one_of({"repeat"})) {
      const bool is_expanded = stretches(model_.shape(inputs()[0]), shape_);
      return is_expanded ? checked(aligned(Kind::kExpand)) : std::nullopt;
    }
    if (is_one_of(
            {"reshape", "view", "_unsafe_view", "unsqueeze", "squeeze", "flatten", "unflatten"})) {
      return checked(reshaped());
    }
    if (model_.mentions_past(node_.node())) return std::nullopt;
    if (is_one_of({"permute", "transpose", "t"})) return checked(permuted());
    if (is_one_of({"select"})) return checked(selected());
    if (is_one_of({"embedding", "index_select", "index"})) return checked(looked_up());
    if (is_one_of({"cat", "concat"})) return checked(joined());
    if (is_one_of({"einsum"})) return checked(outer_product());
    const OpInfo* op = find_op(node_.node().op_type);
    const bool is_by_element =
        op != nullptr && (op->kind == OpKind::kElementwise || op->kind == OpKind::kBroadcast ||
                          is_one_of({"contiguous"}));
    if (!is_by_element || !is_repeatable(model_.graph(), node_.node())) return std::nullopt;
    if (Step hiding = hidden_by_sum()) return hiding;
    if (Step hiding = hidden_by_choice()) return hiding;
    return checked(aligned(Kind::kElements));
  }

 private:
  bool is_one_of(std::initializer_list<std::string_view> names) const {
    return std::find(names.begin(), names.end(), name_) != names.end();
  }
  const std::vector<TensorId>& inputs() const { return node_.node().inputs; }

  /// Whether sizes that follow from the past are the number of all rows.
  bool has_rows_alone(const SizeShape& shape) const {
    return std::all_of(shape.begin(), shape.end(), [&](const SizeExpression& size) {
      return !model_.has_past(size) || size == model_.caches().total;
    });
  }
  bool is_known(TensorId id) const {
    if (tensors_.stays(id) || tensors_.placed(id) != nullptr) return true;
    const Formula* formula = tensors_.formula(id);
    return formula != nullptr && (formula->integer || formula->number()) &&
           has_rows_alone(model_.shape(id));
  }

  /// With what it takes over from operands, all of which are known.
  Step checked(Step step) const {
    if (!step) return std::nullopt;
    for (std::size_t i = 0; i < inputs().size(); ++i) {
      if (step->mask == i) continue;
      if (!is_known(inputs()[i])) return std::nullopt;
      const SizeShape& shape = model_.shape(inputs()[i]);
      for (std::size_t d = 0; d < shape.size(); ++d) {
        const bool is_cut = step->kind == Kind::kRows && step->takes_new && d == step->dim;
        if (!model_.has_past(shape[d]) || is_cut) continue;
        const std::int32_t to = step->from[i][d];
        if (to < 0 || to >= std::ssize(shape_) || shape_[npu::index_of(to)] != shape[d]) {
          return std::nullopt;
        }
      }
      const Placed* placed = tensors_.placed(inputs()[i]);
      if (placed == nullptr || !placed->hidden) continue;
      const std::int32_t to = step->from[i][*placed->hidden];
      const bool keeps = step->kind != Kind::kElements ||
                         is_one_of({"permute", "transpose", "t", "select", "to", "_to_copy",
                                    "clone", "contiguous"}) ||
                         (name_ == "add" && is_plain_sum());
      if (to < 0 || to >= std::ssize(shape_) || !keeps) return std::nullopt;
      step->hidden = static_cast<std::size_t>(to);
    }
    return step;
  }
  bool is_plain_sum() const { return node_.find("alpha") == nullptr || node_.number("alpha") == 1; }

  /// Dimensions from the last one on.
  std::vector<std::int32_t> aligned(const SizeShape& shape) const {
    std::vector<std::int32_t> from(shape.size(), -1);
    if (shape.size() > shape_.size()) return from;
    const std::size_t behind = shape_.size() - shape.size();
    for (std::size_t d = 0; d < shape.size(); ++d) {
      if (shape[d] == shape_[d + behind]) from[d] = static_cast<std::int32_t>(d + behind);
    }
    return from;
  }
  Step aligned(Kind kind) const {
    PlaceStep step{.kind = kind};
    for (const TensorId input : inputs()) step.from.push_back(aligned(model_.shape(input)));
    return step;
  }

  /// The dimension of keys of an operand that is a mask which hides by a low number, or with
  /// false.
  std::optional<std::size_t> mask_keys(TensorId id, std::optional<MaskForm>& form) const {
    const Formula* formula = tensors_.formula(id);
    if (formula == nullptr || formula->integer || formula->number()) return std::nullopt;
    const auto keys = keys_dim(model_, *formula, model_.shape(id));
    std::string reason;
    form = keys ? mask_form(model_, *formula, model_.shape(id), *keys, reason) : std::nullopt;
    return form ? keys : std::nullopt;
  }
  bool hides(double fill) const {
    return hides_score(fill, model_.graph().tensor(node_.node().outputs.front()).dtype);
  }
  Step hidden_by(std::size_t operand, std::size_t keys) const {
    Step step = aligned(Kind::kElements);
    const std::int32_t to = step->from[operand][keys];
    if (to < 0) return std::nullopt;
    step->mask = operand;
    step->hidden = static_cast<std::size_t>(to);
    return checked(std::move(step));
  }

  /// A mask that is added.
  Step hidden_by_sum() const {
    if (name_ != "add" || inputs().size() != 2 || !is_plain_sum()) return std::nullopt;
    for (const std::size_t i : {0U, 1U}) {
      std::optional<MaskForm> form;
      const auto keys = mask_keys(inputs()[i], form);
      if (keys && hides(form->hidden) && !hides(form->shown)) {
        return hidden_by(i, *keys);
      }
    }
    return std::nullopt;
  }

  /// A low number that is put in place of others.
  Step hidden_by_choice() const {
    const bool fills = name_ == "masked_fill";
    if (!fills && name_ != "where") return std::nullopt;
    const auto condition = node_.tensor(fills ? "mask" : "condition");
    std::optional<MaskForm> form;
    const auto keys = condition ? mask_keys(*condition, form) : std::nullopt;
    if (!keys) return std::nullopt;
    const std::string_view unused =
        form->hidden != 0 ? (fills ? "value" : "self") : (fills ? "self" : "other");
    std::optional<double> number;
    if (const auto tensor = node_.tensor(unused)) {
      const Formula* formula = tensors_.formula(*tensor);
      if (formula != nullptr) number = formula->number();
    } else if (const BoundArgument* bound = node_.find(unused);
               bound != nullptr && bound->kind == BoundArgument::Kind::kValue) {
      number = json_number(bound->value);
    }
    if (!number || !hides(*number)) return std::nullopt;
    for (std::size_t i = 0; i < inputs().size(); ++i) {
      if (inputs()[i] == *condition) return hidden_by(i, *keys);
    }
    return std::nullopt;
  }

  std::optional<std::int32_t> dimension(std::string_view name, std::size_t rank) const {
    const std::int64_t dim = node_.integer(name);
    const auto count = static_cast<std::int64_t>(rank);
    if (dim < -count || dim >= count) return std::nullopt;
    return static_cast<std::int32_t>(dim < 0 ? dim + count : dim);
  }

  /// Places stay where as many elements lie in front of them, and in one of them.
  Step reshaped() const {
    const SizeShape& shape = model_.shape(inputs()[0]);
    const auto product = [](const SizeShape& of, std::size_t begin, std::size_t end) {
      SizeExpression count(1);
      for (std::size_t d = begin; d < end; ++d) count = count * of[d];
      return count;
    };
    PlaceStep step{.kind = Kind::kReshape, .from = {{}}};
    for (std::size_t d = 0; d < shape.size(); ++d) {
      std::int32_t to = -1;
      for (std::size_t r = 0; r < shape_.size() && to < 0; ++r) {
        const bool stays =
            shape_[r] == shape[d] && product(shape, 0, d) == product(shape_, 0, r) &&
            product(shape, d + 1, shape.size()) == product(shape_, r + 1, shape_.size());
        if (stays) to = static_cast<std::int32_t>(r);
      }
      step.from[0].push_back(to);
    }
    return step;
  }

  Step permuted() const {
    const std::size_t rank = shape_.size();
    PlaceStep step{.from = {std::vector<std::int32_t>(rank, -1)}};
    std::vector<std::int32_t>& from = step.from[0];
    if (name_ == "permute") {
      const std::vector<std::int64_t> dims = node_.integers("dims");
      if (dims.size() != rank) return std::nullopt;
      for (std::size_t d = 0; d < rank; ++d) {
        const std::int64_t dim = dims[d] < 0 ? dims[d] + std::ssize(dims) : dims[d];
        from.at(npu::index_of(dim)) = static_cast<std::int32_t>(d);
      }
      return step;
    }
    for (std::size_t d = 0; d < rank; ++d) from[d] = static_cast<std::int32_t>(d);
    if (rank < 2) return step;
    const auto a = name_ == "t" ? 0 : dimension("dim0", rank);
    const auto b = name_ == "t" ? 1 : dimension("dim1", rank);
    if (!a || !b) return std::nullopt;
    std::swap(from[npu::index_of(*a)], from[npu::index_of(*b)]);
    return step;
  }

  Step selected() const {
    const SizeShape& shape = model_.shape(inputs()[0]);
    const auto dim = dimension("dim", shape.size());
    if (!dim) return std::nullopt;
    PlaceStep step{.from = {{}}};
    for (std::int32_t d = 0; d < std::ssize(shape); ++d) {
      step.from[0].push_back(d == *dim ? -1 : d < *dim ? d : d - 1);
    }
    return step;
  }

  /// Parts along a dimension that has no rows.
  Step joined() const {
    const auto dim = dimension("dim", shape_.size());
    if (!dim || model_.has_past(shape_[npu::index_of(*dim)])) return std::nullopt;
    PlaceStep step;
    for (const TensorId input : inputs()) {
      step.from.push_back(aligned(model_.shape(input)));
      if (step.from.back().size() != shape_.size()) return std::nullopt;
      step.from.back()[npu::index_of(*dim)] = -1;
    }
    return step;
  }

  /// Each element of a vector times each of another: "i,j->ij".
  Step outer_product() const {
    std::string text = node_.string("equation");
    std::erase(text, ' ');
    const bool is_outer = text.size() == 7 && text[1] == ',' && text.substr(3, 2) == "->" &&
                          text[5] == text[0] && text[6] == text[2] && text[0] != text[2];
    if (!is_outer || inputs().size() != 2) return std::nullopt;
    return PlaceStep{.from = {{0}, {1}}};
  }

  /// A part of a table, of all rows, or of the elements along another dimension.
  Step cut() const {
    const SizeShape& shape = model_.shape(inputs()[0]);
    const auto dim = dimension("dim", shape.size());
    const bool from_front = node_.find("start") == nullptr || node_.is_none("start");
    auto start = from_front ? SizeExpression(0) : model_.size(node_, "start");
    const auto step_size =
        node_.find("step") == nullptr ? SizeExpression(1) : model_.size(node_, "step");
    if (!dim || !start || !step_size || step_size->constant() != std::int64_t{1}) {
      return std::nullopt;
    }
    const std::size_t along = npu::index_of(*dim);
    if (start->bounds(model_.ranges()).max < 0) start = *start + shape[along];
    PlaceStep step{.kind = Kind::kRows, .dim = along, .start = *start};
    step.from = aligned(Kind::kRows)->from;
    const CachePairs& caches = model_.caches();
    if (model_.has_past(shape[along])) {
      const bool is_whole = *start == SizeExpression(0) && shape_[along] == shape[along];
      step.takes_new = *start == caches.past && shape_[along] == caches.fresh;
      return is_whole || step.takes_new ? checked(std::move(step)) : std::nullopt;
    }
    if (!model_.mentions_past(node_.node())) {
      step.kind = Kind::kElements;
      return checked(std::move(step));
    }
    step.kind = Kind::kTable;
    return tensors_.stays(inputs()[0]) ? checked(std::move(step)) : std::nullopt;
  }

  /// Rows of a table by their numbers.
  Step looked_up() const {
    const auto lookup = row_lookup(node_);
    if (!lookup || !tensors_.stays(inputs()[0])) return std::nullopt;
    PlaceStep step;
    step.from.emplace_back(model_.shape(inputs()[0]).size(), -1);
    step.from.emplace_back();
    for (std::size_t d = 0; d < model_.shape(lookup->index).size(); ++d) {
      step.from[1].push_back(static_cast<std::int32_t>(lookup->dim + d));
    }
    return step;
  }

  const PastModel& model_;
  const BoundNode& node_;
  const PastTensors& tensors_;
  const SizeShape& shape_;
  std::string_view name_;
};

}  // namespace

std::optional<PlaceStep> place_step(const PastModel& model, const BoundNode& node,
                                    const PastTensors& tensors) {
  if (node.node().outputs.size() != 1) return std::nullopt;
  return StepFinder(model, node, tensors).find();
}

}  // namespace npu::states
