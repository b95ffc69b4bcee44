// SPDX-License-Identifier: Apache-2.0
// Whole models on the device "cpu": padded at the capacity, and bound at the exact size.
#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "catch.hpp"
#include "npu/compile/compiler.hpp"
#include "npu/partition/partition_plan.hpp"
#include "npu/runtime/executor.hpp"
#include "npu/target/target.hpp"
#include "passes/padding/pad_graph.hpp"
#include "template_lines.hpp"

using namespace npu;
using namespace npu::test;

namespace {

Tensor drawn(const TensorInfo& tensor, std::mt19937& random) {
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

std::vector<Tensor> run_on_cpu(Graph& graph, const std::vector<Tensor>& inputs) {
  for (Node& node : graph.nodes()) node.device = "cpu";
  const Target target = load_target("host");
  std::vector<Tensor> weights;
  for (const TensorInfo& tensor : graph.tensors()) {
    std::mt19937 random(static_cast<unsigned>(std::hash<std::string>()(tensor.name)));
    weights.push_back(tensor.kind == TensorKind::kWeight ? drawn(tensor, random) : Tensor());
  }
  const PartitionPlan plan = single_partition_plan(graph, "cpu");
  ExecutorOptions options;
  options.threads = 1;
  Executor executor = compile_and_load(graph, plan, target, weights, options);
  return executor.run(inputs, nullptr);
}

/// Element `at` of `to` is that of `from` whose index is the same, but at most the last one.
Tensor resized(const Tensor& from, const Shape& shape) {
  Tensor to(from.dtype(), shape);
  const auto size = static_cast<std::int64_t>(dtype_size(from.dtype()));
  for (std::int64_t i = 0; i < to.element_count(); ++i) {
    std::int64_t rest = i;
    std::int64_t place = 0;
    std::int64_t step = 1;
    for (std::size_t d = shape.size(); d-- > 0;) {
      place += std::min(rest % shape[d], from.shape()[d] - 1) * step;
      rest /= shape[d];
      step *= from.shape()[d];
    }
    std::copy_n(from.data() + place * size, size, to.mutable_data() + i * size);
  }
  return to;
}

void check_sizes(const std::string& lines, const SizeBindings& capacities,
                 const std::vector<SizeBindings>& sizes) {
  INFO(lines);
  const Template model = template_of(lines);
  Diagnostics faults;
  PaddedGraph padded = pad_graph(model, capacities, faults);
  for (const Diagnostic& fault : faults.entries()) FAIL(format_diagnostic(fault));
  for (const SizeBindings& size : sizes) {
    Graph exact = bind_sizes(model, size, faults);
    std::mt19937 random(17);
    std::vector<Tensor> inputs;
    std::vector<Tensor> padded_inputs;
    for (const TensorId id : exact.graph_inputs())
      inputs.push_back(drawn(exact.tensor(id), random));
    for (std::size_t i = 0; i < padded.graph.graph_inputs().size(); ++i) {
      const TensorInfo& tensor = padded.graph.tensor(padded.graph.graph_inputs()[i]);
      if (i < inputs.size()) {
        padded_inputs.push_back(resized(inputs[i], tensor.shape));
      } else {
        Tensor count(DType::kInt64, {});
        count.as_mutable<std::int64_t>()[0] = size.at(tensor.name.substr(6));  // behind npu.n.
        padded_inputs.push_back(count);
      }
    }
    const std::vector<Tensor> wanted = run_on_cpu(exact, inputs);
    const std::vector<Tensor> found = run_on_cpu(padded.graph, padded_inputs);
    for (std::size_t r = 0; r < wanted.size(); ++r) {
      const Tensor cut = resized(found[r], wanted[r].shape());
      double worst = 0;
      for (std::int64_t i = 0; i < cut.element_count(); ++i) {
        worst = std::max(worst, std::abs(cut.value_as_double(i) - wanted[r].value_as_double(i)));
        if (std::isnan(cut.value_as_double(i))) worst = INFINITY;
      }
      INFO(bindings_text(size));
      CHECK(worst < 2e-6);
    }
  }
}

std::vector<SizeBindings> all_up_to(std::int64_t capacity) {
  std::vector<SizeBindings> sizes;
  for (std::int64_t n = 1; n <= capacity; ++n) sizes.push_back({{"S", n}});
  return sizes;
}

}  // namespace

TEST_CASE("means and deviations over time", "[padding]") {
  const std::string deviation =
      GENERATE("var.correction(h) [2,3] {\"dim\": [-1], \"correction\": 1}",
               "std.correction(h) [2,3] {\"dim\": [2]}",
               "std.dim(h) [2,3] {\"dim\": [2], \"unbiased\": true}",
               "var.dim(h) [2,3] {\"dim\": [2], \"unbiased\": false}");
  check_sizes(R"(
    size S 2..12; input x [2,4,S]; weight w [3,4,1]
    h = conv1d(x, w) [2,3,S]
    m = mean.dim(h) [2,3] {"dim": [2]}
    v = )" + deviation +
                  R"(
    y = cat(m, v) [2,6] {"dim": 1}; output y)",
              {{"S", 12}}, {{{"S", 2}}, {{"S", 7}}, {{"S", 12}}});
}

