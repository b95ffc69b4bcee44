// SPDX-License-Identifier: Apache-2.0
// What drawing and computing a node has in common for all ops: values, arguments, operands, rows.
// common_ops.cpp has the ops themselves. Without a thought for speed.
#include "conformance/oracle/op_oracle.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "npu/support/error.hpp"
#include "npu/support/ids.hpp"
#include "ops/op_catalogue.hpp"
#include "ops/op_name.hpp"

namespace npu::conformance {
namespace {

std::size_t offset_of(const Shape& shape, const Shape& place) {
  std::int64_t offset = 0;
  for (std::size_t d = 0; d < shape.size(); ++d) offset = offset * shape[d] + place[d];
  return index_of(offset);
}

}  // namespace

void refuse(const std::string& text) { throw Error(ErrorCode::kInvalidGraph, text); }

// ---- Values ----

std::int64_t Values::extent(std::int64_t dim) const {
  return shape.at(index_of(dim < 0 ? dim + rank() : dim));
}
namespace {

// Operands that do not go together may lead anywhere.
std::size_t checked_offset(const Shape& shape, const Shape& place) {
  const auto is_within = [](std::int64_t index, std::int64_t extent) {
    return index >= 0 && index < extent;
  };
  if (!std::equal(place.begin(), place.end(), shape.begin(), shape.end(), is_within)) {
    refuse("the place " + shape_text(place) + " is not in " + shape_text(shape));
  }
  return offset_of(shape, place);
}

}  // namespace

Bounded& Values::at(const Shape& place) { return data[checked_offset(shape, place)]; }
const Bounded& Values::at(const Shape& place) const { return data[checked_offset(shape, place)]; }

std::int64_t count_of(const Shape& shape) {
  std::int64_t count = 1;
  for (const std::int64_t extent : shape) count *= extent;
  return count;
}

Values make_values(const Shape& shape, DType dtype) {
  constexpr std::int64_t kMost = 1 << 20;
  std::int64_t count = 1;
  for (const std::int64_t extent : shape) {
    if (extent < 0 || extent > kMost) refuse("no shape: " + shape_text(shape));
    count *= std::max<std::int64_t>(extent, 1);
    if (count > kMost) refuse("too large: " + shape_text(shape));
  }
  return {shape, dtype, std::vector<Bounded>(index_of(count_of(shape)))};
}

Values values_of(const Tensor& tensor) {
  Values values{tensor.shape(), tensor.dtype(), {}};
  values.data.reserve(index_of(tensor.element_count()));
  for (std::int64_t i = 0; i < tensor.element_count(); ++i) {
    values.data.push_back({tensor.value_as_double(i), 0});
  }
  return values;
}

const Bounded& broadcast_at(const Values& operand, const Shape& place) {
  std::int64_t offset = 0;
  const std::size_t skip = place.size() - operand.shape.size();
  for (std::size_t d = 0; d < operand.shape.size(); ++d) {
    offset = offset * operand.shape[d] + (operand.shape[d] == 1 ? 0 : place[skip + d]);
  }
  return operand.data[index_of(offset)];
}

Shape broadcast_shape(std::initializer_list<const Shape*> shapes) {
  std::size_t rank = 0;
  for (const Shape* shape : shapes) rank = std::max(rank, shape->size());
  Shape result(rank, 1);
  for (const Shape* shape : shapes) {
    for (std::size_t d = 0; d < shape->size(); ++d) {
      std::int64_t& extent = result[rank - shape->size() + d];
      if (extent != 1 && (*shape)[d] != 1 && extent != (*shape)[d]) refuse("shapes differ");
      if (extent == 1) extent = (*shape)[d];
    }
  }
  return result;
}

// ---- Arguments ----

Call::Call(std::string_view op_type, std::vector<const Values*> operands, const Json& attrs)
    : op_(op_type), operands_(std::move(operands)) {
  const OpInfo* info = find_op(op_type);
  if (info == nullptr) refuse("no schema of " + op_);
  schema_ = &info->schema;
  name_ = functional_name(info->op_type);
  if (name_.empty()) name_ = base_name(info->op_type);
  std::vector<OperandInfo> infos;
  for (const Values* operand : operands_) infos.push_back({operand->dtype, &operand->shape});
  const auto error = bind_arguments(*schema_, infos, attrs, bound_);
  if (error) refuse(op_ + ": " + error->argument + " " + error->text);
}

const BoundArgument* Call::argument(std::string_view name) const {
  for (std::size_t i = 0; i < bound_.size(); ++i) {
    if (schema_->arguments[i].name == name) return &bound_[i];
  }
  return nullptr;
}

const Values* Call::find(std::string_view name) const {
  const BoundArgument* bound = argument(name);
  if (bound == nullptr || bound->kind != BoundArgument::Kind::kTensor) return nullptr;
  return operands_.at(index_of(bound->inputs.at(0)));
}

const Values& Call::tensor(std::string_view name) const {
  const Values* found = find(name);
  if (found == nullptr) refuse(op_ + " has no tensor '" + std::string(name) + "'");
  return *found;
}

std::vector<const Values*> Call::tensors(std::string_view name) const {
  std::vector<const Values*> list;
  const BoundArgument* bound = argument(name);
  if (bound == nullptr) refuse(op_ + " has no '" + std::string(name) + "'");
  for (const std::int32_t input : bound->inputs) {
    list.push_back(input < 0 ? nullptr : operands_.at(index_of(input)));
  }
  return list;
}

Values Call::tensor_or_number(std::string_view name, DType dtype) const {
  if (const Values* found = find(name)) return *found;
  Values values = make_values({}, dtype);
  Bounded& one = values.data[0];
  one.value = number(name);
  if (!is_floating_point(dtype) || dtype == DType::kFloat64) return values;
  // Devices keep constants in float32 or in the dtype, or with all digits.
  Tensor rounded(dtype, {});
  set_element(rounded, 0, one.value);
  if (rounded.value_as_double(0) != one.value && std::isfinite(one.value)) {
    one.error = 2 * std::abs(rounded.value_as_double(0) - one.value);
  }
  return values;
}

bool Call::has(std::string_view name) const {
  const BoundArgument* bound = argument(name);
  if (bound == nullptr || bound->kind == BoundArgument::Kind::kNone) return false;
  return bound->kind != BoundArgument::Kind::kValue || !bound->value.is_null();
}

double Call::number(std::string_view name) const {
  const BoundArgument* bound = argument(name);
  const auto value = bound != nullptr ? json_number(bound->value) : std::nullopt;
  if (!value) refuse(op_ + " has no number '" + std::string(name) + "'");
  return *value;
}
double Call::number_or(std::string_view name, double otherwise) const {
  const BoundArgument* bound = argument(name);
  return bound == nullptr ? otherwise : json_number(bound->value).value_or(otherwise);
}
std::int64_t Call::integer(std::string_view name) const {
  const double value = number(name);  // the end of a slice may be the largest int64
  return value >= 0x1p63 ? INT64_MAX : static_cast<std::int64_t>(value);
}
bool Call::boolean(std::string_view name) const { return number_or(name, 0) != 0; }
std::string Call::text(std::string_view name) const {
  const BoundArgument* bound = argument(name);
  return bound == nullptr || !bound->value.is_string() ? "" : bound->value.get<std::string>();
}

std::vector<double> Call::numbers(std::string_view name) const {
  const BoundArgument* bound = argument(name);
  if (bound == nullptr) refuse(op_ + " has no '" + std::string(name) + "'");
  std::vector<double> list;
  if (bound->value.is_number()) {
    for (const SchemaArgument& entry : schema_->arguments) {
      if (entry.name == name) list.assign(index_of(std::max(entry.list_size, 1)), number(name));
    }
  }
  if (bound->value.is_array()) {
    for (const Json& value : bound->value) list.push_back(json_number(value).value_or(0));
  }
  return list;
}

Shape Call::integers(std::string_view name) const {
  Shape list;
  for (const double value : numbers(name)) list.push_back(static_cast<std::int64_t>(value));
  return list;
}

DType Call::dtype_or(std::string_view name, DType otherwise) const {
  return parse_dtype(text(name)).value_or(otherwise);
}

std::int64_t Call::dim(std::string_view name, std::int64_t rank) const {
  const std::int64_t dim = integer(name);
  if (dim < -rank || dim >= rank) refuse(op_ + " has no dimension " + std::to_string(dim));
  return dim < 0 ? dim + rank : dim;
}

// ---- Drawing ----

std::int64_t NodeDraw::pick(std::int64_t least, std::int64_t most) {
  return least + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(most - least + 1));
}

