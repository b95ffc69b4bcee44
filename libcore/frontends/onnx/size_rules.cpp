// SPDX-License-Identifier: Apache-2.0
// What each op says of sizes: the shape of its results, and equations between those of its
// operands. Written for what exporters write around sizes that vary; an op that is not here, or
// whose operands are not known enough, gives what the model states of its result, or nothing.
#include "size_rules.hpp"

#include <algorithm>
#include <array>
#include <map>

#include "importer.hpp"
#include "npu/support/error.hpp"
#include "support/checked.hpp"

namespace npu::onnx {
namespace {

const KnownSizes kNothingKnown;

// Ops whose result has the broadcast shape of all operands, that lose axes, and whose result has
// the first operand's shape.
constexpr auto kElementwise = std::to_array<std::string_view>(
    {"Add",   "Sub",   "Mul",      "Div",         "Mod",       "Pow",
     "Max",   "Min",   "Sum",      "Mean",        "And",       "Or",
     "Xor",   "Equal", "Less",     "LessOrEqual", "Greater",   "GreaterOrEqual",
     "Where", "PRelu", "BitShift", "BitwiseAnd",  "BitwiseOr", "BitwiseXor"});
constexpr auto kReducing = std::to_array<std::string_view>(
    {"ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2",
     "ReduceLogSum", "ReduceLogSumExp", "ReduceSumSquare"});
constexpr auto kSame = std::to_array<std::string_view>({"Abs",
                                                        "Acos",
                                                        "Asin",
                                                        "Atan",
                                                        "BatchNormalization",
                                                        "Ceil",
                                                        "Celu",
                                                        "Clip",
                                                        "Cos",
                                                        "Cosh",
                                                        "CumSum",
                                                        "Dropout",
                                                        "Elu",
                                                        "Erf",
                                                        "Exp",
                                                        "Floor",
                                                        "Gelu",
                                                        "GroupNormalization",
                                                        "HardSigmoid",
                                                        "HardSwish",
                                                        "InstanceNormalization",
                                                        "IsInf",
                                                        "IsNaN",
                                                        "LayerNormalization",
                                                        "LeakyRelu",
                                                        "Log",
                                                        "LogSoftmax",
                                                        "LpNormalization",
                                                        "Mish",
                                                        "Not",
                                                        "RMSNormalization",
                                                        "Reciprocal",
                                                        "Relu",
                                                        "RotaryEmbedding",
                                                        "Round",
                                                        "ScatterElements",
                                                        "ScatterND",
                                                        "Selu",
                                                        "Sigmoid",
                                                        "Sign",
                                                        "Sin",
                                                        "SimplifiedLayerNormalization",
                                                        "SkipLayerNormalization",
                                                        "SkipSimplifiedLayerNormalization",
                                                        "Softmax",
                                                        "Softplus",
                                                        "Softsign",
                                                        "Sqrt",
                                                        "Swish",
                                                        "Tan",
                                                        "Tanh",
                                                        "TensorScatter",
                                                        "ThresholdedRelu",
                                                        "Trilu"});

}  // namespace

void SizeRules::add_constant(std::string_view name, const OnnxTensor& tensor) {
  KnownSizes known;
  known.is_constant = true;
  known.shape.emplace();
  for (const std::int64_t dim : tensor.dims) {
    if (dim < 0) return;
    known.shape->push_back(number(dim));
  }
  const auto count = checked_element_count(tensor.dims);
  const auto dtype = onnx_dtype(tensor.data_type);
  if (count && *count <= kMostElements && !tensor.is_external &&
      (dtype == DType::kInt64 || dtype == DType::kInt32)) {
    try {
      const Tensor decoded = decode_onnx_tensor(tensor, bytes_, kMostElements);
      known.elements.emplace();
      for (std::int64_t i = 0; i < *count; ++i) {
        const std::int64_t value =
            dtype == DType::kInt64 ? decoded.as<std::int64_t>()[i] : decoded.as<std::int32_t>()[i];
        known.elements->push_back(value == INT64_MIN ? Dim() : number(value));
        known.largest = {known.elements->front()};
      }
      if (*count != 1) known.largest.clear();
    } catch (const Error&) {
      known.elements.reset();  // the import says what is wrong
    }
  }
  values_[name] = std::move(known);
}

void SizeRules::add_value(std::string_view name, std::vector<Dim> shape) {
  values_[name].shape = std::move(shape);
}

Dim SizeRules::stated(std::string_view text) const {
  try {
    const SizeExpression size = SizeExpression::parse(text);
    for (const std::string& name : size.symbols()) {
      if (!symbols_.contains(name)) return std::nullopt;
    }
    return size.substitute(symbols_);
  } catch (const Error&) {
    return std::nullopt;
  }
}

void SizeRules::run(const NodeProto& node) {
  node_ = &node;
  results_.assign(std::min<std::size_t>(node.outputs.size(), 64), {});
  if (const Rule rule = rule_of(own_domain(node.domain), node.op_type)) {
    try {
      (this->*rule)();
    } catch (const Error&) {
      // Numbers that do not fit: nothing is known.
      results_.assign(results_.size(), {});
    }
  }
  finish();
}

bool SizeRules::is_made_of_constants() const {
  bool is_constant = node_->op_type == "Constant";
  for (std::size_t i = 0; i < node_->inputs.size(); ++i) {
    if (!has(i)) continue;
    if (!in(i).is_constant) return false;
    is_constant = true;
  }
  return is_constant;
}

// What the model states is taken where the rules say nothing, and is true where they do.
void SizeRules::finish() {
  for (KnownSizes& result : results_) result.is_constant = is_made_of_constants();
  for (std::size_t i = 0; i < std::min(results_.size(), node_->outputs.size()); ++i) {
    const std::string_view name = node_->outputs[i];
    if (name.empty()) continue;
    KnownSizes& result = results_[i];
    const auto found = stated_.find(name);
    const ValueProto* value = found != stated_.end() ? found->second : nullptr;
    if (value != nullptr && value->has_shape && value->dims.size() <= kMostRank) {
      if (!result.shape) result.shape.emplace(value->dims.size());
      // What is empty stands for something that a branch does not give, under its name.
      const bool is_empty = std::any_of(result.shape->begin(), result.shape->end(),
                                        [](const Dim& dim) { return constant_of(dim) == 0; });
      if (result.shape->size() == value->dims.size() && !is_empty) {
        for (std::size_t d = 0; d < value->dims.size(); ++d) {
          const DimProto& dim = value->dims[d];
          // Some exporters write 0 for what they do not know.
          const Dim said = dim.value.value_or(-1) > 0 ? number(*dim.value)
                           : dim.symbol.empty()       ? std::nullopt
                                                      : stated(dim.symbol);
          Dim& own = (*result.shape)[d];
          try {
            solver_.equate(own, said);
          } catch (const Error&) {
            continue;
          }
          if (!own) own = said;
        }
      }
    }
    values_[name] = std::move(result);
  }
}

// ---- The node that is run ----

const KnownSizes& SizeRules::in(std::size_t index) const {
  if (index >= node_->inputs.size()) return kNothingKnown;
  const auto found = values_.find(node_->inputs[index]);
  return found != values_.end() ? found->second : kNothingKnown;
}

bool SizeRules::has(std::size_t index) const {
  return index < node_->inputs.size() && !node_->inputs[index].empty();
}

const SizeRules::Dims* SizeRules::shape(std::size_t index) const {
  const KnownSizes& known = in(index);
  return known.shape && known.shape->size() <= kMostRank ? &*known.shape : nullptr;
}

const SizeRules::Dims* SizeRules::elements(std::size_t index) const {
  const KnownSizes& known = in(index);
  return known.elements ? &*known.elements : nullptr;
}

KnownSizes& SizeRules::out(std::size_t output) {
  if (output >= results_.size()) results_.resize(output + 1);
  return results_[output];
}

std::int64_t SizeRules::integer(std::string_view attribute, std::int64_t absent) const {
  for (const AttributeProto& known : node_->attributes) {
    if (known.name == attribute) return known.i;
  }
  return absent;
}

std::optional<std::vector<std::int64_t>> SizeRules::list(std::string_view attribute) const {
  for (const AttributeProto& known : node_->attributes) {
    if (known.name == attribute && known.ints.size() <= kMostElements) return known.ints;
  }
  return std::nullopt;
}

std::optional<std::vector<std::int64_t>> SizeRules::integers(std::size_t index,
                                                             std::string_view attribute) const {
  if (!has(index)) return list(attribute);
  const Dims* dims = elements(index);
  if (dims == nullptr) return std::nullopt;
  std::vector<std::int64_t> values;
  for (const Dim& dim : *dims) {
    const auto value = constant_of(dim);
    if (!value) return std::nullopt;
    values.push_back(*value);
  }
  return values;
}

// ---- Arithmetic of what may be unknown ----

Dim SizeRules::sum(const Dim& a, const Dim& b) { return a && b ? Dim(*a + *b) : std::nullopt; }
Dim SizeRules::difference(const Dim& a, const Dim& b) {
  return a && b ? Dim(*a - *b) : std::nullopt;
}
Dim SizeRules::product(const Dim& a, const Dim& b) { return a && b ? Dim(*a * *b) : std::nullopt; }

bool SizeRules::is_one(const Dim& dim) const {
  return dim && solver_.current(*dim).constant() == 1;
}

// Two sizes of which none is known to be 1 are one size: what is stretched is written as 1, or
// bound.
SizeRules::Dims SizeRules::broadcast(const Dims& a, const Dims& b) {
  Dims result(std::max(a.size(), b.size()));
  for (std::size_t i = 0; i < result.size(); ++i) {
    const Dim one = i < a.size() ? a[a.size() - 1 - i] : number(1);
    const Dim other = i < b.size() ? b[b.size() - 1 - i] : number(1);
    Dim& to = result[result.size() - 1 - i];
    if (is_one(one)) {
      to = other;
    } else if (is_one(other)) {
      to = one;
    } else {
      solver_.equate(one, other);
      to = one ? one : other;
    }
  }
  return result;
}

Dim SizeRules::windows(const Dim& dim, std::int64_t kernel, std::int64_t stride,
                       std::int64_t dilation, std::int64_t pads, bool same) const {
  if (!dim || stride < 1 || kernel < 1) return std::nullopt;
  if (same) return (*dim + SizeExpression(stride - 1)).floor_divide(stride);
  const SizeExpression covered = SizeExpression(dilation) * SizeExpression(kernel - 1) + 1;
  return (*dim + pads - covered).floor_divide(stride) + 1;
}

// ---- Rules ----

SizeRules::Rule SizeRules::rule_of(std::string_view domain, std::string_view op) {
  static const std::map<std::string_view, Rule> kRules = [] {
    std::map<std::string_view, Rule> rules{{"Shape", &SizeRules::shape_op},
                                           {"Constant", &SizeRules::constant},
                                           {"ConstantOfShape", &SizeRules::constant_of_shape},
                                           {"Neg", &SizeRules::negated},
                                           {"Range", &SizeRules::range},
                                           {"Gather", &SizeRules::gather},
                                           {"GatherND", &SizeRules::gather_nd},
                                           {"Slice", &SizeRules::slice},
                                           {"Concat", &SizeRules::concat},
                                           {"Unsqueeze", &SizeRules::unsqueeze},
                                           {"Squeeze", &SizeRules::squeeze},
                                           {"Reshape", &SizeRules::reshape},
                                           {"Flatten", &SizeRules::flatten},
                                           {"Transpose", &SizeRules::transpose},
                                           {"Expand", &SizeRules::expand},
                                           {"MatMul", &SizeRules::matmul},
                                           {"Gemm", &SizeRules::gemm},
                                           {"Conv", &SizeRules::convolution},
                                           {"MaxPool", &SizeRules::pooling},
                                           {"AveragePool", &SizeRules::pooling},
                                           {"Split", &SizeRules::split},
                                           {"Pad", &SizeRules::pad},
                                           {"Attention", &SizeRules::attention},
                                           {"GroupQueryAttention", &SizeRules::attention},
                                           {"MultiHeadAttention", &SizeRules::multi_head},
                                           {"LSTM", &SizeRules::recurrent},
                                           {"GRU", &SizeRules::recurrent},
                                           {"RNN", &SizeRules::recurrent}};
    for (const std::string_view name : {"Identity", "Cast"}) {
      rules[name] = &SizeRules::same_with_elements;
    }
    for (const std::string_view name : kElementwise) rules[name] = &SizeRules::elementwise;
    for (const std::string_view name : kReducing) rules[name] = &SizeRules::reduce;
    for (const std::string_view name : {"GlobalAveragePool", "GlobalMaxPool"}) {
      rules[name] = &SizeRules::global_pooling;
    }
    for (const std::string_view name : kSame) rules[name] = &SizeRules::same;
    return rules;
  }();
  if (!domain.empty() && domain != "com.microsoft") return nullptr;
  if (!domain.empty() && op == "Attention") return &SizeRules::multi_head;
  const auto found = kRules.find(op);
  return found != kRules.end() ? found->second : nullptr;
}

void SizeRules::same() {
  if (const Dims* dims = shape(0)) give(*dims);
}

void SizeRules::same_with_elements() { out(0) = in(0); }

void SizeRules::negated() {
  same();
  const Dims* from = elements(0);
  if (from == nullptr) return;
  Dims& to = out(0).elements.emplace();
  for (const Dim& each : *from) to.push_back(difference(number(0), each));
}

void SizeRules::elementwise() {
  std::optional<Dims> dims;
  for (std::size_t i = 0; i < node_->inputs.size(); ++i) {
    const Dims* own = shape(i);
    if (own == nullptr) return;
    dims = dims ? broadcast(*dims, *own) : *own;
  }
  if (!dims) return;
  give(*dims);
  const std::string_view op = node_->op_type;
  const Dims* a = elements(0);
  const Dims* b = elements(1);
  // Positions behind a past: the largest index moves with them.
  if (op == "Add" && node_->inputs.size() == 2) {
    for (const std::size_t i : {std::size_t{0}, std::size_t{1}}) {
      const Dims* other = elements(1 - i);
      if (in(i).largest.size() == 1 && other != nullptr && other->size() == 1) {
        out(0).largest = {sum(in(i).largest[0], (*other)[0])};
      }
    }
  }
  if (op == "Where") return choose_elements();
  if (a == nullptr || b == nullptr || node_->inputs.size() != 2 || a->empty() || b->empty()) return;
  const std::size_t count = std::max(a->size(), b->size());
  if ((a->size() != count && a->size() != 1) || (b->size() != count && b->size() != 1)) return;
  Dims computed;
  for (std::size_t i = 0; i < count; ++i) {
    const Dim& x = (*a)[a->size() == 1 ? 0 : i];
    const Dim& y = (*b)[b->size() == 1 ? 0 : i];
    const auto divisor = constant_of(y);
    Dim value;
    if (op == "Add") value = sum(x, y);
    if (op == "Sub") value = difference(x, y);
    if (op == "Mul") value = product(x, y);
    // Sizes are not negative, so that rounding down and towards zero are one.
    if (op == "Div" && x && divisor && *divisor > 0) value = x->floor_divide(*divisor);
    if (op == "Mod" && x && divisor && *divisor > 0) value = x->modulo(*divisor);
    if (op == "Equal") value = are_equal(x, y);
    computed.push_back(std::move(value));
  }
  out(0).elements = std::move(computed);
}

// Whether a number is not negative, whatever the sizes that it is made of.
bool SizeRules::is_size(const SizeExpression& number, std::int64_t least) {
  SizeRanges sizes;
  for (const std::string& name : number.symbols()) sizes.emplace(name, SizeRange{.min = least});
  return number.bounds(sizes).min >= 0;
}

// 1 or 0 where that is certain.
Dim SizeRules::are_equal(const Dim& a, const Dim& b) {
  if (!a || !b) return std::nullopt;
  const auto apart = (*a - *b).constant();
  if (apart) return number(*apart == 0 ? 1 : 0);
  const bool is_never = (constant_of(a).value_or(0) < 0 && is_size(*b)) ||
                        (constant_of(b).value_or(0) < 0 && is_size(*a));
  return is_never ? number(0) : std::nullopt;
}

void SizeRules::choose_elements() {
  const Dims* condition = elements(0);
  if (condition == nullptr || node_->inputs.size() != 3) return;
  Dims chosen;
  for (std::size_t i = 0; i < condition->size(); ++i) {
    const auto is_first = constant_of((*condition)[i]);
    const Dims* from = is_first ? elements(*is_first != 0 ? 1 : 2) : nullptr;
    const bool fits = from != nullptr && (from->size() == condition->size() || from->size() == 1);
    chosen.push_back(fits ? (*from)[from->size() == 1 ? 0 : i] : std::nullopt);
  }
  out(0).elements = std::move(chosen);
}

void SizeRules::shape_op() {
  const Dims* dims = shape(0);
  if (dims == nullptr) return;
  const auto rank = static_cast<std::int64_t>(dims->size());
  const std::int64_t begin =
      std::clamp<std::int64_t>(axis_in(integer("start", 0), dims->size()), 0, rank);
  const std::int64_t end =
      std::clamp<std::int64_t>(axis_in(integer("end", rank), dims->size()), begin, rank);
  out(0).elements = Dims(dims->begin() + begin, dims->begin() + end);
  give({number(end - begin)});
}

void SizeRules::constant() {
  for (const AttributeProto& attribute : node_->attributes) {
    if (attribute.name == "value" && attribute.tensor != nullptr) {
      add_constant("", *attribute.tensor);
      out(0) = std::exchange(values_[""], {});
    } else if (attribute.name == "value_int") {
      out(0) = {Dims{}, Dims{number(attribute.i)}, {}};
    } else if (attribute.name == "value_ints" && attribute.ints.size() <= kMostElements) {
      give({number(static_cast<std::int64_t>(attribute.ints.size()))});
      out(0).elements = Dims(attribute.ints.begin(), attribute.ints.end());
    }
  }
}

void SizeRules::constant_of_shape() {
  const Dims* dims = elements(0);
  if (dims == nullptr || dims->size() > kMostRank) return;
  give(*dims);
  const auto count = dims->size() == 1 ? constant_of(dims->front()) : std::nullopt;
  if (!count || *count < 0 || *count > kMostElements) return;
  for (const AttributeProto& attribute : node_->attributes) {
    if (attribute.name != "value" || attribute.tensor == nullptr) continue;
    add_constant("", *attribute.tensor);
    const KnownSizes one = std::exchange(values_[""], {});
    if (!one.elements || one.elements->size() != 1) continue;
    out(0).elements = Dims(static_cast<std::size_t>(*count), one.elements->front());
  }
}

void SizeRules::range() {
  const Dims* start = elements(0);
  const Dims* limit = elements(1);
  const auto step = integers(2, "");
  if (start == nullptr || limit == nullptr || !step || step->size() != 1 || step->front() != 1 ||
      start->size() != 1 || limit->size() != 1) {
    return;
  }
  give({difference(limit->front(), start->front())});
  out(0).largest = {difference(limit->front(), number(1))};
}

}  // namespace npu::onnx