TEST_CASE("rows scaled by a deviation along them", "[padding]") {
  check_sizes(R"(
    size B 1..6; size S 2..9; input x [B,S,3]
    m = mean.dim(x) [B,1,3] {"dim": [1], "keepdim": true}
    v = std.correction(x) [B,1,3] {"dim": [1], "correction": 0, "keepdim": true}
    c = sub.Tensor(x, m) [B,S,3]
    e = add.Scalar(v) [B,1,3] {"other": 0.01}
    n = div.Tensor(c, e) [B,S,3]
    a = var.default(n) [] {"unbiased": true}
    y = mul.Tensor(n, a) [B,S,3]; output y)",
              {{"B", 6}, {"S", 9}},
              {{{"B", 6}, {"S", 9}}, {{"B", 1}, {"S", 2}}, {{"B", 4}, {"S", 5}}});
}

TEST_CASE("a text encoder with positions, a mask and a mean", "[padding]") {
  check_sizes(R"(
    size S 1..12; input ids [2,S] int64; input mask [2,1,1,S]; weight table [7,8]
    weight places [20,8]; weight g [8]; weight b [8]; weight w [8,8]
    i = arange() [S] int64 {"end": "S"}
    p = embedding(places, i) [S,8]
    e = embedding(table, ids) [2,S,8]
    h = add.Tensor(e, p) [2,S,8]
    n = layer_norm(h, g, b) [2,S,8] {"normalized_shape": [8]}
    q = linear(n, w) [2,S,8]
    v = view(q) [2,S,2,4] {"size": [2, "S", 2, 4]}
    t = transpose.int(v) [2,2,S,4] {"dim0": 1, "dim1": 2}
    k = transpose.int(t) [2,2,4,S] {"dim0": 2, "dim1": 3}
    s = matmul(t, k) [2,2,S,S]
    m = add.Tensor(s, mask) [2,2,S,S]
    r = softmax.int(m) [2,2,S,S] {"dim": -1}
    o = matmul(r, t) [2,2,S,4]
    a = scaled_dot_product_attention(o, t, t) [2,2,S,4]
    c = transpose.int(a) [2,S,2,4] {"dim0": 1, "dim1": 2}
    f = reshape(c) [2,S,8] {"shape": [2, "S", 8]}
    y = mean.dim(f) [2,8] {"dim": [1]}
    z = select.int(f) [2,8] {"dim": 1, "index": -1}
    output f; output y; output z)",
              {{"S", 12}}, all_up_to(12));
}

