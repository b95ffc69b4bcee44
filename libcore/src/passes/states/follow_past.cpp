// SPDX-License-Identifier: Apache-2.0
// Follows masks and positions of a decoder through the nodes that compute them, whatever exporter
// wrote these: sequences, comparisons, logic, choices, arithmetic with numbers, and what moves
// elements. A tensor that is made otherwise has no formula. O(nodes x rank).
#include "passes/states/follow_past.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>
#include <utility>

#include "ops/hidden_score.hpp"
#include "ops/op_catalogue.hpp"
#include "ops/op_name.hpp"

namespace npu::states {
namespace {

using Found = std::optional<Formula>;
using Function = double (*)(double, double);

bool is_true(double value) { return value != 0; }

Formula as_choice(const Formula& formula) {
  const auto number = formula.number();
  return formula.integer && number ? constant_formula(*number) : formula;
}

/// As an integer form, if it is one or an integral number.
std::optional<Affine> as_integer(const Formula& formula, std::size_t rank) {
  if (formula.integer) return formula.integer;
  const auto number = formula.number();
  if (!number || std::abs(*number) > 0x1p53 || std::floor(*number) != *number) return std::nullopt;
  return integer_formula(rank, static_cast<std::int64_t>(*number)).integer;
}

/// A function of every number that a choice may be.
Found mapped(const Formula& formula, double (*function)(double)) {
  const Formula choice = as_choice(formula);
  if (choice.integer) return std::nullopt;
  return choice_formula(choice.when, function(choice.yes), function(choice.no));
}

/// Every index replaced: that of dimension d by `place[d]` of the result, or by nothing.
Found moved(const Formula& formula, const std::vector<std::int32_t>& place, std::size_t rank) {
  bool is_known = true;
  const auto move = [&](const Affine& a) {
    Affine result{std::vector<std::int64_t>(rank, 0), a.rest};
    for (std::size_t d = 0; d < a.factors.size(); ++d) {
      if (a.factors[d] == 0) continue;
      if (place[d] < 0) {
        is_known = false;
      } else {
        result.factors[index_of(place[d])] += a.factors[d];
      }
    }
    return result;
  };
  Formula result = formula;
  if (result.integer) result.integer = move(*result.integer);
  for (Affine& atom : result.when.atoms) atom = move(atom);
  return is_known ? Found(std::move(result)) : std::nullopt;
}

/// The index along one dimension replaced by a sum of multiples of indices; `rank` stays.
Formula substituted(const Formula& formula, std::size_t dim, const Affine& index) {
  const auto replace = [&](Affine& a) {
    const std::int64_t factor = std::exchange(a.factors[dim], 0);
    a = add(a, index, factor);
  };
  Formula result = formula;
  if (result.integer) replace(*result.integer);
  for (Affine& atom : result.when.atoms) replace(atom);
  return result;
}

/// The formula of the results of one node.
class NodeFormula {
 public:
  NodeFormula(PastFollower& follower, const PastModel& model, const BoundNode& node)
      : follower_(follower),
        model_(model),
        node_(node),
        result_(node.node().outputs.front()),
        shape_(model.shape(result_)),
        name_(functional_name(node.node().op_type)) {}

  Found find() {
    if (name_ == "arange") return sequence();
    if (is_one_of({"full", "full_like", "new_full"})) return filled("fill_value");
    if (name_ == "scalar_tensor") return filled("s");
    if (is_one_of({"zeros", "zeros_like", "new_zeros"})) return constant_formula(0);
    if (is_one_of({"ones", "ones_like", "new_ones"})) return constant_formula(1);
    if (is_one_of({"to", "_to_copy", "type_as"})) return converted();
    if (is_one_of({"clone", "contiguous", "detach", "alias", "lift_fresh", "lift_fresh_copy"})) {
      return operand(0);
    }
    if (is_one_of({"add", "sub", "rsub", "mul", "div"})) return arithmetic();
    if (is_one_of({"lt", "le", "gt", "ge", "eq", "ne"})) return comparison();
    if (is_one_of(
            {"logical_and", "bitwise_and", "__and__", "logical_or", "bitwise_or", "__or__"})) {
      return logic();
    }
    if (is_one_of({"where", "masked_fill"})) return chosen();
    if (is_one_of({"maximum", "minimum", "clamp", "clamp_min", "clamp_max"})) return bounded();
    if (is_one_of({"triu", "tril"})) return triangle();
    if (name_ == "slice_scatter") return overwritten();
    if (is_one_of({"cumsum", "sum"})) return summed();
    if (is_one_of({"index", "index_select", "gather", "embedding"})) return indexed();
    if (auto* const function = unary()) {
      const Found self = operand(0);
      return self ? mapped(*self, function) : std::nullopt;
    }
    return rearranged();
  }