std::int64_t NodeDraw::extent(std::int64_t most) {
  if (may_be_empty && pick(0, 39) == 0) return 0;
  constexpr std::int64_t kExtents[] = {1, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 33};
  std::int64_t last = std::ssize(kExtents) - 1;
  while (kExtents[last] > most) --last;
  return kExtents[pick(0, last)];
}

Shape NodeDraw::shape(std::int64_t least_rank, std::int64_t most_rank, std::int64_t most_elements) {
  Shape shape;
  const std::int64_t rank = pick(least_rank, most_rank);
  for (std::int64_t i = 0; i < rank; ++i) {
    std::int64_t drawn = extent();
    if (count_of(shape) * drawn > most_elements) drawn = 1;
    shape.push_back(drawn);
  }
  return shape;
}

double NodeDraw::number() {
  if (chance(60)) {
    return one_of({0.5, 2.0, -1.0, 0.3, 0.4, 1.0, 0.0, -0.75, 3.0, 0.1, 6.0, 1.0 / 3.0, -2.0});
  }
  return static_cast<double>(pick(-400, 400)) / 128.0 + 1.0 / 1024.0;
}

Shape NodeDraw::subject(std::int64_t least_rank, std::int64_t most_rank, Fill fill,
                        const std::function<bool(const Shape&)>& wanted, const Shape& otherwise) {
  DrawnOperand operand{.shape = {}, .dtype = dtype, .fill = fill};
  const bool found = find && find(operand, [&](const Shape& shape) {
                       return std::ssize(shape) >= least_rank && std::ssize(shape) <= most_rank &&
                              (!wanted || wanted(shape));
                     });
  if (!found) {
    operand.shape = otherwise;
    for (int i = 0; otherwise.empty() && i < 100; ++i) {
      operand.shape = shape(least_rank, most_rank);
      if (!wanted || wanted(operand.shape)) break;
    }
  }
  operands.push_back(operand);
  return operand.shape;
}

