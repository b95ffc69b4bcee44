// SPDX-License-Identifier: Apache-2.0
// Random nodes of every op in the host target's npu table, in float32 and bfloat16, on the npu
// device against the cpu device: shapes, attributes and which operands are weights are drawn within
// what the table states, so npu-tag has to take each one and the two devices have to agree. Next to
// them stand nodes just outside the table, which npu-tag has to refuse.
//
// NPU_DIFFERENTIAL_CASES sets the number of cases an op and dtype get (default 6),
// NPU_DIFFERENTIAL_SEED the seed. The default stops after some seconds whatever the machine.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "catch.hpp"
#include "graph_builder.hpp"
#include "npu/partition/partition_plan.hpp"
#include "npu/runtime/executor.hpp"
#include "npu/target/support_check.hpp"
#include "npu/target/target.hpp"
#include "test_paths.hpp"

namespace npu {
namespace {

using test::GraphBuilder;
using Ints = std::vector<std::int64_t>;

constexpr double kSeconds = 12;

struct Random {
  explicit Random(std::uint64_t seed) : engine(seed) {}
  std::int64_t pick(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(engine() % static_cast<std::uint64_t>(high - low + 1));
  }
  bool coin() { return pick(0, 1) == 1; }
  template <typename T>
  T one_of(const std::vector<T>& values) {
    return values[static_cast<std::size_t>(pick(0, static_cast<std::int64_t>(values.size()) - 1))];
  }
  Shape shape(std::int64_t low, std::int64_t high, std::int64_t most = 6) {
    Shape result;
    for (std::int64_t i = pick(low, high); i > 0; --i) result.push_back(pick(1, most));
    return result;
  }
  std::mt19937_64 engine;
};

/// What values an operand gets.
enum class Values { kAny, kPositive, kAwayFromZero, kIndices };

/// A node under construction.
struct Case {
  Case(Random& source, std::string type) : random(source), dtype(std::move(type)) {}

  /// An operand: a graph input, or as often a weight where the op usually has one.
  std::string operand(const Shape& shape, bool may_be_weight = false, Values kind = Values::kAny,
                      std::string type = "") {
    if (type.empty()) type = dtype;
    const std::string name = "t" + std::to_string(values.size());
    if (may_be_weight && random.coin()) {
      graph.weight(name, shape, type);
      values["p_" + name] = kind;
      operands.push_back("p_" + name);
    } else {
      graph.input(name, shape, type);
      values[name] = kind;
      operands.push_back(name);
    }
    return operands.back();
  }
  void finish(const std::string& op, const Shape& result, const Json& attrs = Json::object(),
              std::string type = "") {
    graph.node("y", op, operands, result, attrs, type.empty() ? dtype : type).output("y");
  }

