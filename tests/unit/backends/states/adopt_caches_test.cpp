// SPDX-License-Identifier: Apache-2.0
// Decoders with caches that grow, and what npu-tag --states makes of them, on the device "cpu": the
// same logits and the same rows, with anything finite in the rows of a state that are not used.
#include "passes/states/adopt_caches.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "catch.hpp"
#include "npu/compile/compiler.hpp"
#include "npu/partition/partition_plan.hpp"
#include "npu/runtime/executor.hpp"
#include "npu/target/target.hpp"
#include "template_lines.hpp"
#include "test_paths.hpp"

namespace npu::adopted_test {
namespace {

constexpr std::int64_t kCapacity = 12;

using Values = std::map<std::string, Tensor>;

Tensor numbers(const TensorInfo& tensor, std::mt19937& random) {
  Tensor values(tensor.dtype, tensor.shape);
  for (std::int64_t i = 0; i < values.element_count(); ++i) {
    if (tensor.dtype == DType::kInt64) {
      values.as_mutable<std::int64_t>()[i] = static_cast<std::int64_t>(random() % 7);
    } else {
      values.as_mutable<float>()[i] = std::uniform_real_distribution<float>(-1, 1)(random);
    }
  }
  return values;
}

Values outputs_of(Graph& graph, const Values& inputs) {
  for (Node& node : graph.nodes()) node.device = "cpu";
  const Target target = load_target("host");
  std::vector<Tensor> weights, given;
  for (const TensorInfo& tensor : graph.tensors()) {
    std::mt19937 random(static_cast<unsigned>(std::hash<std::string>()(tensor.name)));
    weights.push_back(tensor.kind == TensorKind::kWeight ? numbers(tensor, random) : Tensor());
  }
  for (const TensorId id : graph.graph_inputs()) given.push_back(inputs.at(graph.tensor(id).name));
  const PartitionPlan plan = single_partition_plan(graph, "cpu");
  ExecutorOptions options;
  options.threads = 1;
  Executor executor = compile_and_load(graph, plan, target, weights, options);
  std::vector<Tensor> results = executor.run(given, nullptr);
  Values outputs;
  for (std::size_t i = 0; i < results.size(); ++i) {
    outputs.emplace(graph.tensor(graph.graph_outputs()[i]).name, std::move(results[i]));
  }
  return outputs;
}

/// Rows of a cache [1, heads, rows, width] at the front of a larger one.
Tensor put_rows(const Tensor& into, const Tensor& rows) {
  const Shape& from = rows.shape();
  Tensor state(into.dtype(), into.shape());
  std::copy_n(into.as<float>(), into.element_count(), state.as_mutable<float>());
  for (std::int64_t h = 0; h < from[1]; ++h) {
    for (std::int64_t i = 0; i < from[2] * from[3]; ++i) {
      state.as_mutable<float>()[h * kCapacity * from[3] + i] =
          rows.as<float>()[h * from[2] * from[3] + i];
    }
  }
  return state;
}

Tensor positions(const TensorInfo& tensor, std::int64_t first) {
  Tensor values(DType::kInt64, tensor.shape);
  for (std::int64_t i = 0; i < values.element_count(); ++i) {
    values.as_mutable<std::int64_t>()[i] = first + i;
  }
  return values;
}

Tensor ones(const TensorInfo& tensor) {
  Tensor values(DType::kInt64, tensor.shape);
  std::fill_n(values.as_mutable<std::int64_t>(), values.element_count(), 1);
  return values;
}

double difference(const Tensor& a, const Tensor& b) {
  REQUIRE(a.element_count() == b.element_count());
  double most = 0;
  for (std::int64_t i = 0; i < a.element_count(); ++i) {
    most = std::max(most, std::abs(a.value_as_double(i) - b.value_as_double(i)));
    if (std::isnan(a.value_as_double(i))) return a.value_as_double(i);
  }
  return most;
}

/// Runs both at some sizes; gives what was adopted.
Json compare(std::string_view lines) {
  ::setenv("NPU_BACKEND_PATH", test::backend_dir(), 1);
  const Template model = test::template_of(lines);
  Diagnostics diagnostics;
  const auto adopted = adopt_caches(model, {.capacity = kCapacity}, diagnostics);
  for (const Diagnostic& fault : diagnostics.entries()) FAIL(format_diagnostic(fault));
  REQUIRE(adopted);
  const bool has_rows = SizeSymbols::are_in(*adopted);
  for (const auto& [past, fresh] : {std::pair{1, 1}, {4, 3}, {3, 1}, {2, 10}}) {
    if (!has_rows && fresh != 1) continue;
    CAPTURE(past, fresh);
    SizeBindings sizes{{"P", past}}, rows;
    if (has_rows) sizes.emplace("T", fresh), rows.emplace("T", fresh);
    Graph before = bind_sizes(model, sizes, diagnostics);
    Graph after = read_sized_graph(adopted->dump(), "adopted", rows, diagnostics);
    for (const Diagnostic& fault : diagnostics.entries()) FAIL(format_diagnostic(fault));
    std::mt19937 random(7);
    Values inputs, states;
    for (const TensorId id : before.graph_inputs()) {
      const TensorInfo& tensor = before.tensor(id);
      const bool is_mask = tensor.name.find("mask") != std::string::npos;
      const bool is_place = tensor.name.find("pos") != std::string::npos;
      inputs[tensor.name] = is_mask    ? ones(tensor)
                            : is_place ? positions(tensor, past)
                                       : numbers(tensor, random);
    }
    for (const TensorId id : after.graph_inputs()) {
      const TensorInfo& tensor = after.tensor(id);
      const auto given = inputs.find(tensor.name);
      if (given == inputs.end()) {
        states[tensor.name] = positions(tensor, past);
      } else if (given->second.shape() != tensor.shape) {
        states[tensor.name] = put_rows(numbers(tensor, random), given->second);
      } else {
        states[tensor.name] = given->second;
      }
    }
    const Values wanted = outputs_of(before, inputs);
    const Values found = outputs_of(after, states);
    REQUIRE(found.size() == wanted.size());
    for (const auto& [name, tensor] : wanted) {
      CAPTURE(name);
      const Tensor& other = found.at(name);
      if (other.shape() == tensor.shape()) {
        CHECK(difference(other, tensor) < 1e-5);
      } else {
        CHECK(difference(put_rows(other, tensor), other) < 1e-6);
      }
    }
  }
  return *adopted;
}

/// A decoder of one layer: `head` computes `mask`, `attention` gives y [1,4,T,4] of q, k and v.
std::string decoder(const std::string& head, const std::string& attention,
                    const std::string& rows = "T") {
  std::string text = R"(
    size P 1..64; SIZE
    input x [1,T,16]; HEAD
    input past_k [1,4,P,4]; input past_v [1,4,P,4]
    weight w [16,16]; weight u [16,16]; weight z [16,16]
    flat_q = linear(x, w) [1,T,16]
    flat_k = linear(x, u) [1,T,16]
    flat_v = linear(x, z) [1,T,16]
    split_q = view(flat_q) [1,T,4,4] {"size": [1, "T", 4, 4]}
    split_k = view(flat_k) [1,T,4,4] {"size": [1, "T", 4, 4]}
    split_v = view(flat_v) [1,T,4,4] {"size": [1, "T", 4, 4]}
    q = transpose.int(split_q) [1,4,T,4] {"dim0": 1, "dim1": 2}
    new_k = transpose.int(split_k) [1,4,T,4] {"dim0": 1, "dim1": 2}
    new_v = transpose.int(split_v) [1,4,T,4] {"dim0": 1, "dim1": 2}
    k = cat(past_k, new_k) [1,4,"P + T",4] {"dim": 2, "_tensor_list_sizes": [2]}
    v = cat(past_v, new_v) [1,4,"P + T",4] {"dim": 2, "_tensor_list_sizes": [2]}
    ATTENTION
    output y; output k; output v)";
  const auto put = [&](const std::string& word, const std::string& with) {
    for (std::size_t at; (at = text.find(word)) != std::string::npos;) {
      text.replace(at, word.size(), with);
    }
  };
  put("HEAD", head);
  put("ATTENTION", attention);
  put("SIZE", rows == "T" ? "size T 1..64" : "");
  if (rows != "T") {
    put("\"P + T\"", "\"P + " + rows + "\"");
    put("\"T\"", rows);
    put(",T,", "," + rows + ",");
  }
  return text;
}

constexpr const char* kOp = "y = scaled_dot_product_attention(q, k, v, mask) [1,4,T,4]";

constexpr const char* kCausal = R"(weight none [1]
    keys = arange() ["P + T"] int64 {"end": "P + T", "dtype": "torch.int64"}
    here = arange.start() [T] int64 {"start": "P", "end": "P + T", "dtype": "torch.int64"}
    column = unsqueeze(here) [T,1] int64 {"dim": 1}
    shown = le.Tensor(keys, column) [T,"P + T"] bool)";

}  // namespace