 private:
  bool is_one_of(std::initializer_list<std::string_view> names) const {
    return std::find(names.begin(), names.end(), name_) != names.end();
  }
  std::size_t rank() const { return shape_.size(); }
  FormulaSpace space() const { return {shape_, model_.ranges()}; }
  bool is_bool() const { return model_.graph().tensor(result_).dtype == DType::kBool; }

  /// Of an operand of the node, as it is.
  Found operand(std::size_t i) {
    if (i >= node_.node().inputs.size()) return std::nullopt;
    return follower_.formula(node_.node().inputs[i]);
  }
  /// Of a tensor or a number in an argument, broadcast to the result.
  Found argument(std::string_view name) {
    if (const auto tensor = node_.tensor(name)) {
      Found found = follower_.formula(*tensor);
      if (!found || model_.shape(*tensor).size() > rank()) return std::nullopt;
      return broadcast(*std::move(found), rank());
    }
    if (const auto size = model_.size(node_, name)) return integer_formula(rank(), *size);
    const BoundArgument* bound = node_.find(name);
    if (bound == nullptr || bound->kind != BoundArgument::Kind::kValue) return std::nullopt;
    const auto number = json_number(bound->value);
    return number ? Found(constant_formula(*number)) : std::nullopt;
  }
  std::optional<std::size_t> dimension(std::string_view name, std::size_t of) const {
    const auto size = model_.size(node_, name);
    const auto dim = size ? size->constant() : std::nullopt;
    const auto count = static_cast<std::int64_t>(of);
    if (!dim || *dim < -count || *dim >= count) return std::nullopt;
    return npu::index_of(*dim < 0 ? *dim + count : *dim);
  }

  Found sequence() {
    const auto step =
        node_.find("step") == nullptr ? SizeExpression(1) : model_.size(node_, "step");
    const auto start =
        node_.find("start") == nullptr ? SizeExpression(0) : model_.size(node_, "start");
    if (!step || !start || !step->constant()) return std::nullopt;
    Formula result = integer_formula(1, *start);
    if (shape_.front() != SizeExpression(1)) result.integer->factors[0] = *step->constant();
    return result;
  }

  Found filled(std::string_view name) {
    if (const auto size = model_.size(node_, name); size && !is_bool()) {
      return integer_formula(rank(), *size);
    }
    const BoundArgument* bound = node_.find(name);
    const auto number = bound == nullptr ? std::nullopt : json_number(bound->value);
    return number ? Found(constant_formula(*number)) : std::nullopt;
  }

  Found converted() {
    Found self = operand(0);
    if (!self || !is_bool()) return self;
    if (self->integer && !self->number()) return std::nullopt;
    return mapped(*self, [](double v) { return is_true(v) ? 1.0 : 0.0; });
  }

  Found arithmetic() {
    Found a = argument("self");
    Found b = argument("other");
    if (!a || !b) return std::nullopt;
    std::int64_t alpha = 1;
    if (const BoundArgument* bound = node_.find("alpha");
        bound != nullptr && bound->kind == BoundArgument::Kind::kValue) {
      const auto size = model_.size(node_, "alpha");
      const auto number = size ? size->constant() : std::nullopt;
      if (!number) return std::nullopt;
      alpha = *number;
    }
    if (name_ == "rsub") std::swap(a, b);
    const auto left = as_integer(*a, rank());
    const auto right = as_integer(*b, rank());
    if (left && right && name_ != "div") {
      if (name_ == "add") return Formula{.integer = add(*left, *right, alpha)};
      if (name_ != "mul") return Formula{.integer = add(*left, *right, -alpha)};
      if (const auto factor = integral(*b)) return Formula{.integer = multiply(*left, *factor)};
      if (const auto factor = integral(*a)) return Formula{.integer = multiply(*right, *factor)};
      return std::nullopt;
    }
    const auto scale = static_cast<double>(alpha);
    const Formula first = as_choice(*a);
    const Formula second = as_choice(*b);
    if (name_ == "mul") return join(first, second, [](double x, double y) { return x * y; });
    if (name_ == "div") return join(first, second, [](double x, double y) { return x / y; });
    const double sign = name_ == "add" ? scale : -scale;
    // What two masks hide is hidden, however far below.
    const bool are_masks = !first.number() && !second.number();
    return join(first, second, [&](double x, double y) {
      const double sum = x + sign * y;
      const bool hides = are_masks && hides_score(sum, model_.graph().tensor(result_).dtype);
      return hides ? -std::numeric_limits<double>::infinity() : sum;
    });
  }
  static std::optional<std::int64_t> integral(const Formula& formula) {
    const auto number = formula.number();
    if (!number || std::abs(*number) > 0x1p53) return std::nullopt;
    return static_cast<std::int64_t>(*number);
  }

