// SPDX-License-Identifier: Apache-2.0
// Products and attention through the C ABI of the onednn backend.
#include <cstring>
#include <string>
#include <utility>

#include "backends/onednn/onednn_harness.hpp"
#include "catch.hpp"

namespace npu::test::onednn {
namespace {

TEST_CASE("onednn products", "[onednn]") {
  const npu_dtype dtype = each_dtype();
  for (const Shape& shape : {Shape{3, 10}, Shape{10}, Shape{2, 3, 10}, Shape{1, 10}}) {
    check_node(dtype, "aten.linear.default", {shape, {7, 10}});
    check_node(dtype, "aten.linear.default", {shape, {7, 10}, {7}});
  }
  for (const Shape& bias : {Shape{7}, Shape{1, 7}, Shape{4, 7}, Shape{4, 1}, Shape{}}) {
    for (const std::string attrs : {"", R"("alpha":0.5,"beta":-2)", R"("beta":0)"})
      check_node(dtype, "aten.addmm.default", {bias, {4, 5}, {5, 7}}, attrs, false);
  }
  const bool weight = GENERATE(false, true);
  check_node(dtype, "aten.mm.default", {{4, 5}, {5, 6}}, "", weight);
  check_node(dtype, "aten.bmm.default", {{3, 4, 5}, {3, 5, 6}}, "", weight);
  const std::pair<Shape, Shape> pairs[] = {{{5}, {5}},
                                           {{4, 5}, {5}},
                                           {{5}, {5, 6}},
                                           {{2, 3, 4, 5}, {5, 6}},
                                           {{4, 5}, {2, 3, 5, 6}},
                                           {{2, 1, 4, 5}, {3, 5, 6}},
                                           {{2, 3, 4, 5}, {2, 3, 5, 6}},
                                           {{2, 3, 4, 5}, {1, 1, 5, 6}},
                                           {{4, 4, 5}, {1, 4, 5, 6}},
                                           {{5}, {3, 5, 6}},
                                           {{3, 4, 5}, {5}}};
  for (const auto& [a, b] : pairs) check_node(dtype, "aten.matmul.default", {a, b}, "", weight);
}

TEST_CASE("onednn matrix products of transposed and sliced views", "[onednn]") {
  Model model(each_dtype());
  model.input("q", random_array({2, 5, 3, 4}, 1));
  model.input("k", random_array({2, 6, 3, 4}, 2));
  model.node("qt", "aten.transpose.int", {"q"}, R"("dim0":1,"dim1":2)");
  model.node("kt", "aten.permute.default", {"k"}, R"("dims":[0,2,3,1])");
  model.node("s", "aten.matmul.default", {"qt", "kt"});
  model.node("part", "aten.slice.Tensor", {"kt"}, R"("dim":3,"start":1,"end":6,"step":2)");
  model.node("t", "aten.matmul.default", {"qt", "part"});
  for (const char* name : {"s", "t", "kt"}) model.output(name);
  check_model(model);
}

TEST_CASE("onednn scaled_dot_product_attention", "[onednn]") {
  const npu_dtype dtype = each_dtype();
  const std::string op = "aten.scaled_dot_product_attention.default";
  const Shape q{2, 3, 5, 8}, k{2, 3, 6, 8}, v{2, 3, 6, 4};
  for (const std::string attrs : {"", R"("is_causal":true)", R"("scale":0.7)"})
    check_node(dtype, op, {q, k, v}, attrs, false);
  check_node(dtype, op, {q, k, v, {2, 1, 5, 6}}, "", false);
}

}  // namespace
}  // namespace npu::test::onednn