TEST_CASE("a network of convolutions with strides and pooling", "[padding]") {
  check_sizes(R"(
    size S 1..12; size T 4..9; input x [1,2,S,T]; weight w [3,2,3,3]; weight b [3]
    weight u [3,3,3,3]
    c = conv2d(x, w, b) [1,3,"(S - 1) // 2 + 1",T] {"stride": [2, 1], "padding": [1, 1]}
    r = relu(c) [1,3,"(S - 1) // 2 + 1",T]
    p = max_pool2d(r) [1,3,"(S - 1) // 2 + 1",T] {"kernel_size": [3, 3], "stride": [1, 1], "padding": [1, 1]}
    d = conv2d(p, u) [1,3,"(S - 1) // 2 + 1",T] {"padding": [1, 1]}
    g = adaptive_avg_pool2d(d) [1,3,1,1] {"output_size": [1, 1]}
    m = upsample_bilinear2d(d) [1,3,"2*((S - 1) // 2) + 2",2*T] {"output_size": ["2*((S - 1) // 2) + 2", "2*T"], "align_corners": false}
    output d; output g; output m)",
              {{"S", 12}, {"T", 9}},
              {{{"S", 1}, {"T", 4}},
               {{"S", 2}, {"T", 9}},
               {{"S", 5}, {"T", 5}},
               {{"S", 8}, {"T", 7}},
               {{"S", 11}, {"T", 6}},
               {{"S", 12}, {"T", 9}}});
}

TEST_CASE("rows of several texts that views join and part again", "[padding]") {
  check_sizes(R"(
    size B 1..3; size S 1..7; input ids [B,S] int64; input x [B,S,8]
    weight table [9,8]; weight w [8,12]; weight b [12]; weight u [8,12]; weight g [8]
    i = view(ids) ["B*S"] int64 {"size": ["B*S"]}
    e = embedding(table, i) ["B*S",8]
    r = view(x) ["B*S",8] {"size": [-1, 8]}
    n = layer_norm(r, g, g) ["B*S",8] {"normalized_shape": [8]}
    a = add.Tensor(n, e) ["B*S",8]
    h = addmm(b, a, w) ["B*S",12]
    m = tanh(h) ["B*S",12]
    o = linear(m, u) ["B*S",8]
    f = softmax.int(o) ["B*S",8] {"dim": 1}
    l = slice.Tensor(f) ["B*S",4] {"dim": 1, "start": 0, "end": 4, "step": 1}
    p = mul.Tensor(l, l) ["B*S",4]
    y = view(p) [B,S,2,2] {"size": ["B", "S", 2, 2]}
    q = mm(r, w) ["B*S",12]
    z = reshape(q) [B,S,12] {"shape": ["B", "S", 12]}
    t = sum.dim_IntList(z) [B,12] {"dim": [1]}
    output y; output t)",
              {{"B", 3}, {"S", 7}},
              {{{"B", 1}, {"S", 1}},
               {{"B", 2}, {"S", 3}},
               {{"B", 3}, {"S", 5}},
               {{"B", 3}, {"S", 7}},
               {{"B", 1}, {"S", 6}}});
}

TEST_CASE("multi-head attention of several texts, heads and texts joined", "[padding]") {
  check_sizes(
      R"(
    size B 1..3; size S 1..7; input x [S,B,8]; input k [B,2,S,4]; weight w [6,8]
    h = view(x) [S,"B*2",4] {"size": ["S", "B*2", 4]}
    q = transpose.int(h) ["B*2",S,4] {"dim0": 0, "dim1": 1}
    v = transpose.int(q) [S,"B*2",4] {"dim0": 0, "dim1": 1}
    r = view(v) ["B*S",8] {"size": ["B*S", 8]}
    p = linear(r, w) ["B*S",6]
    y = view(p) [S,B,6] {"size": ["S", "B", 6]}
    m = permute(k) [S,B,2,4] {"dims": [2, 0, 1, 3]}
    f = reshape(m) ["B*S",8] {"shape": ["B*S", 8]}
    g = linear(f, w) ["B*S",6]
    z = view(g) [S,B,6] {"size": ["S", "B", 6]}
    output y; output z)",
      {{"B", 3}, {"S", 7}},
      {{{"B", 1}, {"S", 1}}, {{"B", 2}, {"S", 3}}, {{"B", 3}, {"S", 5}}, {{"B", 1}, {"S", 6}}});
}

