// SPDX-License-Identifier: Apache-2.0
// What ops are by definition: drawn at random and computed in double precision with bounds
// (bounded.hpp), by slow loops that share nothing with a backend. The vendor's check draws the ops
// that nearly every model has; the tests of this repository add rows for all others and draw whole
// networks.
#pragma once

#include <functional>
#include <initializer_list>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/harness/graph_spec.hpp"
#include "conformance/oracle/bounded.hpp"
#include "ops/schema.hpp"

namespace npu::conformance {

/// Row-major, in double precision whatever the dtype.
struct Values {
  Shape shape;
  DType dtype = DType::kFloat32;
  std::vector<Bounded> data = {};

  std::int64_t rank() const noexcept { return std::ssize(shape); }
  std::int64_t extent(std::int64_t dim) const;
  Bounded& at(const Shape& place);
  const Bounded& at(const Shape& place) const;
};

/// Throws Error kInvalidGraph: operands that an op does not take.
[[noreturn]] void refuse(const std::string& text);
std::int64_t count_of(const Shape& shape);
/// All 0. Throws Error kInvalidGraph for a negative extent, or more elements than tests need.
Values make_values(const Shape& shape, DType dtype);
Values values_of(const Tensor& tensor);
/// Calls `visit(index, place)` for every element in row-major order.
template <typename Visit>
void for_each_place(const Shape& shape, const Visit& visit) {
  Shape place(shape.size(), 0);
  const std::int64_t count = count_of(shape);
  for (std::int64_t i = 0; i < count; ++i) {
    visit(static_cast<std::size_t>(i), place);
    for (std::size_t d = shape.size(); d-- > 0;) {
      if (++place[d] < shape[d]) break;
      place[d] = 0;
    }
  }
}
/// The element of an operand that broadcasts to `place` of a result.
const Bounded& broadcast_at(const Values& operand, const Shape& place);
/// That of several operands. Throws Error kInvalidGraph if they do not broadcast.
Shape broadcast_shape(std::initializer_list<const Shape*> shapes);

/// An op with operands and attributes, by the names of its schema.
class Call {
 public:
  /// Throws Error kInvalidGraph if they do not fit the schema. The operands outlive it.
  Call(std::string_view op_type, std::vector<const Values*> operands, const Json& attrs);

  const std::string& op() const noexcept { return op_; }
  /// "conv2d", whatever the overload and also in place.
  std::string_view name() const noexcept { return name_; }
  bool is(std::string_view text) const { return op_.find(text) != std::string::npos; }
  std::size_t operand_count() const noexcept { return operands_.size(); }
  const Values& operand(std::size_t index) const { return *operands_.at(index); }
  /// Null if there is none.
  const Values* find(std::string_view argument) const;
  const Values& tensor(std::string_view argument) const;
  std::vector<const Values*> tensors(std::string_view argument) const;  ///< null: None
  /// A tensor, or a number of this dtype in its place.
  Values tensor_or_number(std::string_view argument, DType dtype) const;
  /// Whether it was given, or has a default, that is not None.
  bool has(std::string_view argument) const;
  double number(std::string_view argument) const;
  double number_or(std::string_view argument, double otherwise) const;
  std::int64_t integer(std::string_view argument) const;
  bool boolean(std::string_view argument) const;
  std::string text(std::string_view argument) const;
  Shape integers(std::string_view argument) const;
  std::vector<double> numbers(std::string_view argument) const;
  DType dtype_or(std::string_view argument, DType otherwise) const;
  /// A dimension counted from 0.
  std::int64_t dim(std::string_view argument, std::int64_t rank) const;

 private:
  const BoundArgument* argument(std::string_view name) const;
  std::string op_;
  std::string_view name_;
  const Schema* schema_;
  std::vector<const Values*> operands_;
  std::vector<BoundArgument> bound_;
};

using Random = std::mt19937_64;

/// What an operand holds that is made for a node.
enum class Fill : std::uint8_t {
  kAny,
  kPositive,  ///< from 0.1 on
  kNotZero,   ///< 0.2 or more apart from 0
  kIndices,   ///< from 0 on, or from -limit on where `is_signed`, and below `limit`
};

struct DrawnOperand {
  Shape shape;
  DType dtype = DType::kFloat32;
  Fill fill = Fill::kAny;
  std::int64_t limit = 2;
  bool is_signed = false;
  bool is_weight = false;
  std::int32_t existing = -1;  ///< the tensor of the network that it is
};

/// A node that is drawn.
class NodeDraw {
 public:
  NodeDraw(Random& source, std::string op_type, DType of)
      : random(source), op(std::move(op_type)), dtype(of) {}