  Random& random;
  std::string dtype;
  GraphBuilder graph;
  std::vector<std::string> operands;
  std::map<std::string, Values> values;
};

using Generator = std::function<void(Case&, const std::string& op)>;

Shape broadcast(Random& random, const Shape& shape) {
  Shape result = shape;
  for (auto& extent : result) {
    if (random.pick(0, 3) == 0) extent = 1;
  }
  const std::int64_t cut = random.pick(0, static_cast<std::int64_t>(shape.size()));
  if (random.pick(0, 2) == 0) result.erase(result.begin(), result.begin() + cut);
  return result;
}

std::int64_t digit(const std::string& op, const std::string& before) {
  const std::size_t at = op.find(before);
  return at == std::string::npos ? 0 : op[at + before.size()] - '0';
}

void convolution(Case& c, const std::string& op) {
  Random& r = c.random;
  const bool general = op == "aten.convolution.default";
  const bool transposed = op.find("transpose") != std::string::npos || (general && r.coin());
  std::int64_t count =
      op.find("transpose") != std::string::npos ? digit(op, "transpose") : digit(op, "conv");
  if (general) count = r.pick(1, 3);
  const std::int64_t groups = r.one_of<std::int64_t>({1, 1, 2, 4, 16});
  const std::int64_t in = groups * r.one_of<std::int64_t>({1, 2, 3, 16});
  const std::int64_t out = groups * r.one_of<std::int64_t>({1, 2, 5, 16});
  Shape input{r.pick(1, 2), in};
  Shape weight = transposed ? Shape{in, out / groups} : Shape{out, in / groups};
  Shape result{input[0], out};
  Ints stride;
  Ints padding;
  Ints dilation;
  Ints behind;
  std::string mode;
  if (op.ends_with(".padding")) mode = r.one_of<std::string>({"same", "valid"});
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t kernel = r.pick(1, 3);
    stride.push_back(mode == "same" ? 1 : r.pick(1, 3));
    dilation.push_back(r.pick(1, 2));
    padding.push_back(mode.empty() ? r.pick(0, 2) : 0);
    behind.push_back(0);
    const std::int64_t span = dilation.back() * (kernel - 1) + 1;
    const std::int64_t extent = r.pick(std::max<std::int64_t>(span, 3), count == 3 ? 6 : 10);
    weight.push_back(kernel);
    input.push_back(extent);
    if (transposed) {
      behind.back() = r.pick(0, std::max(stride.back(), dilation.back()) - 1);
      const std::int64_t made =
          (extent - 1) * stride.back() - 2 * padding.back() + span + behind.back();
      if (made < 1) padding.back() = 0;
      result.push_back((extent - 1) * stride.back() - 2 * padding.back() + span + behind.back());
    } else if (mode == "same") {
      result.push_back(extent);
    } else {
      result.push_back((extent + 2 * padding.back() - span) / stride.back() + 1);
    }
  }
  c.operand(input);
  c.operand(weight, true);
  if (r.coin()) c.operand({out}, true);
  Json attrs = {{"stride", stride}, {"dilation", dilation}, {"groups", groups}};
  if (mode.empty()) attrs["padding"] = padding;
  if (!mode.empty()) attrs["padding"] = mode;
  if (transposed) attrs["output_padding"] = behind;
  if (general) attrs["transposed"] = transposed;
  if (general) attrs["output_padding"] = behind;
  c.finish(op, result, attrs);
}

void pool(Case& c, const std::string& op) {
  Random& r = c.random;
  const std::int64_t count = digit(op, "pool");
  const bool average = op.find("avg") != std::string::npos;
  Shape input{r.pick(1, 2), r.one_of<std::int64_t>({1, 3, 16, 24})};
  Shape result = input;
  Ints kernel;
  Ints stride;
  Ints padding;
  Ints dilation;
  const bool ceil_mode = r.coin();
  for (std::int64_t i = 0; i < count; ++i) {
    kernel.push_back(r.pick(1, 3));
    stride.push_back(r.pick(1, 3));
    padding.push_back(r.pick(0, kernel.back() / 2));
    dilation.push_back(average ? 1 : r.pick(1, 2));
    const std::int64_t span = dilation.back() * (kernel.back() - 1) + 1;
    input.push_back(r.pick(span, 9));
    const std::int64_t room =
        input.back() + 2 * padding.back() - span + (ceil_mode ? stride.back() - 1 : 0);
    std::int64_t extent = room / stride.back() + 1;
    if (ceil_mode && (extent - 1) * stride.back() >= input.back() + padding.back()) --extent;
    result.push_back(extent);
  }
  if (r.coin()) {
    input.erase(input.begin());
    result.erase(result.begin());
  }
  c.operand(input);
  Json attrs = {
      {"kernel_size", kernel}, {"stride", stride}, {"padding", padding}, {"ceil_mode", ceil_mode}};
  if (!average) attrs["dilation"] = dilation;
  if (average) attrs["count_include_pad"] = r.coin();
  if (average && count > 1 && r.pick(0, 3) == 0) attrs["divisor_override"] = r.pick(1, 5);
  c.finish(op, result, attrs);
}

void adaptive_pool(Case& c, const std::string& op) {
  Random& r = c.random;
  const std::int64_t count = digit(op, "pool");
  Shape input{r.pick(1, 2), r.one_of<std::int64_t>({1, 3, 16})};
  Shape result = input;
  Ints size;
  for (std::int64_t i = 0; i < count; ++i) {
    input.push_back(r.pick(1, 8));
    size.push_back(r.pick(1, 5));
    result.push_back(size.back());
  }
  if (r.coin()) {
    input.erase(input.begin());
    result.erase(result.begin());
  }
  c.operand(input);
  c.finish(op, result, {{"output_size", size}});
}

void batch_norm(Case& c, const std::string& op) {
  Random& r = c.random;
  Shape shape = r.shape(2, 5);
  shape[1] = r.one_of<std::int64_t>({1, 5, 16, 17});
  const Shape channels{shape[1]};
  c.operand(shape);
  const bool affine = r.coin();
  if (affine) c.operand(channels, true);
  if (affine) c.operand(channels, true);
  c.operand(channels, true);
  c.operand(channels, true, Values::kPositive);
  Json attrs = {{"training", false}, {"momentum", 0.1}, {"eps", 1e-5}, {"cudnn_enabled", true}};
  c.finish(op, shape, attrs);
}

void row_norm(Case& c, const std::string& op) {
  Random& r = c.random;
  const Shape shape = r.shape(1, 5, 9);
  const std::int64_t count = r.pick(1, static_cast<std::int64_t>(shape.size()));
  const Shape normalized(shape.end() - count, shape.end());
  c.operand(shape);
  if (r.coin()) c.operand(normalized, true);
  if (c.operands.size() == 2 && op == "aten.layer_norm.default" && r.coin()) {
    c.operand(normalized, true);
  }
  c.finish(op, shape, {{"normalized_shape", normalized}, {"eps", 1e-3}});
}

void group_norm(Case& c, const std::string& op) {
  Random& r = c.random;
  Shape shape = r.shape(2, 5);
  const std::int64_t groups = r.pick(1, 4);
  shape[1] = groups * r.pick(1, 5);
  if (shape.size() == 2) shape[1] = groups * r.pick(2, 5);
  c.operand(shape);
  if (r.coin()) {
    c.operand({shape[1]}, true);
    c.operand({shape[1]}, true);
  }
  c.finish(op, shape, {{"num_groups", groups}, {"eps", 1e-3}});
}

void linear(Case& c, const std::string& op) {
  Random& r = c.random;
  Shape shape = r.shape(1, 4, 20);
  const std::int64_t out = r.pick(1, 40);
  c.operand(shape);
  c.operand({out, shape.back()}, true);
  if (r.coin()) c.operand({out}, true);
  shape.back() = out;
  c.finish(op, shape);
}

void addmm(Case& c, const std::string& op) {
  Random& r = c.random;
  const std::int64_t m = r.pick(1, 9);
  const std::int64_t k = r.pick(1, 20);
  const std::int64_t n = r.pick(1, 20);
  Shape result{m, n};
  Shape left{m, k};
  Shape right{k, n};
  if (op.find("baddbmm") != std::string::npos) {
    const std::int64_t batch = r.pick(1, 4);
    for (Shape* shape : {&result, &left, &right}) shape->insert(shape->begin(), batch);
  }
  Shape self = broadcast(r, result);
  if (self.empty()) self = {n};
  c.operand(self, true);
  c.operand(left);
  c.operand(right, true);
  Json attrs = Json::object();
  if (r.coin()) attrs["alpha"] = r.one_of<double>({0.5, 2.0});
  // libtorch 1.13 multiplies uninitialised memory by a beta of 0 where there are batches.
  const double least = op.find("baddbmm") != std::string::npos ? 0.5 : 0.0;
  if (r.coin()) attrs["beta"] = r.one_of<double>({least, 0.5, 2.0});
  c.finish(op, result, attrs);
}

void product(Case& c, const std::string& op) {
  Random& r = c.random;
  const std::int64_t m = r.pick(1, 9);
  const std::int64_t k = r.pick(1, 20);
  const std::int64_t n = r.pick(1, 20);
  Shape left{m, k};
  Shape right{k, n};
  Shape result{m, n};
  if (op == "aten.bmm.default") {
    const std::int64_t batch = r.pick(1, 4);
    for (Shape* shape : {&result, &left, &right}) shape->insert(shape->begin(), batch);
  } else if (op == "aten.matmul.default") {
    const Shape batch = r.shape(0, 2, 4);
    const Shape a = broadcast(r, batch);
    const Shape b = broadcast(r, batch);
    left.insert(left.begin(), a.begin(), a.end());
    right.insert(right.begin(), b.begin(), b.end());
    Shape both(std::max(a.size(), b.size()), 1);
    for (std::size_t i = 0; i < both.size(); ++i) {
      if (i < a.size()) both[both.size() - 1 - i] = a[a.size() - 1 - i];
      if (i < b.size()) {
        both[both.size() - 1 - i] = std::max(both[both.size() - 1 - i], b[b.size() - 1 - i]);
      }
    }
    result.insert(result.begin(), both.begin(), both.end());
    if (r.pick(0, 4) == 0) {  // a vector on the right
      right = {k};
      result = left;
      result.pop_back();
    }
  }
  c.operand(left);
  c.operand(right, true);
  c.finish(op, result);
}

void attention(Case& c, const std::string& op) {
  Random& r = c.random;
  Shape query = r.shape(0, 2, 3);
  Shape key = query;
  Shape value = query;
  Shape mask = query;
  const std::int64_t queries = r.pick(1, 70);
  const std::int64_t keys = r.pick(1, 40);
  const std::int64_t width = r.pick(1, 20);
  const std::int64_t value_width = r.coin() ? width : r.pick(1, 40);
  query.insert(query.end(), {queries, width});
  key.insert(key.end(), {keys, width});
  value.insert(value.end(), {keys, value_width});
  mask.insert(mask.end(), {queries, keys});
  c.operand(query);
  c.operand(key);
  c.operand(value);
  Json attrs = Json::object();
  if (r.coin()) {
    c.operand(mask, true);
  } else if (r.coin()) {
    attrs["is_causal"] = true;
  }
  Shape result = query;
  result.back() = value_width;
  c.finish(op, result, attrs);
}

void unary(Case& c, const std::string& op) {
  Random& r = c.random;
  const Shape shape = r.shape(0, 5);
  const bool positive = op.find("sqrt") != std::string::npos || op.starts_with("aten.log.");
  c.operand(shape, false, positive ? Values::kPositive : Values::kAny);
  Json attrs = Json::object();
  if (op.find("clamp.") != std::string::npos || op.find("clamp_.") != std::string::npos) {
    attrs = {{"min", -0.5}, {"max", 0.75}};
    if (r.pick(0, 2) == 0) attrs.erase("min");
  }
  if (op.find("clamp_min") != std::string::npos) attrs = {{"min", -0.25}};
  if (op.find("clamp_max") != std::string::npos) attrs = {{"max", 0.25}};
  if (op.find("hardtanh") != std::string::npos) attrs = {{"min_val", -0.5}, {"max_val", 0.5}};
  if (op.find("leaky_relu") != std::string::npos && r.coin()) attrs = {{"negative_slope", 0.2}};
  if (op.find(".elu") != std::string::npos && r.coin()) attrs = {{"alpha", 0.7}};
  if (op.find("celu") != std::string::npos && r.coin()) attrs = {{"alpha", 0.7}};
  if (op.find("gelu") != std::string::npos && r.coin()) attrs = {{"approximate", "tanh"}};
  c.finish(op, shape, attrs);
}

void channel_norm(Case& c, const std::string& op) {
  const Shape shape = c.random.shape(3, 5);
  c.operand(shape, false, Values::kAny);
  c.finish(op, shape, {{"direction", c.random.coin()}, {"layout", "blocked16"}});
}

void binary(Case& c, const std::string& op) {
  Random& r = c.random;
  const bool power = op.find("pow") != std::string::npos;
  const bool divides = op.find("div") != std::string::npos;
  const bool has_alpha = op.find("add") != std::string::npos || op.find("sub") != std::string::npos;
  const Shape shape = r.shape(0, 5);
  Json attrs = Json::object();
  if (has_alpha && r.pick(0, 2) == 0) attrs["alpha"] = r.one_of<double>({2.0, -0.5});
  const bool number = op.ends_with(".Scalar") || op == "aten.pow.Tensor_Scalar" ||
                      (op.ends_with(".Tensor") && r.pick(0, 3) == 0 && op != "aten.rsub.Tensor");
  c.operand(shape, false, power ? Values::kPositive : Values::kAny);
  if (number) {
    const double value = r.one_of<double>({0.5, 2.0, -1.5, 3.0});
    if (op == "aten.pow.Scalar") {
      attrs["self"] = std::abs(value);
    } else if (power) {
      attrs["exponent"] = value;
    } else {
      attrs["other"] = value;
    }
  } else {
    const bool in_place = op.find("_.") != std::string::npos;
    Shape other = broadcast(r, shape);
    c.operand(other, true, divides ? Values::kAwayFromZero : Values::kAny);
    (void)in_place;
  }
  c.finish(op, shape, attrs);
}

void softmax(Case& c, const std::string& op) {
  Random& r = c.random;
  const Shape shape = r.shape(1, 4, 9);
  const auto rank = static_cast<std::int64_t>(shape.size());
  Json attrs = {{"dim", r.pick(-rank, rank - 1)}};
  if (op.find("._") != std::string::npos) attrs["half_to_float"] = false;
  c.operand(shape);
  c.finish(op, shape, attrs);
}

void reduction(Case& c, const std::string& op) {
  Random& r = c.random;
  const Shape shape = r.shape(1, 5);
  c.operand(shape);
  if (op == "aten.mean.default" || op == "aten.sum.default") return c.finish(op, {});
  Ints dims;
  Shape result;
  const bool keep = r.coin();
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const bool reduced = r.coin() || (dims.empty() && i + 1 == shape.size());
    if (reduced) dims.push_back(static_cast<std::int64_t>(i));
    if (!reduced) result.push_back(shape[i]);
    if (reduced && keep) result.push_back(1);
  }
  c.finish(op, result, {{"dim", dims}, {"keepdim", keep}});
}