  Found comparison() {
    const Found a = argument("self");
    const Found b = argument("other");
    if (!a || !b) return std::nullopt;
    const auto left = as_integer(*a, rank());
    const auto right = as_integer(*b, rank());
    if (left && right) {
      const auto below = [&](const Affine& x, const Affine& y, std::int64_t apart) {
        Affine difference = add(x, y, -1);
        difference.rest = difference.rest + SizeExpression(apart);
        return at_most_zero(std::move(difference), space());
      };
      if (name_ == "le") return choice_formula(below(*left, *right, 0), 1, 0);
      if (name_ == "lt") return choice_formula(below(*left, *right, 1), 1, 0);
      if (name_ == "ge") return choice_formula(below(*right, *left, 0), 1, 0);
      if (name_ == "gt") return choice_formula(below(*right, *left, 1), 1, 0);
      const auto equal = both(below(*left, *right, 0), below(*right, *left, 0));
      if (!equal) return std::nullopt;
      return choice_formula(*equal, name_ == "eq" ? 1 : 0, name_ == "eq" ? 0 : 1);
    }
    return join(as_choice(*a), as_choice(*b), comparing());
  }
  Function comparing() const {
    if (name_ == "lt") return [](double x, double y) { return x < y ? 1.0 : 0.0; };
    if (name_ == "le") return [](double x, double y) { return x <= y ? 1.0 : 0.0; };
    if (name_ == "gt") return [](double x, double y) { return x > y ? 1.0 : 0.0; };
    if (name_ == "ge") return [](double x, double y) { return x >= y ? 1.0 : 0.0; };
    if (name_ == "eq") return [](double x, double y) { return x == y ? 1.0 : 0.0; };
    return [](double x, double y) { return x != y ? 1.0 : 0.0; };
  }

  Found logic() {
    const Found a = argument("self");
    const Found b = argument("other");
    if (!a || !b || !is_bool()) return std::nullopt;
    const bool needs_both = name_.find("and") != std::string_view::npos;
    return join(as_choice(*a), as_choice(*b), [&](double x, double y) {
      return (needs_both ? is_true(x) && is_true(y) : is_true(x) || is_true(y)) ? 1.0 : 0.0;
    });
  }

  Found chosen() {
    const bool fills = name_ == "masked_fill";
    const Found when = argument(fills ? "mask" : "condition");
    if (!when) return std::nullopt;
    const std::string_view names[] = {fills ? "value" : "self", fills ? "self" : "other"};
    if (const auto always = when->number()) return argument(names[is_true(*always) ? 0 : 1]);
    const Found a = argument(names[0]);
    const Found b = argument(names[1]);
    return a && b ? choice(*when, *a, *b) : std::nullopt;
  }

  /// The first where a condition holds, and the second elsewhere.
  static Found choice(const Formula& when, const Formula& a, const Formula& b) {
    const Formula first = as_choice(a);
    const Formula second = as_choice(b);
    if (const auto other = second.number()) {
      return join(when, first, [&](double c, double x) { return is_true(c) ? x : *other; });
    }
    if (const auto self = first.number()) {
      return join(when, second, [&](double c, double y) { return is_true(c) ? *self : y; });
    }
    return std::nullopt;
  }