TEST_CASE("rows and columns that views join and part", "[padding]") {
  check_sizes(
      R"(
    size H 1..4; size W 1..5; input x [2,3,H,W]
    r = view(x) [2,3,"H*W"] {"size": [2, 3, "H*W"]}
    t = transpose.int(r) [2,"H*W",3] {"dim0": 1, "dim1": 2}
    k = matmul(t, r) [2,"H*W","H*W"]
    s = softmax.int(k) [2,"H*W","H*W"] {"dim": -1}
    o = matmul(s, t) [2,"H*W",3]
    u = transpose.int(o) [2,3,"H*W"] {"dim0": 1, "dim1": 2}
    y = view(u) [2,3,H,W] {"size": [2, 3, "H", "W"]}
    m = mean.dim(t) [2,3] {"dim": [1]}
    f = flatten.using_ints(x) ["6*H*W"] {"start_dim": 0, "end_dim": -1}
    p = view(f) [3,"2*H*W"] {"size": [3, -1]}
    c = permute(x) [H,2,W,3] {"dims": [2, 0, 3, 1]}
    v = reshape(c) ["2*H","3*W"] {"shape": ["2*H", "3*W"]}
    w = reshape(v) [2,"H","W*3"] {"shape": [2, "H", "3*W"]}
    z = view(x) ["3*H",2,W] {"size": ["3*H", 2, "W"]}
    output y; output m; output f; output p; output v; output w; output z)",
      {{"H", 4}, {"W", 5}},
      {{{"H", 1}, {"W", 1}},
       {{"H", 2}, {"W", 5}},
       {{"H", 4}, {"W", 2}},
       {{"H", 3}, {"W", 4}},
       {{"H", 4}, {"W", 5}}});
}

TEST_CASE("a view that parts a size in front of its rows", "[padding]") {
  check_sizes(R"(
    size S 1..3; input x [2,"4*S",3]; input n [S]
    l = view(x) [2,4,S,3] {"size": [2, 4, "S", 3]}
    m = mean.dim(l) [2,4,3] {"dim": [2]}
    a = mul.Tensor(l, l) [2,4,S,3]
    y = reshape(a) [2,"4*S",3] {"shape": [2, "4*S", 3]}
    output m; output y; output n)",
              {{"S", 3}}, all_up_to(3));
}

TEST_CASE("images that are resized to sizes which are no multiples", "[padding]") {
  check_sizes(R"(
    size H 2..7; size W 2..6; input x [2,3,H,W]; weight grid [1,3,4,3]; weight line [1,3,5]
    p = upsample_bilinear2d(grid) [1,3,H,W] {"output_size": ["H", "W"], "align_corners": false}
    y = add.Tensor(x, p) [2,3,H,W]
    m = max_pool2d(y) [2,3,"H // 2","W // 2"] {"kernel_size": [2, 2], "stride": [2, 2]}
    u = upsample_bilinear2d(m) [2,3,H,W] {"output_size": ["H", "W"], "align_corners": true}
    v = upsample_bilinear2d(m) [2,3,H,W] {"output_size": ["H", "W"], "align_corners": false}
    f = upsample_bilinear2d(y) [2,3,3,1] {"output_size": [3, 1], "align_corners": false}
    g = upsample_bilinear2d(y) [2,3,1,5] {"output_size": [1, 5], "align_corners": true}
    l = upsample_linear1d(line) [1,3,W] {"output_size": ["W"], "align_corners": true}
    c = upsample_bicubic2d(grid) [1,3,H,W] {"output_size": ["H", "W"], "align_corners": false}
    d = upsample_bicubic2d(m) [2,3,H,W] {"output_size": ["H", "W"], "align_corners": true}
    e = upsample_bicubic2d(y) [2,3,3,4] {"output_size": [3, 4], "align_corners": false}
    output c; output d; output e; output u; output v; output f; output g; output l)",
              {{"H", 7}, {"W", 6}},
              {{{"H", 2}, {"W", 2}},
               {{"H", 3}, {"W", 5}},
               {{"H", 6}, {"W", 4}},
               {{"H", 5}, {"W", 6}},
               {{"H", 7}, {"W", 6}}});
}

