// SPDX-License-Identifier: Apache-2.0
#include "random_nodes.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <string_view>

namespace npu::test {

Shape broadcast_from(Random& random, const Shape& shape) {
  Shape result = shape;
  for (auto& extent : result) {
    if (random.pick(0, 3) == 0) extent = 1;
  }
  const std::int64_t cut = random.pick(0, static_cast<std::int64_t>(shape.size()));
  if (random.pick(0, 2) == 0) result.erase(result.begin(), result.begin() + cut);
  return result;
}

namespace {

using Ints = std::vector<std::int64_t>;
using Generator = std::function<void(RandomNode&, const std::string& op)>;

std::int64_t digit(const std::string& op, const std::string& before) {
  const std::size_t at = op.find(before);
  return at == std::string::npos ? 0 : op[at + before.size()] - '0';
}

void convolution(RandomNode& c, const std::string& op) {
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
  Ints output_padding;
  std::string mode;
  if (op.ends_with(".padding")) mode = r.one_of<std::string>({"same", "valid"});
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t kernel = r.pick(1, 3);
    stride.push_back(mode == "same" ? 1 : r.pick(1, 3));
    dilation.push_back(r.pick(1, 2));
    padding.push_back(mode.empty() ? r.pick(0, 2) : 0);
    output_padding.push_back(0);
    const std::int64_t span = dilation.back() * (kernel - 1) + 1;
    const std::int64_t extent = r.pick(std::max<std::int64_t>(span, 3), count == 3 ? 6 : 10);
    weight.push_back(kernel);
    input.push_back(extent);
    if (transposed) {
      output_padding.back() = r.pick(0, std::max(stride.back(), dilation.back()) - 1);
      const std::int64_t made =
          (extent - 1) * stride.back() - 2 * padding.back() + span + output_padding.back();
      if (made < 1) padding.back() = 0;
      result.push_back((extent - 1) * stride.back() - 2 * padding.back() + span +
                       output_padding.back());
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
  if (transposed) attrs["output_padding"] = output_padding;
  if (general) attrs["transposed"] = transposed;
  if (general) attrs["output_padding"] = output_padding;
  c.finish(op, result, attrs);
}

void pool(RandomNode& c, const std::string& op) {
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

void adaptive_pool(RandomNode& c, const std::string& op) {
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

void batch_norm(RandomNode& c, const std::string& op) {
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

void row_norm(RandomNode& c, const std::string& op) {
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

void group_norm(RandomNode& c, const std::string& op) {
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

void linear(RandomNode& c, const std::string& op) {
  Random& r = c.random;
  Shape shape = r.shape(1, 4, 20);
  const std::int64_t out = r.pick(1, 40);
  c.operand(shape);
  c.operand({out, shape.back()}, true);
  if (r.coin()) c.operand({out}, true);
  shape.back() = out;
  c.finish(op, shape);
}

void addmm(RandomNode& c, const std::string& op) {
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
  Shape self = broadcast_from(r, result);
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

void product(RandomNode& c, const std::string& op) {
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
    const Shape a = broadcast_from(r, batch);
    const Shape b = broadcast_from(r, batch);
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

void attention(RandomNode& c, const std::string& op) {
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

void unary(RandomNode& c, const std::string& op) {
  Random& r = c.random;
  const Shape shape = r.shape(0, 5);
  const bool takes_integers = op.starts_with("aten.neg") || op.starts_with("aten.abs.") ||
                              op.starts_with("aten.relu.") || op.starts_with("aten.clamp");
  if (takes_integers && c.mixes_dtypes() && r.pick(0, 2) == 0) {
    const auto type = r.one_of<std::string>({"int8", "int16", "int32", "int64"});
    c.operand(shape, false, Values::kAny, type);
    Json bounds = Json::object();
    if (op.find("clamp") != std::string::npos && op.find("_max") == std::string::npos) {
      bounds["min"] = -3;
    }
    if (op.find("clamp") != std::string::npos && op.find("_min") == std::string::npos) {
      bounds["max"] = 2;
    }
    return c.finish(op, shape, bounds, type);
  }
  const bool positive = op.find("sqrt") != std::string::npos || op.starts_with("aten.log.");
  const bool inverts = op.find("reciprocal") != std::string::npos;
  c.operand(shape, false,
            positive  ? Values::kPositive
            : inverts ? Values::kAwayFromZero
                      : Values::kAny);
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

void channel_norm(RandomNode& c, const std::string& op) {
  const Shape shape = c.random.shape(3, 5);
  c.operand(shape, false, Values::kAny);
  c.finish(op, shape, {{"direction", c.random.coin()}, {"layout", "blocked16"}});
}

void binary(RandomNode& c, const std::string& op) {
  Random& r = c.random;
  const bool power = op.find("pow") != std::string::npos;
  const bool divides = op.find("div") != std::string::npos;
  const bool has_alpha = op.find("add") != std::string::npos || op.find("sub") != std::string::npos;
  const bool takes_integers = !power && op.find("div_") == std::string::npos;
  if (takes_integers && c.mixes_dtypes() && r.pick(0, 2) == 0) return draw_typed_binary(c, op);
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
    c.operand(broadcast_from(r, shape), true, divides ? Values::kAwayFromZero : Values::kAny);
  }
  c.finish(op, shape, attrs);
}

void softmax(RandomNode& c, const std::string& op) {
  Random& r = c.random;
  const Shape shape = r.shape(1, 4, 9);
  const auto rank = static_cast<std::int64_t>(shape.size());
  Json attrs = {{"dim", r.pick(-rank, rank - 1)}};
  if (op.find("._") != std::string::npos) attrs["half_to_float"] = false;
  c.operand(shape);
  c.finish(op, shape, attrs);
}

void reduction(RandomNode& c, const std::string& op) {
  Random& r = c.random;
  const Shape shape = r.shape(1, 5);
  const bool is_extremum = op.find("am") != std::string::npos;
  const bool is_mean = op.find("mean") != std::string::npos;
  std::string type = c.dtype;
  if (!is_mean && c.mixes_dtypes() && r.pick(0, 2) == 0)
    type = r.one_of<std::string>({"int32", "int64", "bool"});
  c.operand(shape, false, Values::kAny, type);
  if (!is_extremum && type != c.dtype) type = "int64";
  if (op == "aten.mean.default" || op == "aten.sum.default") {
    return c.finish(op, {}, Json::object(), type);
  }
  Ints dims;
  Shape result;
  const bool keep = r.coin();
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const bool reduced = r.coin() || (dims.empty() && i + 1 == shape.size());
    if (reduced) dims.push_back(static_cast<std::int64_t>(i));
    if (!reduced) result.push_back(shape[i]);
    if (reduced && keep) result.push_back(1);
  }
  c.finish(op, result, {{"dim", dims}, {"keepdim", keep}}, type);
}

void embedding(RandomNode& c, const std::string& op) {
  Random& r = c.random;
  const std::int64_t width = r.pick(1, 20);
  c.operand({8, width}, true);
  Shape shape = r.shape(1, 3);
  c.operand(shape, false, Values::kIndices, r.coin() ? "int64" : "int32");
  shape.push_back(width);
  c.finish(op, shape);
}

void arange(RandomNode& c, const std::string& op) {
  Random& r = c.random;
  const std::int64_t start = op == "aten.arange.default" ? 0 : r.pick(-5, 5);
  const std::int64_t step = op == "aten.arange.start_step" ? r.pick(1, 3) : 1;
  const std::int64_t end = start + r.pick(1, 20);
  Json attrs = {{"end", end}, {"dtype", "torch.int64"}};
  if (op != "aten.arange.default") attrs["start"] = start;
  if (op == "aten.arange.start_step") attrs["step"] = step;
  c.finish(op, {(end - start + step - 1) / step}, attrs, "int64");
}

void cast(RandomNode& c, const std::string& op) {
  Random& r = c.random;
  const std::vector<std::string> types{"float32", "float64", "bfloat16", "float16", "int8",
                                       "uint8",   "int16",   "int32",    "int64",   "bool"};
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

void pad(RandomNode& c, const std::string& op) {
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

void concatenation(RandomNode& c, const std::string& op) {
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

void movement(RandomNode& c, const std::string& op) {
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
void split(RandomNode& c, const std::string& op) {
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
  } else if (op == "aten.tensor_split.indices") {
    sizes = {1, extent - 2, 1};
    attrs["indices"] = Ints{1, r.coin() ? extent - 1 : -1};
  } else if (op == "aten.tensor_split.sections") {
    const std::int64_t sections = r.pick(1, 3);
    for (std::int64_t i = 0; i < sections; ++i) {
      sizes.push_back(extent / sections + (i < extent % sections ? 1 : 0));
    }
    attrs["sections"] = sections;
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

void getitem(RandomNode& c, const std::string& op) {
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
       {"relu",  "elu",      "silu",       "mish",      "sigmoid",   "tanh",      "swish",
        "abs",   "exp.",     "exp_.",      "neg",       "sqrt",      "square",    "log",
        "clamp", "softplus", "reciprocal", "aten.sin.", "aten.cos.", "aten.erf.", "aten.floor.",
        "ceil",  "round",    "trunc",      "aten.sign."}) {
    if (has(name) && !has("expand")) return unary;
  }
  return movement;
}

void set_value(Tensor& tensor, std::int64_t i, double value) {
  const auto set = [&]<typename T>(T element) { tensor.as_mutable<T>()[i] = element; };
  switch (tensor.dtype()) {
    case DType::kFloat32:
      return set(static_cast<float>(value));
    case DType::kFloat64:
      return set(value);
    case DType::kBFloat16:
      return set(float_to_bfloat16(static_cast<float>(value)));
    case DType::kFloat16:
      return set(float_to_float16(static_cast<float>(value)));
    case DType::kInt8:
      return set(static_cast<std::int8_t>(value));
    case DType::kUInt8:
      return set(static_cast<std::uint8_t>(std::abs(value)));
    case DType::kInt16:
      return set(static_cast<std::int16_t>(value));
    case DType::kInt32:
      return set(static_cast<std::int32_t>(value));
    case DType::kInt64:
      return set(static_cast<std::int64_t>(value));
    case DType::kBool:
      return set(value > 0.0);
    default:
      return;
  }
}

}  // namespace

void draw_node(RandomNode& node, const std::string& op) {
  if (draw_layer(node, op)) return;
  if (const NodeGenerator typed = typed_generator_of(op)) return typed(node, op);
  generator_of(op)(node, op);
}

Tensor random_values(const TensorInfo& info, Values kind, Random& random) {
  Tensor tensor(info.dtype, info.shape);
  for (std::int64_t i = 0; i < tensor.element_count(); ++i) {
    double value = static_cast<double>(random.pick(-32, 32)) / 16.0;
    if (kind == Values::kPositive) value = static_cast<double>(random.pick(4, 40)) / 16.0;
    if (kind == Values::kAwayFromZero) {
      value = static_cast<double>(random.pick(8, 32)) / (random.coin() ? 16.0 : -16.0);
    }
    if (kind == Values::kIndices) value = static_cast<double>(random.pick(0, 7));
    if (kind == Values::kAnyIndices) value = static_cast<double>(random.pick(-8, 7));
    // As many integers around zero, so that comparisons go both ways.
    if (is_integer(info.dtype) && kind <= Values::kAwayFromZero) value = std::round(value * 4);
    set_value(tensor, i, value);
  }
  return tensor;
}

}  // namespace npu::test