  /// Some rows along a dimension are those of another tensor.
  Found overwritten() {
    const Found self = operand(0);
    Found part = operand(1);
    const auto dim = dimension("dim", rank());
    const auto step =
        node_.find("step") == nullptr ? SizeExpression(1) : model_.size(node_, "step");
    const bool from_front = node_.find("start") == nullptr || node_.is_none("start");
    const auto start = from_front ? SizeExpression(0) : model_.size(node_, "start");
    if (!part || !dim || !start || !step || step->constant() != std::int64_t{1} ||
        start->bounds(model_.ranges()).min < 0 || !is_along(*part, 1, *dim)) {
      return std::nullopt;
    }
    const SizeExpression count = model_.shape(node_.node().inputs[1])[*dim];
    if (*start == SizeExpression(0) && count == shape_[*dim]) return part;
    if (!self) return std::nullopt;
    Affine before = *integer_formula(rank(), SizeExpression(0) - *start).integer;
    before.factors[*dim] = 1;
    const Formula moved = substituted(*part, *dim, before);
    Affine behind = before;
    behind.rest = behind.rest - count + SizeExpression(1);
    const auto inside =
        both(at_most_zero(multiply(before, -1), space()), at_most_zero(std::move(behind), space()));
    return inside ? choice(choice_formula(*inside, 1, 0), moved, *self) : std::nullopt;
  }

  /// The larger or smaller one of two, if that is known.
  Found extreme(const Formula& a, const Formula& b, bool largest) {
    const auto left = as_integer(a, rank());
    const auto right = as_integer(b, rank());
    if (left && right) {
      const Condition order = at_most_zero(add(*left, *right, -1), space());
      if (!order.is_always() && !order.is_never()) return std::nullopt;
      return order.is_always() == largest ? b : a;
    }
    return join(as_choice(a), as_choice(b),
                largest ? Function([](double x, double y) { return std::max(x, y); })
                        : Function([](double x, double y) { return std::min(x, y); }));
  }
  Found bounded() {
    Found value = argument("self");
    if (!value) return std::nullopt;
    if (is_one_of({"maximum", "minimum"})) {
      const Found other = argument("other");
      return other ? extreme(*value, *other, name_ == "maximum") : std::nullopt;
    }
    for (const auto& [name, largest] : {std::pair{"min", true}, std::pair{"max", false}}) {
      if (node_.find(name) == nullptr || node_.is_none(name)) continue;
      const Found bound = argument(name);
      if (!bound) return std::nullopt;
      value = extreme(*value, *bound, largest);
      if (!value) return std::nullopt;
    }
    return value;
  }

  Found triangle() {
    const Found self = operand(0);
    const auto diagonal = model_.size(node_, "diagonal");
    if (!self || !diagonal || rank() < 2) return std::nullopt;
    Affine distance = *integer_formula(rank(), SizeExpression(0) - *diagonal).integer;
    const SizeExpression one(1);
    if (shape_[rank() - 1] != one) distance.factors[rank() - 1] = 1;
    if (shape_[rank() - 2] != one) distance.factors[rank() - 2] = -1;
    if (name_ == "triu") distance = multiply(distance, -1);
    return join(choice_formula(at_most_zero(distance, space()), 1, 0), as_choice(*self),
                [](double c, double x) { return is_true(c) ? x : 0; });
  }

  Found summed() {
    const Found self = operand(0);
    const auto number = self ? integral(*self) : std::nullopt;
    if (!number) return std::nullopt;
    const SizeShape& shape = model_.shape(node_.node().inputs[0]);
    if (name_ == "cumsum") {
      const auto dim = dimension("dim", shape.size());
      if (!dim) return std::nullopt;
      Formula result = integer_formula(rank(), *number);
      if (shape[*dim] != SizeExpression(1)) result.integer->factors[*dim] = *number;
      return result;
    }
    std::vector<std::int64_t> dims;
    if (node_.find("dim") != nullptr && !node_.is_none("dim")) dims = node_.integers("dim");
    SizeExpression count(1);
    for (std::size_t d = 0; d < shape.size(); ++d) {
      const auto place = static_cast<std::int64_t>(d);
      const bool is_reduced =
          dims.empty() || std::any_of(dims.begin(), dims.end(), [&](std::int64_t dim) {
            return dim == place || dim + static_cast<std::int64_t>(shape.size()) == place;
          });
      if (is_reduced) count = count * shape[d];
    }
    return integer_formula(rank(), SizeExpression(*number) * count);
  }