void embedding(Case& c, const std::string& op) {
  Random& r = c.random;
  const std::int64_t width = r.pick(1, 20);
  c.operand({8, width}, true);
  Shape shape = r.shape(1, 3);
  c.operand(shape, false, Values::kIndices, r.coin() ? "int64" : "int32");
  shape.push_back(width);
  c.finish(op, shape);
}

void arange(Case& c, const std::string& op) {
  Random& r = c.random;
  const std::int64_t start = op == "aten.arange.default" ? 0 : r.pick(-5, 5);
  const std::int64_t step = op == "aten.arange.start_step" ? r.pick(1, 3) : 1;
  const std::int64_t end = start + r.pick(1, 20);
  Json attrs = {{"end", end}, {"dtype", "torch.int64"}};
  if (op != "aten.arange.default") attrs["start"] = start;
  if (op == "aten.arange.start_step") attrs["step"] = step;
  c.finish(op, {(end - start + step - 1) / step}, attrs, "int64");
}

void cast(Case& c, const std::string& op) {
  Random& r = c.random;
  const std::vector<std::string> types{"float32", "float64", "bfloat16", "int8", "uint8",
                                       "int16",   "int32",   "int64",    "bool"};
  const Shape shape = r.shape(0, 4);
  const std::string to = r.one_of(types);
  const bool small = to == "uint8" || to == "bool";
  c.operand(shape, false, small ? Values::kPositive : Values::kAny);
  if (op == "aten.type_as.default") {
    c.operand({2}, false, Values::kIndices, to);
    return c.finish(op, shape, Json::object(), to);
  }
  c.finish(op, shape, {{"dtype", "torch." + to}}, to);
}