void NodeDraw::beside(const Shape& shape, std::int64_t percent, Fill fill) {
  beside(DrawnOperand{.shape = shape, .dtype = dtype, .fill = fill}, percent);
}

void NodeDraw::beside(DrawnOperand operand, std::int64_t percent) {
  operand.is_weight = chance(percent);
  const Shape wanted = operand.shape;
  if (!operand.is_weight && find && chance(60)) {
    find(operand, [&](const Shape& shape) { return shape == wanted; });
  }
  operands.push_back(std::move(operand));
}

void NodeDraw::indices(const Shape& shape, std::int64_t limit, bool is_signed, DType type) {
  beside({.shape = shape,
          .dtype = type,
          .fill = Fill::kIndices,
          .limit = std::max<std::int64_t>(limit, 1),
          .is_signed = is_signed},
         50);
}

Shape NodeDraw::broadcast_to(const Shape& shape) {
  const std::int64_t kind = pick(0, 9);
  if (kind <= 2) return shape;
  if (kind == 3) return {};
  if (kind == 4) return Shape(shape.size(), 1);
  Shape result = shape;
  if (kind <= 6 && shape.size() > 1) {  // by channel
    std::fill(result.begin(), result.end(), 1);
    result[1] = shape[1];
    if (chance(50)) result.erase(result.begin());
  } else if (kind == 7 && shape.size() > 2) {  // by pixel
    result[0] = result[1] = 1;
    if (chance(50)) result.erase(result.begin(), result.begin() + 2);
  } else {
    for (std::int64_t& one : result) {
      if (chance(30)) one = 1;
    }
    if (chance(50)) {
      result.erase(result.begin(), result.begin() + pick(0, std::ssize(shape)));
    }
  }
  return result;
}

// ---- Rows ----

const OpRow* find_row(std::span<const OpRow> rows, std::string_view op_type) {
  std::string_view full = op_type;
  if (full.starts_with(kAtenPrefix)) full.remove_prefix(kAtenPrefix.size());
  const std::string_view base = full != op_type       ? functional_name(op_type)
                                : op_type == kGetitem ? "getitem"
                                                      : base_name(op_type);
  for (const OpRow& row : rows) {
    for (std::string_view rest = row.names; !rest.empty();) {
      const std::string_view name = rest.substr(0, rest.find(' '));
      if (name == full || name == base) return &row;
      rest.remove_prefix(std::min(rest.size(), name.size() + 1));
    }
  }
  return nullptr;
}

