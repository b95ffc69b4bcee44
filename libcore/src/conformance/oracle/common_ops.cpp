// SPDX-License-Identifier: Apache-2.0
// The ops that nearly every model has: how a node of each is drawn, and what it gives.
#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "conformance/oracle/op_oracle.hpp"
#include "conformance/oracle/reduce.hpp"
#include "npu/support/error.hpp"
#include "npu/support/ids.hpp"
#include "ops/op_name.hpp"

namespace npu::conformance {
namespace {

using Rows = std::vector<Values>;

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

const UnaryFunction kFunctions[] = {
    {"relu", UnaryFunction::kExact, NPU_FUNCTION(x < 0 ? 0 : x)},
    {"neg", UnaryFunction::kExact, NPU_FUNCTION(-x)},
    {"abs", UnaryFunction::kExact, NPU_FUNCTION(std::abs(x))},
    {"exp", UnaryFunction::kRounded, NPU_FUNCTION(std::exp(x))},
    {"sqrt", UnaryFunction::kRounded, NPU_FUNCTION(std::sqrt(x))},
    {"tanh", UnaryFunction::kRounded, NPU_FUNCTION(std::tanh(x))},
    {"sigmoid", UnaryFunction::kRounded, NPU_FUNCTION(sigmoid(x))},
    {"silu", UnaryFunction::kRounded,
     NPU_FUNCTION(std::isinf(x) && x < 0 ? double{NAN} : x * sigmoid(x))},
    {"gelu", UnaryFunction::kBesideSelf, NPU_FUNCTION(0.5 * x * std::erfc(-x * M_SQRT1_2))},
    // 1 + tanh(u) is 2 sigmoid(2u), of which nothing cancels.
    {"gelu tanh", UnaryFunction::kBesideSelf,
     NPU_FUNCTION(sigmoid(2 * M_2_SQRTPI * M_SQRT1_2 * (x + 0.044715 * x * x * x)) * x)}};

void draw_function(NodeDraw& d) {
  if (functional_name(d.op) == "gelu" && d.chance(50)) d.attrs = {{"approximate", "tanh"}};
  d.subject(0, 5, functional_name(d.op) == "sqrt" ? Fill::kPositive : Fill::kAny);
}

Rows common_function(const Call& call) {
  const bool by_tanh = call.text("approximate") == "tanh";
  return apply_to_all(find_function(kFunctions, by_tanh ? "gelu tanh" : call.name()), call);
}

/// add, sub, mul and so on; the other operand is a tensor that broadcasts, either way, or a number.
void draw_arithmetic(NodeDraw& d) {
  const bool in_place = base_name(d.op).ends_with('_');
  const bool divides = d.op.find("div") != std::string::npos;
  const Fill fill = divides ? Fill::kNotZero : Fill::kAny;
  const bool has_alpha =
      d.op.find("mul") == std::string::npos && !divides && d.op.find("imum") == std::string::npos;
  if (has_alpha && d.chance(10)) d.attrs["alpha"] = d.is_float() ? Json(d.number()) : Json(2);
  const Shape shape = d.subject(0, 5);
  const bool is_tensor = d.op.find(".Tensor") != std::string::npos;
  if (d.op.ends_with(".Scalar") || (is_tensor && !d.op.starts_with("aten.r") && d.chance(25))) {
    double number = d.is_float() ? d.number() : static_cast<double>(d.pick(2, 5));
    if (divides && std::abs(number) < 0.05) number = 1.5;
    d.attrs["other"] = number;
    if (!d.is_float()) d.attrs["other"] = static_cast<std::int64_t>(number);
    return;
  }
  Shape other = d.broadcast_to(shape);
  if (!in_place && d.chance(10)) {  // it is larger than the subject
    other = shape;
    for (std::int64_t& extent : other) extent = extent == 1 ? d.extent(9) : extent;
    if (other.size() < 4) other.insert(other.begin(), d.pick(1, 3));
  }
  d.beside(other, 60, fill);
  // Divisors that there are may be 0.
  if (!in_place && !divides && d.chance(30)) std::swap(d.operands[0], d.operands[1]);
}

Rows arithmetic(const Call& call) {
  const bool is_tensor_first = call.find("self") != nullptr;
  Values a = is_tensor_first ? call.tensor("self") : call.operand(0);
  DType dtype = a.dtype;
  Values b = call.tensor_or_number("other", dtype);
  const bool is_integer_tensor = call.find("other") != nullptr && !is_floating_point(b.dtype);
  if (is_floating_point(b.dtype) && !is_floating_point(dtype)) dtype = b.dtype;
  if (!is_integer_tensor && !is_floating_point(dtype) && b.data.size() == 1 &&
      b.data[0].value != std::floor(b.data[0].value)) {
    dtype = DType::kFloat32;
  }
  const std::string_view name = call.name();
  if (name == "div" && !is_floating_point(dtype)) dtype = DType::kFloat32;
  if (call.has("alpha") && call.number("alpha") != 1) {
    Values& scaled = name == "rsub" ? a : b;
    const Bounded alpha = call.tensor_or_number("alpha", dtype).data[0];
    for (Bounded& element : scaled.data) element = element * alpha;
  }
  const auto function = [&](Bounded x, Bounded y) {
    if (name == "add") return x + y;
    if (name == "sub") return x - y;
    if (name == "rsub") return y - x;
    if (name == "mul") return x * y;
    if (name == "div") return x / y;
    return name == "maximum" ? larger(x, y) : smaller(x, y);
  };
  return {zip(a, b, dtype, function)};
}

void draw_reduction(NodeDraw& d) {
  const Shape shape = d.subject(1, 5);
  if (d.op.ends_with(".default") && d.op.find(".am") == std::string::npos) return;
  std::vector<std::int64_t> dims;
  for (std::int64_t i = 0; i < std::ssize(shape); ++i) {
    if (d.chance(45)) dims.push_back(d.chance(30) ? i - std::ssize(shape) : i);
  }
  // Extrema of nothing are refused, and there is more than one idea of no dimensions.
  if (dims.empty()) dims.push_back(std::ssize(shape) - 1);
  d.attrs = {{"dim", dims}, {"keepdim", d.chance(50)}};
}

Rows reduction(const Call& call) {
  const std::string_view name = call.name();
  const Values& x = call.tensor("self");
  const bool sums = name == "sum" && !is_floating_point(x.dtype);
  const DType dtype = call.dtype_or("dtype", sums ? DType::kInt64 : x.dtype);
  const auto fold = [&](std::span<const Bounded> elements) {
    if (name == "amax" || name == "amin") {
      if (elements.empty()) throw Error(ErrorCode::kInvalidGraph, "an extremum of nothing");
      Bounded best = elements[0];
      for (const Bounded element : elements) {
        best = name == "amax" ? larger(best, element) : smaller(best, element);
      }
      return best;
    }
    Sum sum;
    for (const Bounded element : elements) sum.add(element);
    const Bounded count{static_cast<double>(elements.size()), 0};
    return name == "mean" ? sum.result() / count : sum.result();
  };
  return {reduce(x, dims_of(call, x.rank()), call.boolean("keepdim"), dtype, fold)};
}

void draw_softmax(NodeDraw& d) {
  const Shape shape = d.subject(1, 4);
  d.attrs = {{"dim", d.pick(-std::ssize(shape), std::ssize(shape) - 1)}};
  if (d.op.find("._") != std::string::npos) d.attrs["half_to_float"] = false;
}

Rows softmax(const Call& call) {
  Values x = call.operand(0);
  x.dtype = call.dtype_or("dtype", x.dtype);
  along(x, call.dim("dim", x.rank()),
        [&](std::span<Bounded> row) { softmax_row(row, call.is("log_softmax")); });
  return {x};
}

/// Names of dimensions, batches in front.
std::string labels_of(std::int64_t rank, std::string_view last) {
  std::string labels;
  for (std::int64_t i = rank - std::ssize(last); i > 0; --i) {
    labels += static_cast<char>('A' + i - 1);
  }
  return labels + std::string(last);
}

void draw_product(NodeDraw& d) {
  const std::string_view name = functional_name(d.op);
  const std::int64_t rank = name == "mm" ? 2 : name == "bmm" ? 3 : 0;
  const Shape shape = rank > 0 ? d.subject(rank, rank) : d.subject(1, 4);
  const std::int64_t columns =
      d.chance(20) ? d.pick(34, 70) : std::max<std::int64_t>(d.extent(), 1);
  if (name == "linear") {
    d.beside({columns, shape.back()}, 85);
    if (d.chance(60)) d.beside({columns}, 85);
    return;
  }
  Shape other{shape.back(), columns};
  if (rank == 3) other.insert(other.begin(), shape[0]);
  d.beside(other, 50);
}

Rows product(const Call& call) {
  const Values& a = call.operand(0);
  const Values& b = call.operand(1);
  if (call.name() == "linear") {
    Values result = contract(a, labels_of(a.rank(), "k"), b, "nk", labels_of(a.rank(), "n"));
    const Values* bias = call.find("bias");
    if (bias == nullptr) return {result};
    return {zip(result, *bias, a.dtype, [](Bounded x, Bounded y) { return x + y; })};
  }
  return {contract(a, labels_of(a.rank(), "mk"), b, labels_of(b.rank(), "kn"),
                   labels_of(std::max(a.rank(), b.rank()), "mn"))};
}

void draw_permute(NodeDraw& d) {
  const Shape shape = d.subject(1, 5);
  std::vector<std::int64_t> dims(shape.size());
  for (std::size_t i = 0; i < dims.size(); ++i) dims[i] = static_cast<std::int64_t>(i);
  for (std::size_t i = dims.size(); i-- > 1;) std::swap(dims[i], dims[d.random() % (i + 1)]);
  d.attrs = {{"dims", dims}};
}

Rows permute(const Call& call) {
  const Values& x = call.operand(0);
  const Shape dims = call.integers("dims");
  Shape shape;
  for (const std::int64_t dim : dims) shape.push_back(x.extent(dim));
  Values result = make_values(shape, x.dtype);
  for_each_place(shape, [&](std::size_t i, const Shape& place) {
    Shape from(place.size());
    for (std::size_t k = 0; k < dims.size(); ++k) {
      from[index_of(dims[k] < 0 ? dims[k] + x.rank() : dims[k])] = place[k];
    }
    result.data[i] = x.at(from);
  });
  return {result};
}

void draw_cat(NodeDraw& d) {
  const Shape shape = d.subject(1, 5);
  const std::int64_t dim = d.pick(0, std::ssize(shape) - 1);
  const std::int64_t count = d.pick(1, 4);
  for (std::int64_t i = 1; i < count; ++i) {
    Shape other = shape;
    if (d.chance(50)) other[index_of(dim)] = d.extent(17);
    d.beside(other, 30);
  }
  if (count > 1 && d.chance(30)) std::swap(d.operands[0], d.operands[1]);
  d.attrs = {{"dim", d.chance(80) ? dim : dim - std::ssize(shape)},
             {"_tensor_list_sizes", {count}}};
}

Rows cat(const Call& call) {
  const std::vector<const Values*> parts = call.tensors("tensors");
  Shape shape = parts.at(0)->shape;
  const std::int64_t dim = call.dim("dim", std::ssize(shape));
  std::int64_t& total = shape[index_of(dim)] = 0;
  for (const Values* part : parts) total += part->extent(dim);
  Values result = make_values(shape, parts[0]->dtype);
  std::int64_t begin = 0;
  for (const Values* part : parts) {
    for_each_place(part->shape, [&](std::size_t i, Shape place) {
      place[index_of(dim)] += begin;
      result.at(place) = part->data[i];
    });
    begin += part->extent(dim);
  }
  return {result};
}

constexpr OpRow::Rounds kNothing = OpRow::Rounds::kNothing;
const OpRow kRows[] = {
    {"relu neg abs", draw_function, common_function, kNothing},
    {"exp sqrt tanh sigmoid silu gelu", draw_function, common_function},
    {"add sub rsub mul div.Tensor div.Scalar div_.Tensor div_.Scalar maximum minimum",
     draw_arithmetic, arithmetic},
    {"sum mean", draw_reduction, reduction},
    {"amax amin", draw_reduction, reduction, kNothing},
    {"softmax _softmax log_softmax _log_softmax", draw_softmax, softmax},
    {"mm bmm linear", draw_product, product},
    {"conv1d conv2d conv3d convolution conv_transpose1d conv_transpose2d conv_transpose3d",
     draw_convolution, convolution},
    {"permute", draw_permute, permute, kNothing},
    {"cat concat", draw_cat, cat, kNothing}};

}  // namespace

std::span<const OpRow> common_ops() { return kRows; }

const std::vector<OpDefinition>& op_definitions() {
  static const std::vector<OpDefinition> definitions = {{"aten.relu.default", true, true},
                                                        {"aten.neg.default", true},
                                                        {"aten.abs.default", true, true},
                                                        {"aten.exp.default"},
                                                        {"aten.sqrt.default"},
                                                        {"aten.tanh.default"},
                                                        {"aten.sigmoid.default"},
                                                        {"aten.silu.default"},
                                                        {"aten.gelu.default"},
                                                        {"aten.add.Tensor", true, true},
                                                        {"aten.sub.Tensor", true},
                                                        {"aten.mul.Tensor", true, true},
                                                        {"aten.div.Tensor"},
                                                        {"aten.maximum.default", true, true},
                                                        {"aten.minimum.default", true, true},
                                                        {"aten.sum.dim_IntList"},
                                                        {"aten.mean.dim"},
                                                        {"aten.amax.default"},
                                                        {"aten.softmax.int"},
                                                        {"aten.mm.default"},
                                                        {"aten.bmm.default"},
                                                        {"aten.linear.default"},
                                                        {"aten.conv2d.default"},
                                                        {"aten.permute.default", true, true},
                                                        {"aten.cat.default", true, true}};
  return definitions;
}

}  // namespace npu::conformance