void pad(Case& c, const std::string& op) {
  Random& r = c.random;
  Shape shape = r.shape(1, 4);
  for (auto& extent : shape) extent += 3;
  c.operand(shape);
  Ints amounts;
  Shape result = shape;
  const std::int64_t count = r.pick(1, static_cast<std::int64_t>(shape.size()));
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t before = r.pick(-1, 2);
    const std::int64_t after = r.pick(-1, 2);
    amounts.insert(amounts.end(), {before, after});
    result[shape.size() - 1 - static_cast<std::size_t>(i)] += before + after;
  }
  Json attrs = {{"pad", amounts}};
  if (r.coin()) attrs["value"] = 1.5;
  c.finish(op, result, attrs);
}

void concatenation(Case& c, const std::string& op) {
  Random& r = c.random;
  Shape shape = r.shape(1, 5);
  const bool stacks = op == "aten.stack.default";
  const auto rank = static_cast<std::int64_t>(shape.size());
  const std::int64_t dim = r.pick(0, stacks ? rank : rank - 1);
  const std::int64_t count = r.pick(1, 4);
  std::int64_t total = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    if (!stacks) shape[static_cast<std::size_t>(dim)] = r.one_of<std::int64_t>({1, 3, 16});
    if (!stacks) total += shape[static_cast<std::size_t>(dim)];
    c.operand(shape, true);
  }
  if (stacks) shape.insert(shape.begin() + dim, count);
  if (!stacks) shape[static_cast<std::size_t>(dim)] = total;
  c.finish(op, shape, {{"dim", dim}, {"_tensor_list_sizes", Ints{count}}});
}

