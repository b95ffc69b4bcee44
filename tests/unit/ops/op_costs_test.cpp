// SPDX-License-Identifier: Apache-2.0
#include "catch.hpp"
#include "graph_builder.hpp"
#include "ops/op_catalogue.hpp"

namespace npu {
namespace {

// A graph of one node `n` that is fed by inputs of the given shapes.
struct OneNode {
  Graph graph;
  double flops() const { return node_flops(graph, graph.nodes().back()); }
  double bytes() const { return node_bytes(graph, graph.nodes().back()); }
  bool alias() const { return is_alias_node(graph, graph.nodes().back()); }
};

OneNode node(const std::string& op_type, const std::vector<Shape>& shapes, const Shape& result,
             const Json& attrs = Json::object(), const std::string& dtype = "float32") {
  test::GraphBuilder builder;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    names.push_back("x" + std::to_string(i));
    builder.input(names.back(), shapes[i]);
  }
  return {builder.node("n", op_type, names, result, attrs, dtype).output("n").build()};
}

TEST_CASE("convolutions") {
  // 8 * 16 results of 4 * 3 * 3 products.
  CHECK(node("aten.conv2d.default", {{1, 4, 6, 6}, {8, 4, 3, 3}}, {1, 8, 4, 4}).flops() ==
        2 * 128 * 36);
  CHECK(node("aten.conv2d.default", {{1, 4, 6, 6}, {8, 4, 3, 3}, {8}}, {1, 8, 4, 4}).flops() ==
        2 * 128 * 36 + 128);
  // Two groups halve the filters.
  CHECK(node("aten.conv2d.default", {{1, 4, 6, 6}, {8, 2, 3, 3}}, {1, 8, 4, 4}, {{"groups", 2}})
            .flops() == 2 * 128 * 18);
  CHECK(node("aten.conv1d.default", {{1, 4, 6}, {8, 4, 3}}, {1, 8, 4}).flops() == 2 * 32 * 12);
  CHECK(node("aten.conv3d.default", {{1, 2, 4, 4, 4}, {3, 2, 2, 2, 2}}, {1, 3, 3, 3, 3}).flops() ==
        2 * 81 * 16);
  // Transposed: each of 4 * 9 elements meets a filter of 8 * 2 * 2.
  CHECK(node("aten.conv_transpose2d.input", {{1, 4, 3, 3}, {4, 8, 2, 2}}, {1, 8, 4, 4}).flops() ==
        2 * 36 * 32);
  const Json attrs = {{"stride", {1, 1}},   {"padding", {0, 0}},        {"dilation", {1, 1}},
                      {"transposed", true}, {"output_padding", {0, 0}}, {"groups", 1}};
  CHECK(
      node("aten.convolution.default", {{1, 4, 3, 3}, {4, 8, 2, 2}}, {1, 8, 4, 4}, attrs).flops() ==
      2 * 36 * 32);
}

TEST_CASE("aggregations over edges") {
  // 40 edges with rows of 6: additions, and multiplications where edges have weights.
  CHECK(node("npu.segment_reduce", {{10, 6}, {5}, {40}}, {4, 6}).flops() == 240);
  CHECK(node("npu.segment_reduce", {{10, 6}, {5}, {40}, {40, 1}}, {4, 6}).flops() == 480);
  CHECK(node("npu.segment_reduce", {{10, 6}, {5}}, {4, 6}).flops() == 60);
}

TEST_CASE("matrix products") {
  CHECK(node("aten.linear.default", {{2, 5, 3}, {7, 3}}, {2, 5, 7}).flops() == 2 * 70 * 3);
  CHECK(node("aten.linear.default", {{2, 5, 3}, {7, 3}, {7}}, {2, 5, 7}).flops() ==
        2 * 70 * 3 + 70);
  CHECK(node("aten.addmm.default", {{7}, {5, 3}, {3, 7}}, {5, 7}).flops() == 2 * 35 * 3 + 35);
  CHECK(node("aten.mm.default", {{5, 3}, {3, 7}}, {5, 7}).flops() == 2 * 35 * 3);
  CHECK(node("aten.bmm.default", {{2, 5, 3}, {2, 3, 7}}, {2, 5, 7}).flops() == 2 * 70 * 3);
  CHECK(node("aten.baddbmm.default", {{2, 5, 7}, {2, 5, 3}, {2, 3, 7}}, {2, 5, 7}).flops() ==
        2 * 70 * 3 + 70);
  CHECK(node("aten.matmul.default", {{5, 3}, {2, 3, 7}}, {2, 5, 7}).flops() == 2 * 70 * 3);
  CHECK(node("aten.dot.default", {{9}, {9}}, {}).flops() == 2 * 9);
  CHECK(
      node("aten.einsum.default", {{2, 5, 3}, {2, 3, 7}}, {2, 5, 7}, {{"equation", "bij,bjk->bik"}})
          .flops() == 2 * 2 * 5 * 3 * 7);
  CHECK(node("aten.einsum.default", {{4, 2, 5, 3}, {3, 7}}, {4, 2, 5, 7},
             {{"equation", "...ij, jk->...ik"}})
            .flops() == 2 * 8 * 5 * 3 * 7);
}

TEST_CASE("attention") {
  // Scores 2 * 4 * 6 * 6, each 8 products, then 8 products again, and 5 for the softmax.
  CHECK(node("aten.scaled_dot_product_attention.default",
             {{2, 4, 6, 8}, {2, 4, 6, 8}, {2, 4, 6, 8}}, {2, 4, 6, 8})
            .flops() == 288 * (16 + 16 + 5));
}

TEST_CASE("recurrent networks") {
  // Input 3 x 2 x 5 (6 tokens), hidden 4: weights 16 x 5 and 16 x 4, biases 16 and 16.
  const Json attrs = {{"_tensor_list_sizes", {2, 4}},
                      {"has_biases", true},
                      {"num_layers", 1},
                      {"dropout", 0.0},
                      {"train", false},
                      {"bidirectional", false},
                      {"batch_first", false}};
  CHECK(node("aten.lstm.input", {{3, 2, 5}, {1, 2, 4}, {1, 2, 4}, {16, 5}, {16, 4}, {16}, {16}},
             {3, 2, 4}, attrs)
            .flops() == 6 * (2 * (80 + 64) + 32));
}

TEST_CASE("normalisation, pooling, softmax, reductions") {
  const Json eval = {
      {"training", false}, {"momentum", 0.1}, {"eps", 1e-5}, {"cudnn_enabled", true}};
  CHECK(node("aten.batch_norm.default", {{1, 8, 2, 2}, {8}, {8}, {8}, {8}}, {1, 8, 2, 2}, eval)
            .flops() == 2 * 32);
  CHECK(node("aten.layer_norm.default", {{2, 8}}, {2, 8}, {{"normalized_shape", {8}}}).flops() ==
        7 * 16);
  CHECK(node("aten.max_pool2d.default", {{1, 8, 4, 4}}, {1, 8, 2, 2}, {{"kernel_size", {2, 3}}})
            .flops() == 32 * 6);
  CHECK(
      node("aten.max_pool2d.default", {{1, 8, 4, 4}}, {1, 8, 2, 2}, {{"kernel_size", 2}}).flops() ==
      32 * 4);
  CHECK(node("aten.adaptive_avg_pool2d.default", {{1, 8, 4, 4}}, {1, 8, 1, 1},
             {{"output_size", {1, 1}}})
            .flops() == 128);
  CHECK(node("aten.softmax.int", {{2, 8}}, {2, 8}, {{"dim", -1}}).flops() == 5 * 16);
  CHECK(node("aten.sum.dim_IntList", {{2, 8}}, {2}, {{"dim", {1}}}).flops() == 16);
  CHECK(node("aten.var.correction", {{2, 8}}, {2}, {{"dim", {1}}}).flops() == 3 * 16);
}

TEST_CASE("element-wise ops count results, moves count nothing") {
  CHECK(node("aten.relu.default", {{2, 8}}, {2, 8}).flops() == 16);
  CHECK(node("aten.add.Tensor", {{2, 1}, {8}}, {2, 8}).flops() == 16);
  CHECK(node("aten.cat.default", {{2, 8}, {2, 8}}, {4, 8}).flops() == 0);
  CHECK(node("aten.full.default", {}, {4, 8}, {{"size", {4, 8}}, {"fill_value", 0}}).flops() == 0);
  CHECK(node("aten.clone.default", {{2, 8}}, {2, 8}).flops() == 0);
}

TEST_CASE("an op that nobody knows counts one per result element") {
  CHECK(node("my.op", {{2, 8}}, {4}).flops() == 4);
  CHECK(node("my.op", {{2, 8}}, {4}).bytes() == 64 + 16);
  // So does one whose arguments do not bind.
  CHECK(node("aten.conv2d.default", {{2, 8}}, {2, 8}).flops() == 16);
}

TEST_CASE("bytes: operands once each, and results") {
  CHECK(node("aten.add.Tensor", {{2, 8}, {8}}, {2, 8}).bytes() == 64 + 32 + 64);
  CHECK(node("aten.view.default", {{2, 8}}, {16}, {{"size", {16}}}).bytes() == 0);
  CHECK(node("aten.view.default", {{2, 8}}, {16}, {{"size", {16}}}).flops() == 0);
  // Of an embedding's table only the rows that are looked up: 2 * 3 results, 2 indices.
  CHECK(node("aten.embedding.default", {{100, 3}, {2}}, {2, 3}).bytes() == 24 + 8 + 24);
  const Graph square = test::graph_of(R"(
    input x [8]
    n = aten.mul.Tensor(x, x); output n)");
  CHECK(node_bytes(square, square.nodes()[0]) == 32 + 32);
}

TEST_CASE("aliases by argument") {
  const Json off = {{"p", 0.5}, {"train", false}};
  const Json on = {{"p", 0.5}, {"train", true}};
  CHECK(node("aten.dropout.default", {{8}}, {8}, off).alias());
  CHECK_FALSE(node("aten.dropout.default", {{8}}, {8}, on).alias());
  CHECK(node("aten.dropout.default", {{8}}, {8}, {{"p", 0}, {"train", true}}).alias());
  CHECK(node("aten.cat.default", {{8}}, {8}).alias());
  CHECK_FALSE(node("aten.cat.default", {{8}, {8}}, {16}).alias());
  CHECK(node("aten.pad.default", {{8}}, {8}, {{"pad", {0, 0}}}).alias());
  CHECK_FALSE(node("aten.pad.default", {{8}}, {9}, {{"pad", {0, 1}}}).alias());
  CHECK(node("aten.to.dtype", {{8}}, {8}, {{"dtype", "float32"}}).alias());
  CHECK_FALSE(node("aten.to.dtype", {{8}}, {8}, {{"dtype", "float16"}}, "float16").alias());
  CHECK(node("aten.to.dtype", {{8}}, {8}, {{"dtype", "float16"}}, "float16").bytes() == 32 + 16);
  CHECK_FALSE(node("aten.to.dtype", {{8}}, {8}, {{"dtype", "float32"}, {"copy", true}}).alias());
  CHECK_FALSE(node("my.op", {{8}}, {8}).alias());
}

TEST_CASE("operands that repeat among many are read once") {
  test::GraphBuilder builder;
  std::vector<std::string> names;
  for (int i = 0; i < 40; ++i) {
    const std::string name = "x" + std::to_string(i % 15);
    if (i < 15) builder.input(name, {1, i + 1});
    names.push_back(name);
  }
  const Graph graph =
      builder.node("n", "aten.cat.default", names, Shape{1, 300}).output("n").build();
  // 1 + 2 + ... + 15 = 120 elements, and the result.
  CHECK(node_bytes(graph, graph.nodes().back()) == 4 * (120 + 300));
}

TEST_CASE("a region without a body is an alias") {
  CHECK(node("wrap_with_set_grad_enabled", {{4}}, {4}).alias());
  CHECK(node("wrap_with_set_grad_enabled", {{4}}, {4}).bytes() == 0);
  CHECK_FALSE(node("wrap_with_set_grad_enabled", {{4}}, {4}, {{"body", Json::object()}}).alias());
}

}  // namespace
}  // namespace npu