TEST_CASE("adopted: a causal mask as bool", "[states]") {
  compare(decoder(std::string(kCausal) + "\n" +
                      R"(mask = view(shown) [1,1,T,"P + T"] bool {"size": [1, 1, "T", "P + T"]})",
                  kOp));
}

TEST_CASE("adopted: a window, as scores that are hidden", "[states]") {
  compare(decoder(std::string(kCausal) + R"(
    near = sub.Scalar(column) [T,1] int64 {"other": 3}
    later = gt.Tensor(keys, near) [T,"P + T"] bool
    both = logical_and(shown, later) [T,"P + T"] bool
    hidden = logical_not(both) [T,"P + T"] bool)",
                  R"(turned = transpose.int(k) [1,4,4,"P + T"] {"dim0": 2, "dim1": 3}
    scores = matmul(q, turned) [1,4,T,"P + T"]
    small = div.Scalar(scores) [1,4,T,"P + T"] {"other": 2.0}
    masked = masked_fill.Scalar(small, hidden) [1,4,T,"P + T"] {"value": "-inf"}
    shares = softmax.int(masked) [1,4,T,"P + T"] {"dim": -1}
    y = matmul(shares, v) [1,4,T,4])"));
}

TEST_CASE("adopted: scores with a softcap stay written out, behind a mask of lengths", "[states]") {
  const Json adopted = compare(decoder(std::string(kCausal) + R"(
    full = full() [T,"P + T"] {"size": ["T", "P + T"], "fill_value": 0.0}
    mask = where.ScalarOther(shown, full) [T,"P + T"] {"other": -3e38})",
                                       R"(turned = permute(k) [1,4,4,"P + T"] {"dims": [0, 1, 3, 2]}
    scores = matmul(q, turned) [1,4,T,"P + T"]
    soft = tanh(scores) [1,4,T,"P + T"]
    capped = mul.Scalar(soft) [1,4,T,"P + T"] {"other": 3.0}
    masked = add.Tensor(capped, mask) [1,4,T,"P + T"]
    shares = softmax.int(masked) [1,4,T,"P + T"] {"dim": -1}
    y = matmul(shares, v) [1,4,T,4])"));
  // So that kernels read positions: the mask of floats is gone.
  std::string ops;
  for (const Json& node : adopted["nodes"]) ops += node["op_type"].get<std::string>() + " ";
  CHECK_THAT(ops, Catch::Contains("npu.length_mask"));
  CHECK_THAT(ops, Catch::Contains("aten.where.ScalarOther aten.softmax.int"));
  CHECK_THAT(ops, !Catch::Contains("aten.full.default"));
  CHECK_THAT(ops, !Catch::Contains("aten.add.Tensor"));
}