void movement(Case& c, const std::string& op) {
  Random& r = c.random;
  Shape shape = r.shape(op == "aten.t.default" ? 2 : 1, op == "aten.t.default" ? 2 : 4);
  const auto rank = static_cast<std::int64_t>(shape.size());
  const std::int64_t dim = r.pick(0, rank - 1);
  const auto at = static_cast<std::size_t>(dim);
  Shape result = shape;
  Json attrs = Json::object();
  const auto name = op.substr(5, op.find('.', 5) - 5);
  std::int64_t elements = 1;
  for (const std::int64_t extent : shape) elements *= extent;
  if (name == "t" || name == "numpy_T") {
    std::reverse(result.begin(), result.end());
  } else if (name == "transpose" || name == "swapaxes") {
    const std::int64_t other = r.pick(0, rank - 1);
    std::swap(result[at], result[static_cast<std::size_t>(other)]);
    const std::string prefix = name == "transpose" ? "dim" : "axis";
    attrs = {{prefix + "0", dim}, {prefix + "1", other - rank}};
  } else if (name == "permute") {
    Ints order;
    for (std::int64_t i = 0; i < rank; ++i) order.push_back(i);
    std::shuffle(order.begin(), order.end(), r.engine);
    for (std::size_t i = 0; i < shape.size(); ++i) {
      result[i] = shape[static_cast<std::size_t>(order[i])];
    }
    attrs = {{"dims", order}};
  } else if (name == "movedim") {
    const std::int64_t to = r.pick(0, rank - 1);
    result.erase(result.begin() + dim);
    result.insert(result.begin() + to, shape[at]);
    attrs = {{"source", dim}, {"destination", to}};
    if (op.ends_with("intlist")) attrs = {{"source", Ints{dim}}, {"destination", Ints{to}}};
  } else if (name == "slice") {
    const std::int64_t start = r.pick(0, shape[at] - 1);
    const std::int64_t step = r.pick(1, 2);
    result[at] = (shape[at] - start - 1) / step + 1;
    attrs = {{"dim", dim}, {"start", start}, {"end", 9999}, {"step", step}};
  } else if (name == "narrow") {
    const std::int64_t start = r.pick(0, shape[at] - 1);
    result[at] = r.pick(1, shape[at] - start);
    attrs = {{"dim", dim}, {"start", start}, {"length", result[at]}};
  } else if (name == "select") {
    result.erase(result.begin() + dim);
    attrs = {{"dim", dim}, {"index", r.pick(-shape[at], shape[at] - 1)}};
  } else if (name == "expand" || name == "broadcast_to" || name == "expand_as") {
    for (auto& extent : shape) {
      if (r.coin()) extent = 1;
    }
    if (r.coin()) result.insert(result.begin(), r.pick(1, 3));
    if (name != "expand_as") attrs = {{"size", result}};
  } else if (name == "reshape" || name == "view" || name == "_unsafe_view" || name == "view_as" ||
             name == "reshape_as") {
    result = {elements};
    for (const std::int64_t factor : {2, 3}) {
      if (result.back() % factor == 0) {
        result.back() /= factor;
        result.insert(result.begin() + r.pick(0, static_cast<std::int64_t>(result.size())), factor);
      }
    }
    if (name == "reshape") attrs = {{"shape", result}};
    if (name == "view" || name == "_unsafe_view") attrs = {{"size", result}};
  } else if (name == "flatten") {
    const std::int64_t end = r.pick(dim, rank - 1);
    std::int64_t joined = 1;
    for (std::int64_t i = dim; i <= end; ++i) joined *= shape[static_cast<std::size_t>(i)];
    result.erase(result.begin() + dim, result.begin() + end + 1);
    result.insert(result.begin() + dim, joined);
    attrs = {{"start_dim", dim}, {"end_dim", end}};
  } else if (name == "unflatten") {
    shape[at] = 6;
    result[at] = 3;
    result.insert(result.begin() + dim, 2);
    attrs = {{"dim", dim}, {"sizes", r.coin() ? Ints{2, 3} : Ints{2, -1}}};
  } else if (name == "squeeze") {
    shape[at] = 1;
    result.erase(result.begin() + dim);
    if (op == "aten.squeeze.default") {
      std::erase(result, 1);
    } else {
      attrs = {{"dim", dim}};
      if (op.ends_with("dims")) attrs = {{"dim", Ints{dim}}};
    }
  } else if (name == "unsqueeze") {
    result.insert(result.begin() + dim, 1);
    attrs = {{"dim", dim}};
  }
  c.operand(shape, true);
  if (name == "expand_as" || name == "view_as" || name == "reshape_as") c.operand(result);
  if (name.ends_with("dropout") || name.ends_with("dropout_"))
    attrs = {{"p", 0.5}, {"train", false}};
  c.finish(op, result, attrs);
}

