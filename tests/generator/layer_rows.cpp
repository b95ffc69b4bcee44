// SPDX-License-Identifier: Apache-2.0
// Layers: poolings, norms, products with addends, attention, recurrent ones, conversions to int8.
#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "npu/support/ids.hpp"
#include "op_rows.hpp"
#include "ops/op_name.hpp"

namespace npu::test {
namespace {

Values plus(const Values& a, const Values& b) {
  return zip(a, b, a.dtype, [](Bounded x, Bounded y) { return x + y; });
}
Values times(Values a, double factor) {
  if (factor == 1) return a;
  for (Bounded& element : a.data) element = element * number(factor);
  return a;
}
// ---- Poolings ----

void draw_pool(NodeDraw& d) {
  const std::int64_t count = spatial_rank(d.op);
  const bool average = d.op.find("avg") != std::string::npos,
             adaptive = d.op.find("adaptive") != std::string::npos;
  Shape otherwise{d.pick(1, 2), d.one_of<std::int64_t>({1, 3, 8, 16, 24})};
  for (std::int64_t i = 0; i < count; ++i) otherwise.push_back(d.pick(1, 9));
  if (d.chance(20)) otherwise.erase(otherwise.begin());
  const Shape shape = d.subject(count + 1, count + 2, Fill::kAny, is_filled, otherwise);
  Ints kernel, stride, padding, dilation, size;
  const bool equal = d.chance(60);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t extent = shape[index_of(std::ssize(shape) - count + i)];
    size.push_back(d.pick(1, 5));
    kernel.push_back(std::min(equal && i > 0 ? kernel[0] : d.pick(1, 4), extent));
    stride.push_back(d.pick(1, 3));
    padding.push_back(d.pick(0, kernel.back() / 2));
    const bool dilates =
        !average && d.chance(25) && 2 * (kernel.back() - 1) + 1 <= extent + 2 * padding.back();
    dilation.push_back(dilates ? 2 : 1);
  }
  if (adaptive) {
    d.attrs["output_size"] = size;
    return;
  }
  d.attrs = {{"kernel_size", kernel}, {"padding", padding}, {"ceil_mode", d.chance(50)}};
  if (d.chance(85)) d.attrs["stride"] = stride;
  if (!average) d.attrs["dilation"] = dilation;
  if (average) d.attrs["count_include_pad"] = d.chance(50);
  if (average && count > 1 && d.chance(20)) d.attrs["divisor_override"] = d.pick(1, 5);
}

/// The windows of one result along each dimension.
struct Window {
  std::int64_t begin, end, step, padded;
};

Values pooled(const Values& x, const Shape& out,
              const std::function<Window(std::size_t dim, std::int64_t at)>& window_of,
              const std::function<Bounded(const std::vector<Bounded>&, double padded)>& join) {
  const std::size_t count = out.size(), skip = x.shape.size() - count;
  Shape shape(x.shape.begin(), x.shape.begin() + static_cast<std::ptrdiff_t>(skip));
  shape.insert(shape.end(), out.begin(), out.end());
  Values result = make_values(shape, x.dtype);
  for_each_place(shape, [&](std::size_t i, const Shape& place) {
    std::vector<Window> windows;
    Shape taps;
    double padded = 1;
    for (std::size_t k = 0; k < count; ++k) {
      windows.push_back(window_of(k, place[skip + k]));
      taps.push_back((windows[k].end - windows[k].begin + windows[k].step - 1) / windows[k].step);
      padded *= static_cast<double>(windows[k].padded);
    }
    std::vector<Bounded> elements;
    for_each_place(taps, [&](std::size_t, const Shape& tap) {
      Shape from = place;
      bool is_inside = true;
      for (std::size_t k = 0; k < count; ++k) {
        from[skip + k] = windows[k].begin + tap[k] * windows[k].step;
        is_inside = is_inside && from[skip + k] >= 0 && from[skip + k] < x.shape[skip + k];
      }
      if (is_inside) elements.push_back(x.at(from));
    });
    result.data[i] = join(elements, padded);
  });
  return result;
}

Results pool(const Call& call) {
  const Values& x = call.operand(0);
  const auto count = static_cast<std::size_t>(spatial_rank(call.op()));
  const bool average = call.is("avg");
  const std::size_t skip = x.shape.size() - count;
  if (call.is("adaptive")) {
    const Ints size = call.integers("output_size");
    const auto window_of = [&](std::size_t k, std::int64_t at) {
      const std::int64_t extent = x.shape[skip + k];
      return Window{at * extent / size[k], ((at + 1) * extent + size[k] - 1) / size[k], 1, 1};
    };
    return {pooled(x, size, window_of,
                   [](const std::vector<Bounded>& elements, double) { return mean_of(elements); })};
  }
  const Ints kernel = call.integers("kernel_size"), padding = call.integers("padding");
  Ints stride = call.integers("stride"), dilation(count, 1), out;
  if (stride.empty()) stride = kernel;
  if (!average) dilation = call.integers("dilation");
  for (std::size_t k = 0; k < count; ++k) {
    const std::int64_t extent = x.shape[skip + k], span = dilation[k] * (kernel[k] - 1) + 1;
    const std::int64_t room =
        extent + 2 * padding[k] - span + (call.boolean("ceil_mode") ? stride[k] - 1 : 0);
    if (room < 0) refuse("no window fits");
    out.push_back(room / stride[k] + 1);
    // A window that begins in the padding behind is left out.
    if (call.boolean("ceil_mode") && (out.back() - 1) * stride[k] >= extent + padding[k])
      --out.back();
    if (out.back() < 1) refuse("nothing is left");
  }
  const auto window_of = [&](std::size_t k, std::int64_t at) {
    const std::int64_t begin = at * stride[k] - padding[k],
                       end = begin + dilation[k] * (kernel[k] - 1) + 1;
    return Window{begin, end, dilation[k], std::min(end, x.shape[skip + k] + padding[k]) - begin};
  };
  return {pooled(x, out, window_of, [&](const std::vector<Bounded>& elements, double padded) {
    if (!average)
      return std::accumulate(elements.begin(), elements.end(), number(-HUGE_VAL), larger);
    const double own =
        call.boolean("count_include_pad") ? padded : static_cast<double>(elements.size());
    return elements.empty() ? number(0)
                            : sum_of(elements) / number(call.number_or("divisor_override", own));
  })};
}

// ---- Norms ----

void draw_norm(NodeDraw& d) {
  const std::string_view name = functional_name(d.op);
  Json none = Json::array();
  if (name == "layer_norm" || name == "rms_norm") {
    const Shape shape = d.subject(1, 5, Fill::kAny, is_filled);
    const Shape normalized(shape.end() - d.pick(1, std::min<std::int64_t>(2, std::ssize(shape))),
                           shape.end());
    if (d.chance(60)) d.beside(normalized, 90);
    if (d.operands.size() == 2 && name == "layer_norm" && d.chance(70)) d.beside(normalized, 90);
    d.attrs = {{"normalized_shape", normalized}, {"eps", d.one_of({1e-5, 1e-3})}};
    return;
  }
  const Shape shape =
      d.subject(name == "instance_norm" ? 3 : 2, 5, Fill::kAny, is_filled,
                {d.pick(1, 2), d.one_of<std::int64_t>({1, 5, 16, 24}), d.pick(2, 9), d.pick(1, 9)});
  const Shape channels{shape[1]};
  if (name == "group_norm") {
    std::int64_t groups = d.pick(1, 4);
    while (shape[1] % groups != 0) --groups;
    if (d.chance(60)) {
      d.beside(channels, 90);
      d.beside(channels, 90);
    }
    d.attrs = {{"num_groups", groups}, {"eps", 1e-3}};
    return;
  }
  const bool own = name == "instance_norm" && d.chance(60);
  const bool affine = d.chance(75);
  for (const char* argument : {"weight", "bias"}) {
    if (affine && (name == "batch_norm" || d.chance(70))) {
      d.beside(channels, 90);
    } else {
      none.push_back(argument);
    }
  }
  if (own) none.insert(none.end(), {"running_mean", "running_var"});
  if (!own) d.beside(channels, 90);
  if (!own) d.beside(channels, 90, Fill::kPositive);
  d.attrs = {{"momentum", 0.1}, {"eps", d.one_of({1e-5, 1e-3})}, {"cudnn_enabled", true}};
  if (name == "batch_norm") d.attrs["training"] = false;
  if (name == "instance_norm") d.attrs["use_input_stats"] = own;
  if (name == "instance_norm" || d.chance(50)) d.attrs["_none_args"] = none;
}

/// In place; `centred`: with the mean taken off.
void normalize(std::span<Bounded> row, double epsilon, bool centred) {
  Sum squares;
  const Bounded count = number(static_cast<double>(row.size()));
  const Bounded mean = centred ? mean_of(row) : number(0);
  for (Bounded& x : row) {
    if (centred) x = x - mean;
    squares.add_product(x, x);
  }
  const Bounded scale = square_root(squares.result() / count + number(epsilon));
  for (Bounded& x : row) x = x / scale;
}

Results norm(const Call& call) {
  const std::string_view name = call.name();
  Values x = call.tensor("input");
  const double epsilon = call.number_or("eps", Rounding::now().most < 1e5 ? 0x1p-10 : 0x1p-23);
  const Values* weight = call.find("weight");
  const Values* bias = call.find("bias");
  const Shape shape = x.shape;
  const bool rows = name == "layer_norm" || name == "rms_norm";
  if (name == "batch_norm" || (name == "instance_norm" && !call.boolean("use_input_stats"))) {
    const Values& mean = call.tensor("running_mean");
    const Values& variance = call.tensor("running_var");
    for_each_place(shape, [&](std::size_t i, const Shape& place) {
      const auto c = index_of(place.at(1));
      x.data[i] = (x.data[i] - mean.data[c]) / square_root(variance.data[c] + number(epsilon));
      // The mean may be scaled and taken off after the product.
      x.data[i].error += 2 * Rounding::now().unit * std::abs(mean.data[c].value) /
                         std::sqrt(variance.data[c].value + epsilon);
    });
  } else {
    const std::int64_t width = rows ? count_of(call.integers("normalized_shape"))
                               : name == "group_norm"
                                   ? count_of(shape) / shape[0] / call.integer("num_groups")
                                   : count_of(shape) / shape[0] / shape[1];
    if (width < 1 || std::ssize(x.data) % width != 0) refuse("the channels do not fit the groups");
    x.shape = {std::ssize(x.data) / width, width};
    along(x, 1, [&](std::span<Bounded> row) { normalize(row, epsilon, name != "rms_norm"); });
    x.shape = shape;
  }
  for_each_place(shape, [&](std::size_t i, const Shape& place) {
    std::size_t c = rows ? 0 : index_of(place[1]);
    if (rows && weight != nullptr) c = i % weight->data.size();
    if (weight != nullptr) x.data[i] = x.data[i] * weight->data[c];
    if (bias != nullptr) x.data[i] = x.data[i] + bias->data[c];
  });
  return {x};
}

// ---- Products ----

void draw_addmm(NodeDraw& d) {
  const std::int64_t rank = d.op.find("baddbmm") != std::string::npos ? 3 : 2;
  const Shape left = d.subject(rank, rank);
  const std::int64_t columns = std::max<std::int64_t>(d.extent(), 1);
  Shape right{left.back(), columns}, result{left[index_of(rank - 2)], columns};
  if (rank == 3) right.insert(right.begin(), left[0]);
  if (rank == 3) result.insert(result.begin(), left[0]);
  d.beside(right, 70);
  d.beside(d.chance(50) ? Shape{columns} : d.chance(50) ? result : d.broadcast_to(result), 70);
  if (d.operands.back().shape.empty())
    d.operands.back() = {.shape = {columns}, .dtype = d.dtype, .is_weight = true};
  std::rotate(d.operands.begin(), d.operands.end() - 1, d.operands.end());
  if (d.chance(40)) d.attrs["alpha"] = d.one_of({0.5, 2.0, 0.3});
  // libtorch 1.13 multiplies uninitialised memory by a beta of 0 where there are batches.
  if (d.chance(40)) d.attrs["beta"] = d.one_of({rank == 3 ? 0.5 : 0.0, 0.5, 2.0, 0.3});
}

Results addmm(const Call& call) {
  const bool batched = call.is("baddbmm");
  const Values product = contract(call.operand(1), batched ? "bmk" : "mk", call.operand(2),
                                  batched ? "bkn" : "kn", batched ? "bmn" : "mn");
  const Values scaled = times(product, call.number("alpha"));
  if (call.number("beta") == 0) return {scaled};
  const Values addend = times(call.tensor("self"), call.number("beta"));
  Values result = plus(scaled, addend);
  // Products may be added to it one after the other.
  Values none = result;
  for (Bounded& each : none.data) each = number(0);
  const Values spread = plus(none, addend);
  const double terms = static_cast<double>(call.operand(1).shape.back());
  // One factor may be multiplied by alpha first, or the addend be divided by it, and overflow.
  const double alpha = std::abs(call.number("alpha"));
  const double ratio = std::abs(call.number("beta")) / alpha;
  const auto overflows_by = [](const Values& values, double factor) {
    return std::ranges::any_of(values.data, [factor](Bounded x) {
      return std::isfinite(x.value) && std::abs(x.value) * factor > Rounding::now().most;
    });
  };
  if (overflows_by(call.operand(1), alpha) || overflows_by(call.tensor("self"), ratio))
    std::fill(result.data.begin(), result.data.end(), anything());
  for (std::size_t i = 0; i < result.data.size(); ++i) {
    if (!std::isfinite(spread.data[i].value)) continue;
    result.data[i].error += Rounding::now().unit * terms * std::abs(spread.data[i].value);
  }
  return {result};
}

/// One group, since ends of several would have to ascend.
void draw_grouped_product(NodeDraw& d) {
  const Shape left = d.subject(2, 2, Fill::kAny, is_filled);
  d.beside({1, left[1], std::max<std::int64_t>(d.extent(), 1)}, 70);
  d.indices({1}, left[0] + 1, false, DType::kInt32);
}

Results grouped_product(const Call& call) {
  const Values& right = call.tensor("mat2");
  const Values& ends = call.tensor("offs");
  const Values all = contract(call.tensor("self"), "mk", right, "gkn", "mgn");
  Values result = make_values({all.shape[0], all.shape[2]}, all.dtype);
  for_each_place(result.shape, [&](std::size_t i, const Shape& place) {
    std::int64_t group = 0;
    while (group < ends.extent(0) &&
           ends.data[index_of(group)].value <= static_cast<double>(place[0])) {
      ++group;
    }
    if (group < ends.extent(0)) result.data[i] = all.at({place[0], group, place[1]});
  });
  return {result};
}

void draw_matmul(NodeDraw& d) {
  const Shape left = d.subject(1, 4, Fill::kAny, is_filled);
  Shape right{left.back(), std::max<std::int64_t>(d.extent(17), 1)};
  if (d.chance(50) && left.size() > 2) {
    const Shape batch = d.broadcast_to(Shape(left.begin(), left.end() - 2));
    right.insert(right.begin(), batch.begin(), batch.end());
  } else if (d.chance(20)) {
    right.insert(right.begin(), d.pick(1, 3));
  } else if (d.chance(15)) {
    right = {left.back()};
  }
  d.beside(right, 50);
}

Results matmul(const Call& call) {
  Values a = call.operand(0), b = call.operand(1);
  const bool vector_a = a.rank() == 1, vector_b = b.rank() == 1;
  if (vector_a) a.shape.insert(a.shape.begin(), 1);
  if (vector_b) b.shape.push_back(1);
  const auto labels = [](const Values& x, const char* last) {
    return std::string("ABCD").substr(4 - index_of(x.rank() - 2)) + last;
  };
  Values result =
      contract(a, labels(a, "mk"), b, labels(b, "kn"), labels(a.rank() > b.rank() ? a : b, "mn"));
  if (vector_b) result.shape.pop_back();
  if (vector_a) result.shape.erase(result.shape.end() - (vector_b ? 1 : 2));
  return {result};
}

const std::initializer_list<const char*> kEquations{
    "ij,jk->ik",     "bhid,bhjd->bhij", "bij,bjk->bki", "bghij,bghjd->bghid",
    "...i,ij->...j", "i,j->ij",         "bij,kj->bik",  "ijk,ijk->i",
    "i,i->",         "kj,ji",           "ii,i->i",      "bij,ij->bj"};

void draw_einsum(NodeDraw& d) {
  const std::string equation = d.one_of(kEquations);
  const std::size_t comma = equation.find(','),
                    arrow = std::min(equation.find("->"), equation.size());
  std::map<char, std::int64_t> extents;
  const auto shape_of = [&](std::string labels) {
    Shape shape;
    if (labels.starts_with("...")) labels.replace(0, 3, "B");
    for (const char label : labels)
      shape.push_back(extents.try_emplace(label, d.pick(1, 6)).first->second);
    return shape;
  };
  const Shape left = shape_of(equation.substr(0, comma));
  const auto wanted = [&](const Shape& s) { return s == left; };
  d.subject(std::ssize(left), std::ssize(left), Fill::kAny, wanted, left);
  d.beside(shape_of(equation.substr(comma + 1, arrow - comma - 1)), 50);
  d.attrs = {{"equation", equation}, {"_tensor_list_sizes", Ints{2}}};
}

Results einsum(const Call& call) {
  std::string equation = call.text("equation");
  for (std::size_t at = 0; (at = equation.find("...")) != std::string::npos;)
    equation.replace(at, 3, "B");
  const std::size_t comma = equation.find(','), arrow = equation.find("->");
  const std::string left = equation.substr(0, comma),
                    right = equation.substr(
                        comma + 1, (arrow == std::string::npos ? arrow : arrow - comma - 1));
  std::string result;
  if (arrow != std::string::npos) result = equation.substr(arrow + 2);
  // Without an arrow: the labels that stand once, in order.
  for (char label = 'a'; arrow == std::string::npos && label <= 'z'; ++label) {
    if (std::count(equation.begin(), equation.end(), label) == 1) result += label;
  }
  return {contract(call.operand(0), left, call.operand(1), right, result)};
}

void draw_attention(NodeDraw& d) {
  const Shape query = d.subject(2, 4, Fill::kAny, is_filled);
  const std::int64_t keys = d.one_of<std::int64_t>({1, 3, 8, 17, 40});
  Shape key = query, value = query, mask = query;
  key[key.size() - 2] = value[value.size() - 2] = mask.back() = keys;
  if (d.chance(40)) value.back() = d.pick(1, 20);
  const std::size_t rank = query.size();
  if (rank >= 3 && query[rank - 3] % 2 == 0 && d.chance(40)) {
    key[rank - 3] /= 2, value[rank - 3] /= 2;
    d.attrs["enable_gqa"] = true;
  }
  d.beside(key, 10);
  d.beside(value, 10);
  if (d.chance(40)) {
    if (d.chance(30)) mask.erase(mask.begin(), mask.end() - 2);
    if (d.chance(30)) mask[mask.size() - d.pick(1, 2)] = 1;
    d.beside({.shape = mask, .dtype = d.chance(50) ? DType::kBool : d.dtype}, 50);
  } else if (d.chance(40)) {
    d.attrs["is_causal"] = true;
  }
  if (d.chance(20)) d.attrs["scale"] = 0.3;
}

Results attention(const Call& call) {
  const Values& q = call.tensor("query");
  const auto of_all_heads = [&](const char* name) {
    const Values& x = call.tensor(name);
    if (!call.boolean("enable_gqa")) return x;
    const std::size_t head = x.shape.size() - 3;
    const std::int64_t times = q.shape[head] / x.shape[head];
    Values all = x;
    all.shape[head] *= times;
    all.data.resize(x.data.size() * index_of(times));
    for_each_place(all.shape, [&](std::size_t i, Shape place) {
      place[head] /= times;
      all.data[i] = x.at(place);
    });
    return all;
  };
  const Values k = of_all_heads("key"), v = of_all_heads("value");
  const auto labels = [&](const Values& x, const char* last) {
    return std::string("ABCD").substr(0, index_of(x.rank() - 2)) + last;
  };
  const double scale = call.number_or("scale", 1 / std::sqrt(static_cast<double>(q.extent(-1))));
  Values scores = times(contract(q, labels(q, "md"), k, labels(k, "nd"), labels(q, "mn")), scale);
  // Minus infinity that no mask made: some devices give NaN for the query, as PyTorch 1.13 does,
  // others zeros.
  for (Bounded& score : scores.data) {
    score = score.value == -HUGE_VAL ? anything()
                                     : rounded(score.value, score.error, std::abs(score.value));
  }
  // A score that is masked is replaced on some devices; others add minus infinity.
  const auto masked_out = [](Bounded x) {
    return std::isfinite(x.value + x.error) ? number(-HUGE_VAL) : anything();
  };
  const Values* mask = call.find("attn_mask");
  if (mask != nullptr && mask->dtype == DType::kBool) {
    scores = zip(scores, *mask, q.dtype,
                 [&](Bounded x, Bounded keep) { return select(keep, x, masked_out(x)); });
  } else if (mask != nullptr) {
    scores = plus(scores, *mask);
  }
  if (call.boolean("is_causal")) {
    for_each_place(scores.shape, [&](std::size_t i, const Shape& place) {
      if (place.back() > place[place.size() - 2]) scores.data[i] = masked_out(scores.data[i]);
    });
  }
  along(scores, scores.rank() - 1, [&](std::span<Bounded> row) {
    const bool masked =
        std::all_of(row.begin(), row.end(), [](Bounded x) { return x.value == -HUGE_VAL; });
    if (masked) {
      std::fill(row.begin(), row.end(), number(0));
    } else {
      softmax_row(row, false);
    }
  });
  return {contract(scores, labels(scores, "mn"), v, labels(v, "nd"), labels(scores, "md"))};
}

// ---- Recurrent layers ----

void draw_recurrence(NodeDraw& d) {
  const bool is_lstm = d.op.find("lstm") != std::string::npos;
  const std::int64_t gates = is_lstm ? 4 : d.op.find("gru") != std::string::npos ? 3 : 1;
  const std::int64_t layers = d.pick(1, 2), directions = d.pick(1, 2),
                     hidden = d.one_of<std::int64_t>({1, 3, 8, 17});
  const bool has_biases = d.chance(50), batch_first = d.chance(50);
  const Shape input =
      d.subject(3, 3, Fill::kAny,
                [](const Shape& s) { return count_of(s) > 0 && s[0] * s[1] <= 40 && s[2] <= 20; },
                {d.pick(1, 5), d.pick(1, 8), d.pick(1, 9)});
  const Shape state{layers * directions, input[batch_first ? 0 : 1], hidden};
  d.beside(state, 60);
  if (is_lstm) d.beside(state, 60);
  for (std::int64_t i = 0; i < layers * directions; ++i) {
    d.beside({gates * hidden, i < directions ? input[2] : directions * hidden}, 100);
    d.beside({gates * hidden, hidden}, 100);
    if (has_biases) d.beside({gates * hidden}, 100);
    if (has_biases) d.beside({gates * hidden}, 100);
  }
  const std::int64_t parameters = layers * directions * (has_biases ? 4 : 2);
  d.attrs = {{"has_biases", has_biases},
             {"num_layers", layers},
             {"dropout", 0.0},
             {"train", false},
             {"bidirectional", directions == 2},
             {"batch_first", batch_first},
             {"_tensor_list_sizes", is_lstm ? Ints{2, parameters} : Ints{parameters}}};
}

Bounded sigmoid(Bounded x) {
  return apply([](double v) { return 1 / (1 + std::exp(-v)); }, x);
}
Bounded tanh_of(Bounded x) {
  return apply([](double v) { return std::tanh(v); }, x);
}

/// Weights of one layer and direction.
struct Cell {
  const Values *w, *u, *b, *c;