TEST_CASE("adopted: a sink behind the scores is none of a cache's rows", "[states]") {
  const std::string sinks = R"(
    weight sinks [1,4,1,1]
    full = full() [T,"P + T"] {"size": ["T", "P + T"], "fill_value": 0.0}
    mask = where.ScalarOther(shown, full) [T,"P + T"] {"other": -3e38})";
  const auto attended = [](const std::string& cut) {
    return R"(turned = permute(k) [1,4,4,"P + T"] {"dims": [0, 1, 3, 2]}
    scores = matmul(q, turned) [1,4,T,"P + T"]
    masked = add.Tensor(scores, mask) [1,4,T,"P + T"]
    sink = expand(sinks) [1,4,T,1] {"size": [1, 4, "T", 1]}
    whole = cat(masked, sink) [1,4,T,"P + T + 1"] {"dim": -1, "_tensor_list_sizes": [2]}
    shares = softmax.int(whole) [1,4,T,"P + T + 1"] {"dim": -1}
    )" + cut +
           R"(
    y = matmul(rows, v) [1,4,T,4])";
  };
  compare(decoder(std::string(kCausal) + sinks,
                  attended("rows = slice.Tensor(shares) [1,4,T,\"P + T\"] "
                           R"({"dim": 3, "start": 0, "end": "P + T"})")));
  // The first column is a row.
  const Template other = test::template_of(decoder(
      std::string(kCausal) + sinks, attended("rows = slice.Tensor(shares) [1,4,T,\"P + T\"] "
                                             R"({"dim": 3, "start": 1, "end": "P + T + 1"})")));
  Diagnostics diagnostics;
  CHECK_FALSE(adopt_caches(other, {.capacity = kCapacity}, diagnostics));
  REQUIRE(diagnostics.has_errors());
  CHECK_THAT(diagnostics.entries().front().text, Catch::Contains("reads rows of a cache"));
}