  Found indexed() {
    const Found self = operand(0);
    if (!self) return std::nullopt;
    if (self->number()) return constant_formula(*self->number());
    if (name_ != "index_select") return std::nullopt;
    const auto dim = dimension("dim", rank());
    const auto index = node_.tensor("index");
    if (!dim || !index || model_.shape(*index).size() != 1) return std::nullopt;
    const Found found = follower_.formula(*index);
    const auto place = found ? as_integer(*found, 1) : std::nullopt;
    if (!place) return std::nullopt;
    Affine along = *integer_formula(rank(), place->rest).integer;
    along.factors[*dim] = place->factors[0];
    return substituted(*self, *dim, along);
  }

  double (*unary() const)(double) {
    if (name_ == "neg") return [](double v) { return -v; };
    if (name_ == "abs") return [](double v) { return std::abs(v); };
    if (name_ == "isnan") return [](double v) { return std::isnan(v) ? 1.0 : 0.0; };
    if (name_ == "isinf") return [](double v) { return std::isinf(v) ? 1.0 : 0.0; };
    if (name_ == "logical_not" || (name_ == "bitwise_not" && is_bool())) {
      return [](double v) { return is_true(v) ? 0.0 : 1.0; };
    }
    return nullptr;
  }

  /// Ops whose result has the operand's elements at other places.
  Found rearranged() {
    if (name_ == "expand" || name_ == "broadcast_to") return argument("self");
    if (name_ == "repeat" && stretches(model_.shape(node_.node().inputs[0]), shape_)) {
      return argument("self");
    }
    if (is_one_of(
            {"reshape", "view", "_unsafe_view", "unsqueeze", "squeeze", "flatten", "unflatten"})) {
      return reshaped();
    }
    if (name_ == "permute" || name_ == "transpose" || name_ == "t") return permuted();
    if (name_ == "slice" || name_ == "narrow" || name_ == "select") return sliced();
    if (name_ == "cat" || name_ == "concat") return joined();
    return std::nullopt;
  }

  Found reshaped() {
    const Found self = operand(0);
    if (!self) return std::nullopt;
    const SizeShape& from = model_.shape(node_.node().inputs[0]);
    const SizeExpression one(1);
    std::vector<std::int32_t> place(from.size(), -1);
    std::size_t to = 0;
    for (std::size_t d = 0; d < from.size(); ++d) {
      if (from[d] == one) continue;
      while (to < rank() && shape_[to] == one) ++to;
      if (to == rank() || shape_[to] != from[d]) {
        place.assign(from.size(), -1);
        break;
      }
      place[d] = static_cast<std::int32_t>(to++);
    }
    return moved(*self, place, rank());
  }

  /// Two parts along a dimension, by which of them an index is in.
  Found joined() {
    const Found first = operand(0);
    const Found second = operand(1);
    const auto dim = dimension("dim", rank());
    if (!first || !second || !dim || node_.node().inputs.size() != 2) return std::nullopt;
    const SizeExpression begin = model_.shape(node_.node().inputs[0])[*dim];
    // Of one element a part has no factor along the dimension, which is the one that it is at.
    if (!is_along(*first, 0, *dim) || !is_along(*second, 1, *dim)) return std::nullopt;
    Affine behind = *integer_formula(rank(), SizeExpression(0) - begin).integer;
    behind.factors[*dim] = 1;
    const Formula rest = substituted(*second, *dim, behind);
    const auto left = as_integer(*first, rank());
    const auto right = as_integer(rest, rank());
    if (left && right) return *left == *right ? Found(Formula{.integer = *left}) : std::nullopt;
    Affine within = behind;
    within.rest = within.rest + SizeExpression(1);
    const Formula is_first = choice_formula(at_most_zero(std::move(within), space()), 1, 0);
    const Formula a = as_choice(*first);
    const Formula b = as_choice(rest);
    if (const auto number = a.number()) {
      return join(is_first, b, [&](double c, double x) { return is_true(c) ? *number : x; });
    }
    if (const auto number = b.number()) {
      return join(is_first, a, [&](double c, double x) { return is_true(c) ? x : *number; });
    }
    return std::nullopt;
  }
  /// Whether a part has rows of its own along a dimension, or is the same all along it.
  bool is_along(const Formula& part, std::size_t operand, std::size_t dim) const {
    const bool is_single = model_.shape(node_.node().inputs[operand])[dim] == SizeExpression(1);
    return !is_single || part.number().has_value();
  }