  /// Rows of gates: from the input and, apart, from the state.
  std::pair<Bounded, Bounded> gate(const std::vector<Bounded>& x, const std::vector<Bounded>& h,
                                   std::size_t row) const {
    Sum own, other;
    for (std::size_t i = 0; i < x.size(); ++i) own.add_product(w->data[row * x.size() + i], x[i]);
    for (std::size_t i = 0; i < h.size(); ++i) other.add_product(u->data[row * h.size() + i], h[i]);
    if (b != nullptr) own.add(b->data[row]);
    if (c != nullptr) other.add(c->data[row]);
    return {own.result(), other.result()};
  }

  void step(std::string_view name, const std::vector<Bounded>& x, std::vector<Bounded>& h,
            std::vector<Bounded>& memory) const {
    const std::size_t n = h.size();
    std::vector<Bounded> next(n);
    for (std::size_t j = 0; j < n; ++j) {
      const auto at = [&](std::size_t k) { return gate(x, h, k * n + j); };
      const auto all = [&](std::size_t k) { return at(k).first + at(k).second; };
      if (name == "lstm") {
        memory[j] = sigmoid(all(1)) * memory[j] + sigmoid(all(0)) * tanh_of(all(2));
        next[j] = sigmoid(all(3)) * tanh_of(memory[j]);
      } else if (name == "gru") {
        const Bounded z = sigmoid(all(1)),
                      candidate = tanh_of(at(2).first + sigmoid(all(0)) * at(2).second);
        next[j] = (number(1) - z) * candidate + z * h[j];
      } else {
        next[j] = name == "rnn_tanh" ? tanh_of(all(0)) : larger(all(0), number(0));
      }
    }
    h = next;
  }
};

Results recurrence(const Call& call) {
  const std::string_view name = call.name();
  const bool has_biases = call.boolean("has_biases"), batch_first = call.boolean("batch_first");
  const std::int64_t directions = call.boolean("bidirectional") ? 2 : 1;
  const std::vector<const Values*> parameters = call.tensors("params");
  const Values* h0 = name == "lstm" ? call.tensors("hx")[0] : call.find("hx");
  const Values* c0 = name == "lstm" ? call.tensors("hx")[1] : h0;
  Values x = call.tensor("input");
  Values last = *h0, memory_last = *c0;
  const std::int64_t hidden = h0->extent(2);
  const std::int64_t batch = x.extent(batch_first ? 0 : 1), steps = x.extent(batch_first ? 1 : 0);
  const std::int64_t states = call.integer("num_layers") * directions;
  if (h0->shape != Shape{states, batch, hidden} || c0->shape != h0->shape) {
    refuse("states of other extents");
  }
  for (std::int64_t layer = 0; layer < call.integer("num_layers"); ++layer) {
    Shape shape = x.shape;
    shape[2] = directions * hidden;
    Values y = make_values(shape, x.dtype);
    for (std::int64_t way = 0; way < directions; ++way) {
      const std::int64_t slot = layer * directions + way;
      const Values* const* p = &parameters.at(index_of(slot * (has_biases ? 4 : 2)));
      const std::int64_t gates = name == "lstm" ? 4 : name == "gru" ? 3 : 1;
      if (p[0]->shape != Shape{gates * hidden, x.extent(2)} ||
          p[1]->shape != Shape{gates * hidden, hidden})
        refuse("weights of other extents");
      const Cell cell{p[0], p[1], has_biases ? p[2] : nullptr, has_biases ? p[3] : nullptr};
      for (std::int64_t n = 0; n < batch; ++n) {
        const auto first = (slot * batch + n) * hidden;
        std::vector<Bounded> h(last.data.begin() + first, last.data.begin() + first + hidden);
        std::vector<Bounded> memory(memory_last.data.begin() + first,
                                    memory_last.data.begin() + first + hidden);
        for (std::int64_t i = 0; i < steps; ++i) {
          const std::int64_t t = way == 0 ? i : steps - 1 - i;
          const std::int64_t row = batch_first ? n * steps + t : t * batch + n;
          const auto from = x.data.begin() + row * x.extent(2);
          cell.step(name, {from, from + x.extent(2)}, h, memory);
          std::copy(h.begin(), h.end(), y.data.begin() + (row * directions + way) * hidden);
        }
        std::copy(h.begin(), h.end(), last.data.begin() + first);
        std::copy(memory.begin(), memory.end(), memory_last.data.begin() + first);
      }
    }
    x = y;
  }
  if (name == "lstm") return {x, last, memory_last};
  return {x, last};
}

// ---- Conversions to integers of 8 bits ----

void draw_quantized(NodeDraw& d) {
  const bool quantizes = d.op.find(".quantize_") != std::string::npos,
             by_channel = d.op.find("per_channel") != std::string::npos;
  const DType type = quantizes
                         ? d.one_of({DType::kInt8, DType::kUInt8, DType::kInt16})
                         : d.one_of({DType::kInt8, DType::kUInt8, DType::kInt16, DType::kInt32});
  d.dtype = quantizes ? DType::kFloat32 : type;
  const Shape shape = d.subject(by_channel ? 1 : 0, 5, Fill::kAny, is_filled);
  d.attrs = {{"quant_min", type == DType::kUInt8 ? 3 : -100},
             {"quant_max", 120},
             {"dtype", "torch." + std::string(dtype_name(type))}};
  if (quantizes) d.attrs["divide_by_scale"] = d.chance(50);
  const auto parameter = [&](const Shape& of, DType dtype, std::int64_t limit) {
    const Fill fill = dtype == DType::kFloat32 ? Fill::kPositive : Fill::kIndices;
    d.beside({.shape = of, .dtype = dtype, .fill = fill, .limit = limit}, 100);
  };
  if (by_channel) {
    const std::int64_t rank = std::ssize(shape), axis = d.pick(0, rank - 1);
    d.attrs["axis"] = draw_dim(d, rank, axis);
    parameter({shape[index_of(axis)]}, DType::kFloat32, 0);
    parameter({shape[index_of(axis)]}, DType::kInt64, 8);
  } else if (d.op.find("tensor.default") != std::string::npos) {
    d.attrs["scale"] = d.one_of({0.037, 0.1, 1.0 / 3.0, 2.0});
    d.attrs["zero_point"] = d.pick(-9, 90);
  } else {
    parameter({}, DType::kFloat32, 0);
    parameter({}, DType::kInt32, 8);
    if (!d.op.ends_with("tensor2")) return;
    for (const std::int64_t limit : {3, 103}) parameter({}, DType::kInt32, limit);
    d.attrs.erase("quant_min");
    d.attrs.erase("quant_max");
  }
}

Results quantized(const Call& call) {
  Values x = call.operand(0);
  const bool quantizes = call.is(".quantize_"), by_channel = call.is("per_channel");
  const std::string suffix = by_channel ? "s" : "";
  const Values scale = call.tensor_or_number("scale" + suffix, DType::kFloat64);
  Values zero = make_values({}, DType::kInt64);
  if (call.has("zero_point" + suffix))
    zero = call.tensor_or_number("zero_point" + suffix, DType::kInt64);
  const Bounded least = call.tensor_or_number("quant_min", DType::kInt64).data[0],
                most = call.tensor_or_number("quant_max", DType::kInt64).data[0];
  if (least.value > most.value) refuse("a range without numbers");
  const std::int64_t axis = by_channel ? call.dim("axis", x.rank()) : 0;
  for_each_place(x.shape, [&](std::size_t i, const Shape& place) {
    const std::size_t c = by_channel ? index_of(place[index_of(axis)]) : 0;
    const double s = static_cast<double>(static_cast<float>(scale.data[c].value));
    const double z = zero.data[zero.data.size() > 1 ? c : 0].value;
    Bounded& element = x.data[i];
    if (!quantizes) {
      element = number(s) * Bounded{element.value - z, element.error};
    } else if (!std::isfinite(element.value)) {
      element = anything();
    } else {
      const Bounded steps = rounded(element.value / s, element.error / s,
                                    2 * std::abs(element.value / s) + std::abs(z));
      element = exactly(
          [&](double v) { return std::clamp(std::nearbyint(v) + z, least.value, most.value); },
          steps);
    }
  });
  x.dtype = quantizes ? call.dtype_or("dtype", DType::kInt8) : DType::kFloat32;
  return {x};
}

const OpRow kRows[] = {
    {"max_pool1d max_pool2d max_pool3d", draw_pool, pool, kNothing},
    {"avg_pool1d avg_pool2d avg_pool3d adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d "
     "_adaptive_avg_pool2d",
     draw_pool, pool},
    {"batch_norm instance_norm layer_norm rms_norm group_norm", draw_norm, norm},
    {"addmm baddbmm", draw_addmm, addmm},
    {"matmul", draw_matmul, matmul},
    {"_grouped_mm", draw_grouped_product, grouped_product},
    {"einsum", draw_einsum, einsum},
    {"scaled_dot_product_attention", draw_attention, attention},
    {"lstm gru rnn_tanh rnn_relu", draw_recurrence, recurrence},
    {"quantize_per_tensor quantize_per_channel dequantize_per_tensor dequantize_per_channel",
     draw_quantized, quantized}};

}  // namespace

std::span<const OpRow> layer_rows() { return kRows; }

}  // namespace npu::test