TEST_CASE("adopted: one minus a mask of ones, times the lowest number", "[states]") {
  compare(decoder(R"(input attention_mask [1,"P + T"] int64
    counts = _to_copy(attention_mask) [1,"P + T"] {"dtype": "torch.float32"}
    wide = view(counts) [1,1,1,"P + T"] {"size": [1, 1, 1, "P + T"]}
    none = rsub.Scalar(wide) [1,1,1,"P + T"] {"other": 1.0}
    padding = mul.Scalar(none) [1,1,1,"P + T"] {"other": -3e38}
    lowest = full() [T,"P + T"] {"size": ["T", "P + T"], "fill_value": -3e38}
    upper = triu(lowest) [T,"P + T"] {"diagonal": "P + 1"}
    mask = add.Tensor(padding, upper) [1,1,T,"P + T"])",
                  kOp));
}

TEST_CASE("adopted: a square mask behind zeros for the past", "[states]") {
  compare(decoder(R"(weight none [1]
    places = arange() [T] int64 {"end": "T", "dtype": "torch.int64"}
    more = add.Scalar(places) [T] int64 {"other": 1}
    column = view(more) [T,1] int64 {"size": ["T", 1]}
    shown = lt.Tensor(places, column) [T,T] bool
    lowest = full() [T,T] {"size": ["T", "T"], "fill_value": -3e38}
    square = masked_fill.Scalar(lowest, shown) [T,T] {"value": 0.0}
    zeros = zeros() [T,P] {"size": ["T", "P"]}
    mask = cat(zeros, square) [T,"P + T"] {"dim": -1, "_tensor_list_sizes": [2]})",
                  kOp));
}

TEST_CASE("adopted: a triangle of the new rows, where keys are later", "[states]") {
  compare(decoder(std::string(kCausal) + R"(
    lowest = full() [T,"P + T"] {"size": ["T", "P + T"], "fill_value": -3e38}
    upper = triu(lowest) [T,"P + T"] {"diagonal": 1}
    later = gt.Tensor(keys, column) [T,"P + T"] bool
    factor = _to_copy(later) [T,"P + T"] {"dtype": "torch.float32"}
    mask = mul.Tensor(upper, factor) [T,"P + T"])",
                  kOp));
}

TEST_CASE("adopted: positions of the mask's running sum", "[states]") {
  compare(decoder(R"(input attention_mask [1,"P + T"] int64
    weight table [80,16]
    sums = cumsum(attention_mask) [1,"P + T"] int64 {"dim": -1}
    places = sub.Scalar(sums) [1,"P + T"] int64 {"other": 1}
    last = slice.Tensor(places) [1,T] int64 {"dim": 1, "start": "-T", "end": 9223372036854775807}
    placed = embedding(table, last) [1,T,16]
    keys = arange() ["P + T"] int64 {"end": "P + T", "dtype": "torch.int64"}
    column = view(last) [T,1] int64 {"size": ["T", 1]}
    mask = le.Tensor(keys, column) [T,"P + T"] bool)",
                  "z0 = scaled_dot_product_attention(q, k, v, mask) [1,4,T,4]\n"
                  "    split = view(placed) [1,T,4,4] {\"size\": [1, \"T\", 4, 4]}\n"
                  "    turned = transpose.int(split) [1,4,T,4] {\"dim0\": 1, \"dim1\": 2}\n"
                  "    y = add.Tensor(z0, turned) [1,4,T,4]"));
}