/// Ops of several results: the node y gives them all, and each is an output.
void split(Case& c, const std::string& op) {
  Random& r = c.random;
  Shape shape = r.shape(1, 4);
  const std::int64_t dim = r.pick(0, static_cast<std::int64_t>(shape.size()) - 1);
  const auto at = static_cast<std::size_t>(dim);
  shape[at] = r.one_of<std::int64_t>({4, 6, 16, 32});
  const std::int64_t extent = shape[at];
  Ints sizes;
  Json attrs = {{"dim", dim}};
  if (op == "aten.unbind.int") {
    sizes.assign(static_cast<std::size_t>(extent), 1);
  } else if (op == "aten.split.Tensor" || op == "aten.chunk.default") {
    const std::int64_t chunks = r.pick(1, 3);
    const std::int64_t size = (extent + chunks - 1) / chunks;
    for (std::int64_t begin = 0; begin < extent; begin += size) {
      sizes.push_back(std::min(size, extent - begin));
    }
    if (op == "aten.chunk.default") attrs["chunks"] = chunks;
    if (op == "aten.split.Tensor") attrs["split_size"] = size;
  } else {
    sizes = {1, extent - 1};
    attrs[op == "aten.split.sizes" ? "split_size" : "split_sizes"] = sizes;
  }
  std::vector<Shape> results;
  for (const std::int64_t size : sizes) {
    results.push_back(shape);
    results.back()[at] = size;
    if (op == "aten.unbind.int") results.back().erase(results.back().begin() + dim);
  }
  c.operand(shape);
  c.graph.node_with_results("y", op, c.operands, results, attrs, c.dtype);
  for (std::size_t i = 0; i < results.size(); ++i) c.graph.output("y_" + std::to_string(i));
}

void getitem(Case& c, const std::string& op) {
  const Shape shape = c.random.shape(1, 3);
  c.operand(shape);
  c.operand(shape);
  c.finish(op, shape, {{"index", c.random.pick(-2, 1)}});
}

Generator generator_of(const std::string& op) {
  const auto has = [&](std::string_view text) { return op.find(text) != std::string::npos; };
  if (op.starts_with("aten.conv") && !has("contiguous")) return convolution;
  if (has("adaptive")) return adaptive_pool;
  if (has("_pool")) return pool;
  if (has("batch_norm")) return batch_norm;
  if (has("group_norm")) return group_norm;
  if (has("layer_norm") || has("rms_norm")) return row_norm;
  if (has("scaled_dot_product")) return attention;
  if (op == "aten.linear.default") return linear;
  if (has("addmm") || has("baddbmm")) return addmm;
  if (op == "aten.mm.default" || has(".bmm") || has("matmul")) return product;
  if (has("softmax")) return softmax;
  if (has("mean") || has(".sum.") || has("amax") || has("amin")) return reduction;
  if (has("embedding")) return embedding;
  if (has("arange")) return arange;
  if (has("aten.to.") || has("_to_copy") || has("type_as")) return cast;
  if (has("pad.") || has("pad_nd")) return pad;
  if (has(".cat.") || has("concat") || has("stack")) return concatenation;
  if (has("split") || has("chunk") || has("unbind")) return split;
  if (has("getitem")) return getitem;
  if (has("channel_norm")) return channel_norm;
  for (const std::string_view name : {"add", "sub", "mul", "div", "maximum", "minimum", "pow"}) {
    if (op.starts_with("aten." + std::string(name) + ".") ||
        op.starts_with("aten." + std::string(name) + "_.") ||
        op.starts_with("aten.r" + std::string(name))) {
      return binary;
    }
  }
  for (const std::string_view name :
       {"relu", "elu", "silu", "mish", "sigmoid", "tanh", "swish", "abs", "exp.", "exp_.", "neg",
        "sqrt", "square", "log", "clamp", "softplus"}) {
    if (has(name) && !has("expand")) return unary;
  }
  return movement;
}

/// Values that bfloat16 holds, so that both dtypes get the same.
Tensor random_values(const TensorInfo& info, Values kind, Random& random) {
  Tensor tensor(info.dtype, info.shape);
  for (std::int64_t i = 0; i < tensor.element_count(); ++i) {
    double value = static_cast<double>(random.pick(-32, 32)) / 16.0;
    if (kind == Values::kPositive) value = static_cast<double>(random.pick(4, 40)) / 16.0;
    if (kind == Values::kAwayFromZero) {
      value = static_cast<double>(random.pick(8, 32)) / (random.coin() ? 16.0 : -16.0);
    }
    if (kind == Values::kIndices) value = static_cast<double>(random.pick(0, 7));
    switch (info.dtype) {
      case DType::kFloat32:
        tensor.as_mutable<float>()[i] = static_cast<float>(value);
        break;
      case DType::kBFloat16:
        tensor.as_mutable<std::uint16_t>()[i] = float_to_bfloat16(static_cast<float>(value));
        break;
      case DType::kInt64:
        tensor.as_mutable<std::int64_t>()[i] = static_cast<std::int64_t>(value);
        break;
      case DType::kInt32:
        tensor.as_mutable<std::int32_t>()[i] = static_cast<std::int32_t>(value);
        break;
      default:  // zeros do for what only lends its dtype
        break;
    }
  }
  return tensor;
}

/// Runs the whole graph on one device.
std::vector<Tensor> run_on(Graph& graph, const std::string& device, const Target& target,
                           const std::vector<Tensor>& weights, const std::vector<Tensor>& inputs) {
  for (Node& node : graph.nodes()) node.device = device;
  const PartitionPlan plan = single_partition_plan(graph, device);
  ExecutorOptions options;
  options.threads = 1;
  return Executor(graph, plan, target, weights, options).run(inputs, nullptr);
}