TEST_CASE("borders that reflect the rows beside them", "[padding]") {
  check_sizes(
      R"(
    size H 4..7; size W 3..6; input x [2,3,H,W]
    y = reflection_pad2d(x) [2,3,"H + 4","W + 1"] {"padding": [0, 1, 1, 3]}
    z = pad(x) [2,3,H,"W + 4"] {"pad": [2, 2, 0, 0], "mode": "reflect"}
    m = mean.dim(y) [2,3] {"dim": [2, 3]}
    output y; output z; output m)",
      {{"H", 7}, {"W", 6}},
      {{{"H", 4}, {"W", 3}}, {{"H", 5}, {"W", 6}}, {{"H", 6}, {"W", 4}}, {{"H", 7}, {"W", 6}}});
}

TEST_CASE("operands of a concatenation behind a size that varies", "[padding]") {
  check_sizes(R"(
    size S 1..5; size T 2..4; size B 1..2; input x [B,S,3]; input z [B,T,3]; input w [B,2,3]
    a = cat(x, w, z) [B,"S + T + 2",3] {"dim": 1, "_tensor_list_sizes": [3]}
    b = cat(z, x) [B,"S + T",3] {"dim": -2, "_tensor_list_sizes": [2]}
    t = cat(x, w) [B,"S + 2",3] {"dim": 1, "_tensor_list_sizes": [2]}
    p = softmax.int(b) [B,"S + T",3] {"dim": 1}
    m = mean.dim(t) [B,3] {"dim": [1]}
    r = select.int(a) [B,3] {"dim": 1, "index": -2}
    output a; output p; output m; output r)",
              {{"B", 2}, {"S", 5}, {"T", 4}},
              {{{"B", 1}, {"S", 1}, {"T", 2}},
               {{"B", 2}, {"S", 3}, {"T", 3}},
               {{"B", 1}, {"S", 5}, {"T", 2}},
               {{"B", 2}, {"S", 5}, {"T", 4}}});
}

TEST_CASE("grids of two sizes that vary", "[padding]") {
  for (const std::string indexing : {"ij", "xy"}) {
    const std::string shape = indexing == "ij" ? R"(["H","W"])" : R"(["W","H"])";
    const std::string sum = indexing == "ij" ? R"(["W"])" : R"(["H"])";
    check_sizes(R"(
    size H 1..5; size W 1..4; input x [H]; input z [W]
    g = aten.meshgrid.indexing(x, z) )" +
                    shape + " | " + shape + R"( {"indexing": ")" + indexing +
                    R"(", "_tensor_list_sizes": [2]}
    m = sum.dim_IntList(g_0) )" +
                    sum +
                    R"( {"dim": [0]}
    y = mul.Tensor(g_0, g_1) )" +
                    shape + R"(
    output m; output y)",
                {{"H", 5}, {"W", 4}},
                {{{"H", 1}, {"W", 3}}, {{"H", 5}, {"W", 4}}, {{"H", 4}, {"W", 1}}});
  }
}

TEST_CASE("positions that count from a size down", "[padding]") {
  check_sizes(R"(
    size S 1..7; input x [S,3]
    i = arange.start_step() ["2*S - 1"] int64 {"start": "S - 1", "end": "0 - S", "step": -1, "dtype": "torch.int64"}
    f = arange.start_step() ["2*S - 1"] {"start": "S - 1", "end": "0 - S", "step": -1, "dtype": "torch.float32"}
    t = to.dtype(i) ["2*S - 1"] {"dtype": "torch.float32"}
    a = add.Tensor(t, f) ["2*S - 1"] {"alpha": 1}
    c = view(a) ["2*S - 1",1] {"size": ["2*S - 1", 1]}
    p = expand(c) ["2*S - 1",3] {"size": ["2*S - 1", 3]}
    s = transpose.int(p) [3,"2*S - 1"] {"dim0": 0, "dim1": 1}
    b = matmul(x, s) [S,"2*S - 1"]
    z = constant_pad_nd(b) [S,"2*S"] {"pad": [1, 0], "value": 0}
    v = view(z) ["2*S",S] {"size": ["2*S", "S"]}
    w = slice.Tensor(v) ["2*S - 1",S] {"dim": 0, "start": 1, "end": "2*S", "step": 1}
    r = view(w) [S,"2*S - 1"] {"size": ["S", "2*S - 1"]}
    y = slice.Tensor(r) [S,S] {"dim": 1, "start": 0, "end": "S", "step": 1}
    output y)",
              {{"S", 7}}, all_up_to(7));
}

