// SPDX-License-Identifier: Apache-2.0
// Functions, arithmetic and rows through the C ABI of the onednn backend, in float32 and bfloat16.
#include <cstring>
#include <string>
#include <utility>

#include "backends/onednn/onednn_harness.hpp"
#include "catch.hpp"

namespace npu::test::onednn {
namespace {

TEST_CASE("onednn functions of one operand", "[onednn]") {
  const npu_dtype dtype = each_dtype();
  const Shape shape{2, 3, 5, 7};
  for (const Shape& each : {shape, Shape{}, Shape{1}})
    check_node(dtype, "aten.relu_.default", {each});
  const std::pair<std::string, std::string> attrs_of[] = {
      {"hardtanh_", R"("min_val":0.0,"max_val":6.0)"},
      {"leaky_relu_", R"("negative_slope":0.2)"},
      {"elu", R"("alpha":1.5)"},
      {"gelu", R"("approximate":"tanh")"},
      {"clamp", R"("min":-0.5)"}};
  for (const auto& [name, attrs] : attrs_of)
    check_node(dtype, "aten." + name + ".default", {shape}, attrs);
  for (const std::string name : {"relu", "hardtanh", "relu6", "silu_", "sigmoid", "tanh",
                                 "hardswish_", "hardsigmoid", "gelu", "exp", "abs", "neg", "mish"})
    check_node(dtype, "aten." + name + ".default", {shape});
}

TEST_CASE("onednn arithmetic on two operands broadcasts", "[onednn]") {
  const npu_dtype dtype = each_dtype();
  const std::pair<Shape, Shape> shapes = GENERATE(values<std::pair<Shape, Shape>>({
      {{2, 3, 4, 5}, {2, 3, 4, 5}},
      {{2, 3, 4, 5}, {3, 1, 1}},
      {{3, 1, 1}, {2, 3, 4, 5}},
      {{2, 3, 4, 5}, {5}},
      {{2, 3, 4, 5}, {}},
      {{}, {2, 3}},
      {{4, 1}, {1, 6}},
      {{2, 3, 1, 5}, {2, 1, 4, 5}},
      {{1, 1}, {1, 1}},
      {{7}, {1}},
  }));
  const auto& [a, b] = shapes;
  check_node(dtype, "aten.add.Tensor", {a, b}, R"("alpha":-2.5)", false);
  check_node(dtype, "aten.sub.Tensor", {a, b}, R"("alpha":2)", false);
  for (const std::string op :
       {"add.Tensor", "mul.Tensor", "div.Tensor", "maximum.default", "minimum.default"})
    check_node(dtype, "aten." + op, {a, b}, "", false);
}

TEST_CASE("onednn arithmetic with a number", "[onednn]") {
  const npu_dtype dtype = each_dtype();
  const Shape shape{2, 3, 5, 7};
  check_node(dtype, "aten.add.Tensor", {shape}, R"("other":1.5)");
  check_node(dtype, "aten.add_.Tensor", {shape}, R"("other":3,"alpha":2)");
  check_node(dtype, "aten.sub.Tensor", {shape}, R"("other":1.5)");
  check_node(dtype, "aten.mul.Tensor", {shape}, R"("other":-0.3)");
  check_node(dtype, "aten.mul_.Scalar", {shape}, R"("other":2)");
  check_node(dtype, "aten.div.Tensor", {shape}, R"("other":3.0)");
  check_node(dtype, "aten.rsub.Scalar", {shape}, R"("other":1.0)");
}

TEST_CASE("onednn maximum keeps NaN", "[onednn]") {
  Model model(NPU_FLOAT32);
  Array a = random_array({4}, 1);
  Array b = random_array({4}, 2);
  a.values[1] = NAN;
  b.values[2] = NAN;
  model.input("a", a);
  model.input("b", b);
  model.node("y", "aten.maximum.default", {"a", "b"});
  model.output("y");
  check_model(model);
}

TEST_CASE("onednn rows: mean, softmax and layer_norm", "[onednn]") {
  const npu_dtype dtype = each_dtype();
  for (const std::string dims : {"[-1,-2]", "[1]", "[-1]", "[0,2]", "[0,1,2,3]", "[]"}) {
    for (const std::string keep : {"false", "true"})
      check_node(dtype, "aten.mean.dim", {{2, 9, 5, 6}},
                 R"("dim":)" + dims + R"(,"keepdim":)" + keep);
  }
  for (const std::string dim : {"0", "1", "2", "-1"}) {
    check_node(dtype, "aten.softmax.int", {{3, 5, 7}}, R"("dim":)" + dim);
    check_node(dtype, "aten.log_softmax.int", {{3, 5, 7}}, R"("dim":)" + dim);
  }
  check_node(NPU_BFLOAT16, "aten.softmax.int", {{3, 7}}, R"("dim":-1,"dtype":"torch.float32")");
  for (const Shape& width : {Shape{6}, Shape{5, 6}}) {
    const std::string attrs = R"("normalized_shape":)" + list_text(width) + R"(,"eps":1e-4)";
    check_node(dtype, "aten.layer_norm.default", {{2, 4, 5, 6}}, attrs);
    check_node(dtype, "aten.layer_norm.default", {{2, 4, 5, 6}, width, width}, attrs);
  }
}

TEST_CASE("onednn converts between float32 and bfloat16", "[onednn]") {
  Model model(NPU_FLOAT32);
  model.input("x", random_array({3, 5}, 1));
  model.node("narrow", "aten.to.dtype", {"x"}, R"("dtype":"torch.bfloat16")");
  model.node("wide", "aten.to.dtype", {"narrow"}, R"("dtype":"torch.float32")");
  for (const char* name : {"narrow", "wide", "x"}) model.output(name);
  check_model(model);
}

// ---- Layouts, aliases and in-place ops across nodes ----

TEST_CASE("onednn keeps NaN through exp, hardsigmoid and softmax behind a product", "[onednn]") {
  Model model(NPU_FLOAT32);
  Array x = random_array({2, 4}, 1);
  x.values[1] = std::nan("");
  model.input("x", x);
  model.input("w", random_array({4, 4}, 2));
  model.node("p", "aten.mm.default", {"x", "w"});
  model.node("e", "aten.exp.default", {"p"});
  model.node("h", "aten.hardsigmoid.default", {"p"});
  model.node("s", "aten.softplus.default", {"p"});
  model.node("l", "aten.log_sigmoid.default", {"p"});
  model.node("m", "aten.softmax.int", {"p"}, R"("dim":1)");
  for (const char* name : {"e", "h", "s", "l", "m"}) model.output(name);
  check_model(model);
}

}  // namespace
}  // namespace npu::test::onednn