  Random& random;
  std::string op;
  DType dtype;
  Json attrs = Json::object();
  std::vector<DrawnOperand> operands = {};
  /// Fills in an existing tensor that `wanted` is content with and that has the dtype and fill
  /// asked for; null: there is nothing but the node.
  std::function<bool(DrawnOperand&, const std::function<bool(const Shape&)>& wanted)> find = {};
  bool may_be_empty = true;

  std::int64_t pick(std::int64_t least, std::int64_t most);
  bool chance(std::int64_t percent) { return pick(0, 99) < percent; }
  template <typename T>
  T one_of(std::initializer_list<T> values) {
    return values.begin()[pick(0, std::ssize(values) - 1)];
  }
  /// Extents at the edges: 0, 1, odd ones, and those just off a vector's.
  std::int64_t extent(std::int64_t most = 33);
  Shape shape(std::int64_t least_rank, std::int64_t most_rank, std::int64_t most_elements = 2048);
  /// A constant of an element-wise op.
  double number();
  bool is_float() const { return is_floating_point(dtype); }

  /// Adds the operand that the node is about; an existing one if any will do.
  Shape subject(std::int64_t least_rank, std::int64_t most_rank, Fill fill = Fill::kAny,
                const std::function<bool(const Shape&)>& wanted = {}, const Shape& otherwise = {});
  /// Adds another one, in `percent` of all cases a constant.
  void beside(const Shape& shape, std::int64_t percent = 50, Fill fill = Fill::kAny);
  void beside(DrawnOperand operand, std::int64_t percent);
  /// Indices below `limit`.
  void indices(const Shape& shape, std::int64_t limit, bool is_signed = false,
               DType type = DType::kInt64);
  /// A shape that broadcasts to `shape`: scalar, by channel, by pixel, whole or any.
  Shape broadcast_to(const Shape& shape);
};

/// One or more ops with their definition, and how a node of them is drawn.
struct OpRow {
  /// What a device may round.
  enum class Rounds : std::uint8_t { kResults, kNothing };
  std::string_view names;  ///< "relu clamp max.dim": without "aten.", with or without overload
  void (*draw)(NodeDraw&);
  std::vector<Values> (*evaluate)(const Call&);
  Rounds rounds = Rounds::kResults;
};

/// Of `rows` the one for an op; null if there is none.
const OpRow* find_row(std::span<const OpRow> rows, std::string_view op_type);
/// What the op gives. Throws Error kInvalidGraph for operands that the op does not take.
std::vector<Values> evaluate(const OpRow& row, const Call& call);
/// As a device stores it: with the rounding of floats, and integers that wrap around.
void store(Values& values);

/// A function of one number with up to two attributes, `a` and `b`.
struct UnaryFunction {
  enum Kind : std::uint8_t {
    kExact,
    kRounded,
    kBesideOne,   ///< its formula may cancel what is as large as 1
    kBesideSelf,  ///< or as its operand
  };
  std::string_view name;
  Kind kind;
  double (*function)(double x, double a, double b);
  std::string_view a = {};
  std::string_view b = {};
  double missing_a = 0;  ///< where `a` is None
  double missing_b = 0;
};
/// One as an expression of x, a and b.
#define NPU_FUNCTION(...)                                                        \
  [](double x, [[maybe_unused]] double a, [[maybe_unused]] double b) -> double { \
    return __VA_ARGS__;                                                          \
  }
/// The one of that name. Throws Error kInvalidGraph if there is none.
const UnaryFunction& find_function(std::span<const UnaryFunction> functions, std::string_view name);
std::vector<Values> apply_to_all(const UnaryFunction& function, const Call& call);
/// Calls `function` for all elements of operands that broadcast.
Values zip(const Values& a, const Values& b, DType dtype,
           const std::function<Bounded(Bounded, Bounded)>& function);
/// The sum over all labels that `result` lacks, as einsum writes it: "mk,kn->mn". Extents of 1
/// broadcast.
Values contract(const Values& a, std::string_view a_labels, const Values& b,
                std::string_view b_labels, std::string_view result_labels);

/// Element-wise ops, products, sums, convolutions and copies: what nearly every model has.
std::span<const OpRow> common_ops();

/// An op of the vendor's check.
struct OpDefinition {
  std::string name;
  bool takes_integers = false;
  bool takes_unsigned = false;
};
const std::vector<OpDefinition>& op_definitions();
/// A node of one of them, of operands of its own.
struct DrawnNode {
  std::string op;
  std::vector<Shape> operands;
  Shape result;
  Json attrs = Json::object();

  Values evaluate(const std::vector<Values>& values) const;
};
DrawnNode draw_node(const OpDefinition& definition, Random& random, DType dtype);

}  // namespace npu::conformance