/// What the cpu device computes from the same values. libtorch's own bfloat16 rounds in between and
/// lacks some transposed convolutions, so arithmetic is done in float32 there; what moves or
/// converts elements is compared in its own dtypes.
std::vector<Tensor> reference(Graph& graph, const std::string& op, std::string document,
                              const Target& target, const std::vector<Tensor>& weights,
                              const std::vector<Tensor>& inputs) {
  const bool converts = op.find(".to.") != std::string::npos ||
                        op.find("_to_copy") != std::string::npos ||
                        op.find("type_as") != std::string::npos;
  if (converts || document.find("bfloat16") == std::string::npos) {
    return run_on(graph, "cpu", target, weights, inputs);
  }
  for (std::size_t at = 0; (at = document.find("bfloat16", at)) != std::string::npos;) {
    document.replace(at, 8, "float32");
  }
  Graph wide = read_valid_graph(document, "reference");
  const auto widened = [](std::vector<Tensor> tensors) {
    for (Tensor& tensor : tensors) {
      if (tensor.dtype() != DType::kBFloat16) continue;
      Tensor copy(DType::kFloat32, tensor.shape());
      for (std::int64_t i = 0; i < tensor.element_count(); ++i) {
        copy.as_mutable<float>()[i] = bfloat16_to_float(tensor.as<std::uint16_t>()[i]);
      }
      tensor = copy;
    }
    return tensors;
  };
  std::vector<Tensor> results = run_on(wide, "cpu", target, widened(weights), widened(inputs));
  for (Tensor& tensor : results) {
    if (tensor.dtype() != DType::kFloat32) continue;
    Tensor copy(DType::kBFloat16, tensor.shape());
    for (std::int64_t i = 0; i < tensor.element_count(); ++i) {
      copy.as_mutable<std::uint16_t>()[i] = float_to_bfloat16(tensor.as<float>()[i]);
    }
    tensor = copy;
  }
  return results;
}

/// Empty, or how the first element that is out of tolerance differs. bfloat16 results differ by
/// roundings of sums, so their tolerance is relative to the tensor's largest value.
std::string difference(const Tensor& actual, const Tensor& expected) {
  if (actual.dtype() != expected.dtype() || actual.shape() != expected.shape()) {
    return "dtype or shape differs";
  }
  double largest = 0;
  for (std::int64_t i = 0; i < expected.element_count(); ++i) {
    const double value = std::abs(expected.value_as_double(i));
    if (std::isfinite(value)) largest = std::max(largest, value);
  }
  const bool narrow = expected.dtype() == DType::kBFloat16;
  const bool exact = !narrow && expected.dtype() != DType::kFloat32;
  for (std::int64_t i = 0; i < expected.element_count(); ++i) {
    const double a = actual.value_as_double(i);
    const double b = expected.value_as_double(i);
    if (std::isnan(a) && std::isnan(b)) continue;
    if (std::isinf(b) && a == b) continue;
    double limit = narrow ? 2e-2 + 2e-2 * std::max(1.0, largest) : 1e-4 + 1e-3 * std::abs(b);
    if (exact) limit = 0;
    if (!(std::abs(a - b) <= limit)) {
      return "element " + std::to_string(i) + " is " + std::to_string(a) + ", expected " +
             std::to_string(b);
    }
  }
  return {};
}

const Device& npu_device_of(const Target& target) { return *target.find_device("npu"); }

std::vector<std::string> table_ops(const Device& device) {
  std::vector<std::string> result;
  for (const auto& [type, rules] : device.rules_by_type) result.push_back(type);
  std::sort(result.begin(), result.end());
  return result;
}

std::int64_t setting(const char* name, std::int64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoll(text, nullptr, 10);
}

}  // namespace

TEST_CASE("random nodes of every op in the npu table agree with the cpu device", "[differential]") {
  ::setenv("NPU_BACKEND_PATH", npu::test::backend_dir(), 1);
  const Target target = load_target("host");
  const Device& npu = npu_device_of(target);
  const std::vector<std::string> ops = table_ops(npu);
  CHECK(ops.size() >= 70);
  const bool bounded = std::getenv("NPU_DIFFERENTIAL_CASES") == nullptr;
  const std::int64_t rounds = setting("NPU_DIFFERENTIAL_CASES", 6);
  const auto seed = static_cast<std::uint64_t>(setting("NPU_DIFFERENTIAL_SEED", 1));
  const auto start = std::chrono::steady_clock::now();
  std::int64_t cases = 0;
  std::set<std::string> failed;
  for (std::int64_t round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < ops.size(); ++i) {
      const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
      if (bounded && round > 0 && elapsed.count() > kSeconds) break;
      for (const std::string dtype : {"float32", "bfloat16"}) {
        Random random(seed * 1000003 + static_cast<std::uint64_t>(round) * 4093 + i * 2 +
                      (dtype == "float32" ? 0 : 1));
        std::string fault;
        std::string document;
        try {
          Case one(random, dtype);
          generator_of(ops[i])(one, ops[i]);
          document = one.graph.text();
          Graph graph = one.graph.build();
          const SupportResult support = check_support(graph, NodeId{0}, npu);
          if (!support.supported) fault = "npu-tag refuses it: " + support.reason;
          std::vector<Tensor> weights(graph.tensors().size());
          std::vector<Tensor> inputs;
          for (std::size_t t = 0; t < weights.size(); ++t) {
            const TensorInfo& info = graph.tensors()[t];
            if (info.kind != TensorKind::kWeight) continue;
            weights[t] = random_values(info, one.values.at(info.name), random);
          }
          for (const TensorId id : graph.graph_inputs()) {
            inputs.push_back(
                random_values(graph.tensor(id), one.values.at(graph.tensor(id).name), random));
          }
          const auto expected = reference(graph, ops[i], document, target, weights, inputs);
          const auto actual = run_on(graph, "npu", target, weights, inputs);
          for (std::size_t o = 0; fault.empty() && o < expected.size(); ++o) {
            fault = difference(actual[o], expected[o]);
          }
          ++cases;
        } catch (const Error& error) {
          fault = error.what();
        }
        if (!fault.empty() && failed.insert(ops[i]).second) {
          INFO(document);
          CHECK(fault == "");
        }
      }
    }
  }
  INFO("ops that failed: " << failed.size());
  CHECK(cases >= static_cast<std::int64_t>(2 * ops.size()));
}