TEST_CASE("adopted: without a mask all keys up to the last one count", "[states]") {
  compare(decoder("weight none [1]", "y = scaled_dot_product_attention(q, k, v) [1,4,T,4]"));
}

TEST_CASE("adopted: one token a step", "[states]") {
  compare(decoder("input position_ids [1,1] int64",
                  "y = scaled_dot_product_attention(q, k, v) [1,4,T,4]", "1"));
}

TEST_CASE("adopted: the number of rows as a number", "[states]") {
  compare(decoder(std::string(kCausal) + R"(
    count = full() [] {"size": [], "fill_value": "P + T", "dtype": "torch.float32"})",
                  R"(less = div.Tensor(q, count) [1,4,T,4]
    y = scaled_dot_product_attention(less, k, v, shown) [1,4,T,4])"));
}

TEST_CASE("adopted: scores that a mask makes low and no more", "[states]") {
  // As GPT and CTRL had it; what no step has written is hidden beside it.
  const std::string least = R"(
    full = full() [T,"P + T"] {"size": ["T", "P + T"], "fill_value": -10000.0}
    upper = triu(full) [T,"P + T"] {"diagonal": "P + 1"})";
  const std::string scores = R"(turned = transpose.int(k) [1,4,4,"P + T"] {"dim0": 2, "dim1": 3}
    scores = matmul(q, turned) [1,4,T,"P + T"]
    masked = )";
  const std::string behind = R"(
    shares = softmax.int(masked) [1,4,T,"P + T"] {"dim": -1}
    y = matmul(shares, v) [1,4,T,4])";
  compare(decoder("weight none [1]" + least,
                  scores + R"(add.Tensor(scores, upper) [1,4,T,"P + T"])" + behind));
  compare(decoder(kCausal, scores + R"(where.ScalarOther(shown, scores) [1,4,T,"P + T"] )" +
                               R"({"other": -10000.0})" + behind));
}

TEST_CASE("adopted: weights of two softmaxes are subtracted", "[states]") {
  // As differential attention has it.
  compare(decoder(kCausal, R"(turned = transpose.int(k) [1,4,4,"P + T"] {"dim0": 2, "dim1": 3}
    scores = matmul(q, turned) [1,4,T,"P + T"]
    other = matmul(new_v, turned) [1,4,T,"P + T"]
    masked = where.ScalarOther(shown, scores) [1,4,T,"P + T"] {"other": "-inf"}
    masked_2 = where.ScalarOther(shown, other) [1,4,T,"P + T"] {"other": "-inf"}
    shares = softmax.int(masked) [1,4,T,"P + T"] {"dim": -1}
    shares_2 = softmax.int(masked_2) [1,4,T,"P + T"] {"dim": -1}
    part = mul.Scalar(shares_2) [1,4,T,"P + T"] {"other": 0.3}
    apart = sub.Tensor(shares, part) [1,4,T,"P + T"]
    y = matmul(apart, v) [1,4,T,4])"));
}

TEST_CASE("adopted: an attention of equations", "[states]") {
  const auto attended = [](const std::string& keys, const std::string& values) {
    return R"(scores = einsum(q, k) )" + keys + R"(
    masked = where.ScalarOther(shown, scores) [1,4,T,"P + T"] {"other": "-inf"}
    shares = softmax.int(masked) [1,4,T,"P + T"] {"dim": -1}
    )" + values;
  };
  const std::string keys =
      R"([1,4,T,"P + T"] {"equation": "bhqd,bhkd->bhqk", "_tensor_list_sizes": [2]})";
  const Json adopted = compare(decoder(
      kCausal, attended(keys, R"(y = einsum(shares, v) [1,4,T,4] )"
                              R"({"equation": "bhqk,bhkd->bhqd", "_tensor_list_sizes": [2]})")));
  CHECK_THAT(adopted.dump(), Catch::Contains("aten.scaled_dot_product_attention.default"));
  // Values first, and rows of heads behind one another.
  compare(
      decoder(kCausal, attended(keys, R"(z0 = einsum(v, shares) [1,T,4,4] )"
                                      R"({"equation": "bhkd,bhqk->bqhd", "_tensor_list_sizes": [2]}
    y = permute(z0) [1,4,T,4] {"dims": [0, 2, 1, 3]})")));
}

}  // namespace npu::adopted_test