TEST_CASE("indices that count from the end of what is valid", "[padding]") {
  check_sizes(R"(
    size S 1..9; input x [2,S,3]
    f = full() [1] int64 {"size": [1], "fill_value": -1, "dtype": "int64"}
    z = index.Tensor(x, f) [2,1,3] {"_tensor_list_sizes": [1], "_tensor_list_none_masks": [[true, false]]}
    i = arange() [1] int64 {"end": 1}
    s = sum.dim_IntList(x) [2,S] {"dim": [2]}
    a = argmax(s) [2] int64 {"dim": 1}
    b = full() [2] int64 {"size": [2], "fill_value": 0, "dtype": "int64"}
    y = index.Tensor(x, b, a) [2,3] {"_tensor_list_sizes": [2]}
    v = full() [2,1,3] {"size": [2,1,3], "fill_value": 7, "dtype": "float32"}
    w = index_put(x, f, v) [2,S,3] {"_tensor_list_sizes": [1], "_tensor_list_none_masks": [[true, false]], "accumulate": false}
    output z; output y; output w; output i)",
              {{"S", 9}}, all_up_to(9));
}

TEST_CASE("indices of two padded dimensions, which are padded themselves", "[padding]") {
  check_sizes(
      R"(
    size N 1..4; size M 1..6; input x [N,M,3]
    s = sum.dim_IntList(x) [N,M] {"dim": [2]}
    a = argmax(s) [N] int64 {"dim": 1}
    w = sub.Tensor(a) [N] int64 {"other": 1}
    f = lt.Scalar(w) [N] bool {"other": 0}
    c = to.dtype(f) [N] int64 {"dtype": "torch.int64"}
    i = arange() [N] int64 {"end": "N", "dtype": "torch.int64"}
    r = sub.Tensor(i, c) [N] int64
    y = index.Tensor(x, r, w) [N,3] {"_tensor_list_sizes": [2]}
    output y)",
      {{"N", 4}, {"M", 6}},
      {{{"N", 1}, {"M", 1}}, {{"N", 2}, {"M", 3}}, {{"N", 3}, {"M", 5}}, {{"N", 4}, {"M", 6}}});
}

TEST_CASE("a recurrence whose last state is read", "[padding]") {
  const std::string lstm = R"(
    l = aten.lstm.input(x, h, c, a, b) [1,S,2] | [1,1,2] | [1,1,2] {"_tensor_list_sizes": [2, 2], "has_biases": false, "num_layers": 1, "dropout": 0.0, "train": false, "bidirectional": false, "batch_first": true}
    o = getitem(l_0, l_1, l_2) [1,S,2] {"index": 0}
    s = getitem(l_0, l_1, l_2) [1,1,2] {"index": 1}
    u = getitem(l_0, l_1, l_2) [1,1,2] {"index": 2}
    y = select.int(s) [1,2] {"dim": 0, "index": -1}
    output o; output s; output y)";
  const std::string inputs = R"(size S 1..9; input x [1,S,3]; weight h [1,1,2]; weight c [1,1,2]
    weight a [8,3]; weight b [8,2])";
  check_sizes(inputs + lstm, {{"S", 9}}, all_up_to(9));
  check_sizes(R"(size S 1..9; input x [S,2,3]; weight h [2,2,2]; weight a [6,3]; weight b [6,2]
    weight d [6,2]; weight e [6,2]
    l = aten.gru.input(x, h, a, b, d, e) [S,2,2] | [2,2,2] {"_tensor_list_sizes": [4], "has_biases": false, "num_layers": 2, "dropout": 0.0, "train": false, "bidirectional": false, "batch_first": false}
    s = getitem(l_0, l_1) [2,2,2] {"index": 1}
    y = select.int(s) [2,2] {"dim": 0, "index": 1}
    output y)",
              {{"S", 9}}, all_up_to(9));
  Diagnostics faults;
  pad_graph(test::template_of(inputs + lstm + "; output u"), {{"S", 9}}, faults);
  REQUIRE(faults.has_errors());
  CHECK(faults.entries().front().text.find("read the last row of its outputs") !=
        std::string::npos);
}