std::vector<Values> evaluate(const OpRow& row, const Call& call) {
  bool has_floats = false;
  for (std::size_t i = 0; i < call.operand_count(); ++i) {
    has_floats = has_floats || is_floating_point(call.operand(i).dtype);
  }
  std::optional<Rounding> exact;
  const Arithmetic integers = Rounding::exact();
  if (!has_floats) exact.emplace(integers);
  std::vector<Values> results = row.evaluate(call);
  exact.reset();
  if (row.rounds == OpRow::Rounds::kResults) {
    for (Values& values : results) store(values);
  }
  return results;
}

void store(Values& values) {
  const Arithmetic& by = Rounding::now();
  const bool is_float = is_floating_point(values.dtype);
  const double bits = 8.0 * static_cast<double>(dtype_size(values.dtype));
  for (Bounded& element : values.data) {
    if (is_float) {
      if (!std::isfinite(element.value) || values.dtype == DType::kFloat64) continue;
      // What is rounded may be off already.
      element.error += by.stored * (std::abs(element.value) + element.error) + by.least;
      if (std::abs(element.value) + element.error > by.most) element.error = anything().error;
    } else if (is_integer(values.dtype) && std::abs(element.value) > 0x1p53) {
      element = anything();  // doubles do not hold it
    } else if (is_integer(values.dtype) && bits < 64) {
      const double least =
          values.dtype == DType::kUInt8 ? 0 : -std::ldexp(1, static_cast<int>(bits) - 1);
      const double span = std::ldexp(1, static_cast<int>(bits));
      element.value -= span * std::floor((element.value - least) / span);
    }
  }
}

const UnaryFunction& find_function(std::span<const UnaryFunction> functions,
                                   std::string_view name) {
  for (const UnaryFunction& function : functions) {
    if (function.name == name) return function;
  }
  refuse("no function " + std::string(name));
}

std::vector<Values> apply_to_all(const UnaryFunction& function, const Call& call) {
  const double a = call.number_or(function.a, function.missing_a);
  const double b = call.number_or(function.b, function.missing_b);
  Values result = call.operand(0);
  const auto f = [&](double x) { return function.function(x, a, b); };
  for (Bounded& x : result.data) {
    const double cancelled = function.kind == UnaryFunction::kBesideOne    ? 1
                             : function.kind == UnaryFunction::kBesideSelf ? std::abs(x.value)
                                                                           : 0;
    x = function.kind == UnaryFunction::kExact ? exactly(f, x) : apply(f, x, cancelled);
  }
  return {result};
}

Values zip(const Values& a, const Values& b, DType dtype,
           const std::function<Bounded(Bounded, Bounded)>& function) {
  Values result = make_values(broadcast_shape({&a.shape, &b.shape}), dtype);
  for_each_place(result.shape, [&](std::size_t i, const Shape& place) {
    result.data[i] = function(broadcast_at(a, place), broadcast_at(b, place));
  });
  return result;
}

Values DrawnNode::evaluate(const std::vector<Values>& values) const {
  std::vector<const Values*> list;
  for (const Values& value : values) list.push_back(&value);
  return conformance::evaluate(*find_row(common_ops(), op), Call(op, list, attrs)).front();
}

// Some draws name what does not exist, such as the maximum of nothing.
DrawnNode draw_node(const OpDefinition& definition, Random& random, DType dtype) {
  for (;;) {
    NodeDraw draw(random, definition.name, dtype);
    find_row(common_ops(), draw.op)->draw(draw);
    DrawnNode node{.op = draw.op, .operands = {}, .result = {}, .attrs = draw.attrs};
    try {
      std::vector<Values> zeros;
      for (const DrawnOperand& operand : draw.operands) {
        node.operands.push_back(operand.shape);
        zeros.push_back(make_values(operand.shape, dtype));
      }
      node.result = node.evaluate(zeros).shape;
      return node;
    } catch (const Error&) {
      continue;
    }
  }
}

}  // namespace npu::conformance