TEST_CASE("npu-tag refuses nodes just outside the npu table", "[differential]") {
  const Target target = load_target("host");
  const Device& npu = npu_device_of(target);
  const auto takes = [&](GraphBuilder& graph) {
    return check_support(graph.build(), NodeId{0}, npu).supported;
  };
  std::set<std::string> any_dtype;
  for (const auto& [type, rules] : npu.rules_by_type) {
    for (const std::size_t index : rules) {
      const OpRule& rule = npu.rules[index];
      const auto& dtypes = rule.dtypes.any.empty() && rule.dtypes.by_argument.empty()
                               ? std::vector<DType>{}
                               : rule.dtypes.any;
      if (dtypes.empty() ||
          std::find(dtypes.begin(), dtypes.end(), DType::kFloat16) != dtypes.end()) {
        any_dtype.insert(type);
      }
    }
  }
  std::int64_t refused = 0;
  for (const std::string& op : table_ops(npu)) {
    if (any_dtype.contains(op) || op.find("arange") != std::string::npos) continue;
    INFO(op);
    Random random(7);
    Case half(random, "float16");
    generator_of(op)(half, op);
    CHECK_FALSE(takes(half.graph));
    ++refused;
  }
  CHECK(refused > 60);

  const auto refuses = [&](const std::string& op, const std::vector<Shape>& operands,
                           const Shape& result, const Json& attrs) {
    GraphBuilder graph;
    std::vector<std::string> names;
    for (std::size_t i = 0; i < operands.size(); ++i) {
      names.push_back("x" + std::to_string(i));
      graph.input(names.back(), operands[i]);
    }
    graph.node("y", op, names, result, attrs).output("y");
    INFO(op << " " << attrs.dump());
    CHECK_FALSE(takes(graph));
  };
  refuses("aten.conv2d.default", {{3, 8, 8}, {4, 3, 3, 3}}, {4, 6, 6}, Json::object());
  refuses("aten.conv3d.default", {{3, 5, 8, 8}, {4, 3, 3, 3, 3}}, {4, 3, 6, 6}, Json::object());
  refuses("aten.conv_transpose2d.input", {{3, 8, 8}, {3, 4, 3, 3}}, {4, 10, 10}, Json::object());
  refuses("aten.batch_norm.default", {{2, 3, 4}, {3}, {3}, {3}, {3}}, {2, 3, 4},
          {{"training", true}, {"momentum", 0.1}, {"eps", 1e-5}, {"cudnn_enabled", true}});
  refuses("aten.batch_norm.default", {{3}, {3}, {3}, {3}, {3}}, {3},
          {{"training", false}, {"momentum", 0.1}, {"eps", 1e-5}, {"cudnn_enabled", true}});
  refuses("aten.max_pool1d.default", {{1, 2, 3, 8}}, {1, 2, 3, 4}, {{"kernel_size", {2}}});
  refuses("aten.avg_pool3d.default", {{2, 3, 8}}, {2, 3, 4}, {{"kernel_size", {2, 2, 2}}});
  refuses("aten.group_norm.default", {{4}}, {4}, {{"num_groups", 2}});
  refuses("aten.hardtanh.default", {{4}}, {4}, {{"min_val", 2.0}, {"max_val", 1.0}});
  refuses("aten.elu.default", {{4}}, {4}, {{"scale", 2.0}});
  refuses("aten.celu.default", {{4}}, {4}, {{"alpha", -1.0}});
  refuses("aten.softplus.default", {{4}}, {4}, {{"beta", 2.0}});
  refuses("aten.pad.default", {{4, 4}}, {4, 6}, {{"pad", {1, 1}}, {"mode", "reflect"}});
  refuses("aten.dropout.default", {{4}}, {4}, {{"p", 0.5}, {"train", true}});
  refuses("aten.scaled_dot_product_attention.default", {{1, 4, 2}, {1, 4, 2}, {1, 4, 2}}, {1, 4, 2},
          {{"dropout_p", 0.5}});
  refuses("aten.relu.default", {{0, 4}}, {0, 4}, Json::object());
  refuses("aten._softmax.default", {{4}}, {4}, {{"dim", 0}, {"half_to_float", true}});
}

}  // namespace npu