TEST_CASE("numbers that are sizes are those of the valid rows", "[padding]") {
  check_sizes(R"(
    size S 1..9; input x [2,S,4]; input at [2] int64
    i = arange() [S] int64 {"end": "S", "dtype": "torch.int64"}
    f = to.dtype(i) [S] {"dtype": "torch.float32"}
    p = div.Tensor(f) [S] {"other": "S"}
    c = view(p) [S,1] {"size": ["S", 1]}
    y = add.Tensor(x, c) [2,S,4]
    s = sum.dim_IntList(y) [2,4] {"dim": [1]}
    m = div.Tensor(s) [2,4] {"other": "S + 1"}
    n = full() [] int64 {"size": [], "fill_value": "S", "dtype": "torch.int64"}
    w = remainder.Tensor(at, n) [2] int64
    b = arange() [2] int64 {"end": 2, "dtype": "torch.int64"}
    r = index.Tensor(y, b, w) [2,4] {"_tensor_list_sizes": [2]}
    l = lt.Scalar(f) [S] bool {"other": "S - 1"}
    o = full() [2,S] {"size": [2, "S"], "fill_value": "S", "dtype": "torch.float32"}
    k = where.ScalarOther(l, o) [2,S] {"other": 0}
    q = floor_divide.Scalar(at) [2] int64 {"other": "S"}
    output q; output y; output m; output r; output k)",
              {{"S", 9}}, all_up_to(9));
}

TEST_CASE("sizes at which nothing would be left are not proved", "[padding]") {
  const std::string lines = R"(
    size S 2..9; input x [2,S,4]
    a = slice.Tensor(x) [2,"S - 2",4] {"dim": 1, "start": 2, "end": "S", "step": 1}
    b = relu(a) [2,"S - 2",4]
    output b)";
  Diagnostics faults;
  const PaddedGraph padded = pad_graph(template_of(lines), {{"S", 9}}, faults);
  REQUIRE_FALSE(faults.has_errors());
  CHECK(padded.padding.symbols[0].min == 3);
  std::vector<SizeBindings> sizes = all_up_to(9);
  sizes.erase(sizes.begin(), sizes.begin() + 2);  // of 2 rows nothing is left
  check_sizes(lines, {{"S", 9}}, sizes);
}

TEST_CASE("a convolution that streams keeps its last inputs", "[padding]") {
  check_sizes(R"(
    size S 1..12; input x [1,4,S]; input kept [1,4,2]; weight w [4,1,3]
    all = cat(kept, x) [1,4,"S + 2"] {"dim": 2, "_tensor_list_sizes": [2]}
    next = slice.Tensor(all) [1,4,2] {"dim": 2, "start": "S", "end": "S + 2", "step": 1}
    y = conv1d(all, w) [1,4,S] {"groups": 4, "_none_args": ["bias"]}
    before = slice.Tensor(all) [1,4,1] {"dim": 2, "start": -3, "end": "S", "step": 1}
    third = select.int(all) [1,4] {"dim": 2, "index": -3}
    output y; output next; output before; output third)",
              {{"S", 12}}, all_up_to(12));
}

TEST_CASE("a tagger with a recurrence, and indices that count on", "[padding]") {
  check_sizes(R"(
    size S 1..9; input x [1,S,3]; input i [1,S] int64; weight h [1,1,2]; weight c [1,1,2]
    weight a [8,3]; weight b [8,2]; weight t [64,2]
    l = aten.lstm.input(x, h, c, a, b) [1,S,2] | [1,1,2] | [1,1,2] {"_tensor_list_sizes": [2, 2], "has_biases": false, "num_layers": 1, "dropout": 0.0, "train": false, "bidirectional": false, "batch_first": true}
    k = cumsum(i) [1,S] int64 {"dim": 1}
    e = embedding(t, k) [1,S,2]
    y = mul.Tensor(l_0, e) [1,S,2]
    m = amax(y) [1,2] {"dim": [1]}
    z = select.int(y) [1,2] {"dim": 1, "index": -1}
    s = sum.dim_IntList(y) [1,2] {"dim": [1]}
    output y; output m; output z; output s)",
              {{"S", 9}}, all_up_to(9));
}