  Found permuted() {
    Found self = operand(0);
    if (!self) return std::nullopt;
    std::vector<std::int32_t> place(rank(), -1);
    if (name_ == "permute") {
      const std::vector<std::int64_t> dims = node_.integers("dims");
      if (dims.size() != rank()) return std::nullopt;
      for (std::size_t d = 0; d < rank(); ++d) {
        const std::int64_t from = dims[d] < 0 ? dims[d] + std::ssize(dims) : dims[d];
        place.at(npu::index_of(from)) = static_cast<std::int32_t>(d);
      }
    } else {
      for (std::size_t d = 0; d < rank(); ++d) place[d] = static_cast<std::int32_t>(d);
      if (rank() < 2) return self;
      const auto first = name_ == "t" ? 0 : dimension("dim0", rank());
      const auto second = name_ == "t" ? 1 : dimension("dim1", rank());
      if (!first || !second) return std::nullopt;
      std::swap(place[*first], place[*second]);
    }
    return moved(*self, place, rank());
  }

  Found sliced() {
    const Found self = operand(0);
    if (!self) return std::nullopt;
    const SizeShape& from = model_.shape(node_.node().inputs[0]);
    const auto dim = dimension("dim", from.size());
    const bool selects = name_ == "select";
    const char* key = selects ? "index" : "start";
    const bool from_front = node_.find(key) == nullptr || node_.is_none(key);
    auto start = from_front ? SizeExpression(0) : model_.size(node_, key);
    const auto step =
        node_.find("step") == nullptr ? SizeExpression(1) : model_.size(node_, "step");
    if (!dim || !start || !step || step->constant() != std::int64_t{1}) return std::nullopt;
    if (start->bounds(model_.ranges()).max < 0) start = *start + from[*dim];
    // It begins there; the result says where it ends.
    const SizeExpression count = selects ? SizeExpression(1) : shape_[*dim];
    if (start->bounds(model_.ranges()).min < 0) return std::nullopt;
    Affine along = *integer_formula(from.size(), *start).integer;
    if (count != SizeExpression(1)) along.factors[*dim] = 1;
    Formula cut = substituted(*self, *dim, along);
    if (!selects) return cut;
    std::vector<std::int32_t> place(from.size());
    for (std::size_t d = 0; d < from.size(); ++d) {
      place[d] = d == *dim ? -1 : static_cast<std::int32_t>(d < *dim ? d : d - 1);
    }
    return moved(cut, place, rank());
  }

  PastFollower& follower_;
  const PastModel& model_;
  const BoundNode& node_;
  TensorId result_;
  const SizeShape& shape_;
  std::string_view name_;
};

}  // namespace

const std::optional<Formula>& PastFollower::formula(TensorId id) {
  const auto known = known_.find(id.value);
  if (known != known_.end()) return known->second;
  known_.emplace(id.value, std::nullopt);
  Found found = find(id);
  return known_[id.value] = std::move(found);
}

std::optional<Formula> PastFollower::find(TensorId id) {
  const TensorInfo& tensor = model_.graph().tensor(id);
  const std::size_t rank = tensor.shape.size();
  if (id == inputs_.mask) return constant_formula(1);
  if (id == inputs_.start) return integer_formula(rank, model_.caches().past);
  if (id == inputs_.positions) {
    Formula result = integer_formula(rank, model_.caches().past);
    if (model_.caches().fresh != SizeExpression(1)) result.integer->factors.back() = 1;
    return result;
  }
  const bool is_float = is_floating_point(tensor.dtype);
  if (tensor.kind == TensorKind::kWeight) {
    const auto values = model_.constant(id);
    if (!values) return std::nullopt;
    return constant_formula(*values, tensor.shape, !is_float && tensor.dtype != DType::kBool);
  }
  if (!tensor.producer.valid()) return std::nullopt;
  const Node& node = model_.graph().node(tensor.producer);
  const OpInfo* op = find_op(node.op_type);
  if (op == nullptr || node.outputs.size() != 1) return std::nullopt;
  BindError error;
  const auto bound = BoundNode::try_bind(model_.graph(), node, op->schema, error);
  if (!bound) return std::nullopt;
  Found found = NodeFormula(*this, model_, *bound).find();
  if (found && found->when.atoms.size() > 1) {
    found->when.atoms =
        needed_atoms(found->when.atoms, {model_.shape(node.outputs.front()), model_.ranges()});
  }
  return found;
}

}  // namespace npu::states
