// SPDX-License-Identifier: Apache-2.0
// What ONNX's quantized ops become: quantized_decomposed nodes with the arguments that PyTorch
// exports, around ops that stay as they are.
#include <algorithm>

#include "catch.hpp"
#include "frontend/onnx_imported.hpp"
#include "npu/runtime/weight_store.hpp"

using namespace npu;
using namespace npu::test;

namespace {

constexpr std::uint64_t kUInt8 = 2;
constexpr std::uint64_t kInt8 = 3;
constexpr std::uint64_t kInt32 = 6;

Proto one_number(std::string_view name, float value) { return onnx_tensor(name, {}, {value}); }
Proto one_integer(std::string_view name, std::int64_t value, std::uint64_t type) {
  return onnx_integers(name, {}, {value}, type);
}

const std::string kPerTensor = "quantized_decomposed.dequantize_per_tensor.default";
const std::string kPerChannel = "quantized_decomposed.dequantize_per_channel.default";
const std::string kQuantize = "quantized_decomposed.quantize_per_tensor.default";

// x of [1, 2, 3, 3], quantized, convolved with int8 weights of [4, 2, 1, 1], quantized.
Proto convolution_graph() {
  return Proto()
      .message(5, one_number("xs", 0.5F))
      .message(5, one_integer("xz", 128, kUInt8))
      .message(5, onnx_integers("w", {4, 2, 1, 1}, {1, -2, 3, -4, 5, -6, 7, -8}, kInt8))
      .message(5, onnx_tensor("ws", {4}, {0.25F, 0.5F, 1, 2}))
      .message(5, onnx_integers("wz", {4}, {0, 0, 0, 0}, kInt8))
      .message(5, one_number("ys", 4))
      .message(5, one_integer("yz", 3, kInt8))
      .message(11, onnx_value("x", {1, 2, 3, 3}));
}

Json attrs_without_notes(const Node& node) {
  Json attrs = node.attrs();
  for (auto item = attrs.begin(); item != attrs.end();) {
    item = item.key().starts_with('_') ? attrs.erase(item) : std::next(item);
  }
  return attrs;
}

}  // namespace

TEST_CASE("onnx: a convolution between its conversions stays one", "[frontend]") {
  const Proto graph = convolution_graph()
                          .message(1, onnx_node("QuantizeLinear", {"x", "xs", "xz"}, {"q"}))
                          .message(1, onnx_node("DequantizeLinear", {"q", "xs", "xz"}, {"d"}))
                          .message(1, onnx_node("DequantizeLinear", {"w", "ws", "wz"}, {"v"})
                                          .message(5, onnx_int("axis", -4)))
                          .message(1, onnx_node("Conv", {"d", "v"}, {"c"}))
                          .message(1, onnx_node("QuantizeLinear", {"c", "ys", "yz"}, {"y"}))
                          .message(12, onnx_value("y", {1, 4, 3, 3}, kInt8));
  const Imported model = import_bytes(onnx_model(graph).text());
  CHECK(model.errors.empty());
  REQUIRE(model.ops() == std::vector<std::string>{kQuantize, kPerTensor, kPerChannel,
                                                  "aten.conv2d.default", kQuantize});
  const auto attrs = [&](std::size_t node) {
    return attrs_without_notes(model.graph.nodes()[node]);
  };
  CHECK(attrs(0) == Json{{"scale", 0.5},
                         {"zero_point", 128},
                         {"quant_min", 0},
                         {"quant_max", 255},
                         {"dtype", "torch.uint8"},
                         {"divide_by_scale", true}});
  CHECK(attrs(1) == Json{{"scale", 0.5},
                         {"zero_point", 128},
                         {"quant_min", 0},
                         {"quant_max", 255},
                         {"dtype", "torch.uint8"}});
  CHECK(attrs(2) ==
        Json{{"axis", 0}, {"quant_min", -128}, {"quant_max", 127}, {"dtype", "torch.int8"}});
  CHECK(model.graph.nodes()[2].inputs.size() == 3);
  CHECK(attrs(4)["dtype"] == "torch.int8");
}

TEST_CASE("onnx: QLinearConv is the same pattern, in float64", "[frontend]") {
  const Proto graph =
      convolution_graph()
          .message(1, onnx_node("QuantizeLinear", {"x", "xs", "xz"}, {"q"}))
          .message(1,
                   onnx_node("QLinearConv", {"q", "xs", "xz", "w", "ws", "wz", "ys", "yz"}, {"y"}))
          .message(12, onnx_value("y", {1, 4, 3, 3}, kInt8));
  const Imported model = import_bytes(onnx_model(graph).text());
  CHECK(model.errors.empty());
  REQUIRE(model.ops() == std::vector<std::string>{kQuantize, kPerTensor, kPerChannel,
                                                  "aten.conv2d.default", kQuantize});
  CHECK(model.graph.nodes()[1].attrs()["out_dtype"] == "torch.float64");
  CHECK(model.graph.nodes()[1].attrs()["scale"] == 0.5);
  CHECK(model.graph.tensor(model.graph.nodes()[3].outputs[0]).dtype == DType::kFloat64);
  CHECK(model.graph.tensor(model.graph.graph_outputs()[0]).dtype == DType::kInt8);
}

TEST_CASE("onnx: a product with a dequantized matrix is linear", "[frontend]") {
  // w is 2 x 3, with a scale for each column; the document has its transpose.
  const Proto weights = Proto()
                            .message(5, onnx_integers("w", {2, 3}, {1, -2, 3, -4, 5, -6}, kInt8))
                            .message(5, onnx_tensor("ws", {3}, {0.25F, 0.5F, 1}))
                            .message(5, onnx_integers("bq", {3}, {1, 2, 3}, kInt8))
                            .message(5, onnx_tensor("b", {3}, {1, 2, 3}))
                            .message(5, one_number("bs", 0.5F))
                            .message(1, onnx_node("DequantizeLinear", {"w", "ws"}, {"v"}))
                            .message(1, onnx_node("DequantizeLinear", {"bq", "bs"}, {"c"}))
                            .message(11, onnx_value("x", {4, 2}))
                            .message(12, onnx_value("y", {4, 3}));
  Proto product = weights;
  const Imported model =
      import_bytes(onnx_model(product.message(1, onnx_node("MatMul", {"x", "v"}, {"p"}))
                                  .message(1, onnx_node("Add", {"p", "b"}, {"y"})))
                       .text());
  CHECK(model.errors.empty());
  REQUIRE(model.ops() == std::vector<std::string>{kPerChannel, "aten.linear.default"});
  CHECK(model.graph.nodes()[0].attrs()["axis"] == 0);
  CHECK(model.graph.tensor(model.graph.nodes()[0].outputs[0]).shape == Shape{3, 2});
  CHECK(model.graph.nodes()[1].inputs.size() == 3);
  Proto gemm = weights;
  CHECK(import_bytes(onnx_model(gemm.message(1, onnx_node("Gemm", {"x", "v", "c"}, {"y"}))).text())
            .ops() == std::vector<std::string>{kPerTensor, kPerChannel, "aten.linear.default"});
}

TEST_CASE("onnx: a bias of int32 is known in float and part of its product", "[frontend]") {
  const Proto graph =
      Proto()
          .message(5, onnx_integers("w", {2, 3}, {1, -2, 3, -4, 5, -6}, kInt8))
          .message(5, onnx_tensor("ws", {3}, {0.25F, 0.5F, 1}))
          .message(5, onnx_integers("bq", {3}, {100, -200, 16777217}, kInt32))
          .message(5, onnx_tensor("bs", {3}, {0.5F, 0.25F, 1}))
          .message(1, onnx_node("DequantizeLinear", {"w", "ws"}, {"v"}))
          .message(
              1, onnx_node("DequantizeLinear", {"bq", "bs"}, {"c"}).message(5, onnx_int("axis", 0)))
          .message(1, onnx_node("MatMul", {"x", "v"}, {"p"}))
          .message(1, onnx_node("Add", {"p", "c"}, {"y"}))
          .message(11, onnx_value("x", {4, 2}))
          .message(12, onnx_value("y", {4, 3}));
  const Imported model = import_bytes(onnx_model(graph).text());
  CHECK(model.errors.empty());
  REQUIRE(model.ops() == std::vector<std::string>{kPerChannel, "aten.linear.default"});
  REQUIRE(model.graph.nodes()[1].inputs.size() == 3);
  Diagnostics diagnostics;
  const std::vector<Tensor> weights = load_weights(model.graph, {}, diagnostics);
  const Tensor& bias = weights[index_of(model.graph.nodes()[1].inputs[2])];
  REQUIRE(bias.dtype() == DType::kFloat32);
  CHECK(bias.as<float>()[0] == 50);
  CHECK(bias.as<float>()[1] == -50);
  CHECK(bias.as<float>()[2] == 16777216);  // to nearest, ties to even
}

TEST_CASE("onnx: a scale that is computed is an operand", "[frontend]") {
  const Proto graph = Proto()
                          .message(1, onnx_node("DynamicQuantizeLinear", {"x"}, {"q", "s", "z"}))
                          .message(1, onnx_node("DequantizeLinear", {"q", "s", "z"}, {"y"}))
                          .message(11, onnx_value("x", {4}))
                          .message(12, onnx_value("y", {4}));
  const Imported model = import_bytes(onnx_model(graph).text());
  CHECK(model.errors.empty());
  const auto ops = model.ops();
  REQUIRE(ops.size() > 2);
  CHECK(ops[ops.size() - 2] == "quantized_decomposed.quantize_per_tensor.tensor");
  CHECK(ops.back() == "quantized_decomposed.dequantize_per_tensor.tensor");
}

TEST_CASE("onnx: blocks of an axis are channels of a matrix", "[frontend]") {
  // Three blocks of two in five columns.
  const Proto graph = Proto()
                          .message(1, onnx_node("QuantizeLinear", {"x", "s"}, {"y"})
                                          .message(5, onnx_int("axis", 1))
                                          .message(5, onnx_int("block_size", 2)))
                          .message(5, onnx_tensor("s", {2, 3}, {1, 2, 3, 4, 5, 6}))
                          .message(11, onnx_value("x", {2, 5}))
                          .message(12, onnx_value("y", {2, 5}, kUInt8));
  const Imported model = import_bytes(onnx_model(graph, 21).text());
  CHECK(model.errors.empty());
  const auto ops = model.ops();
  const auto found =
      std::find(ops.begin(), ops.end(), "quantized_decomposed.quantize_per_channel.default");
  REQUIRE(found != ops.end());
  const Node& node = model.graph.nodes()[static_cast<std::size_t>(found - ops.begin())];
  CHECK(model.graph.tensor(node.outputs[0]).shape == Shape{6, 2});
  CHECK(model.graph.tensor(model.graph.graph_outputs()[0]).shape == Shape{2, 5});
}

TEST_CASE("onnx: scales that do not fit are refused", "[frontend]") {
  const auto errors = [](const Proto& node, const Proto& scale, std::uint64_t opset) {
    const Proto graph = Proto()
                            .message(1, node)
                            .message(5, scale)
                            .message(11, onnx_value("x", {2, 5}))
                            .message(12, onnx_value("y", {2, 5}));
    return import_bytes(onnx_model(graph, opset).text()).errors;
  };
  const Proto plain = onnx_node("QuantizeLinear", {"x", "s"}, {"y"}, "q");
  CHECK(errors(plain, onnx_tensor("s", {3}, {1, 2, 3}), 13) ==
        "node 'q' (QuantizeLinear-13): a scale or zero point of shape [3] does not fit axis 1 of "
        "shape [2, 5]\n");
  Proto far = plain;
  CHECK(errors(far.message(5, onnx_int("axis", 2)), onnx_tensor("s", {5}, {1, 2, 3, 4, 5}), 13) ==
        "node 'q' (QuantizeLinear-13): axis 2 of a tensor of rank 2\n");
  Proto blocks = plain;
  blocks.message(5, onnx_int("block_size", 2));
  CHECK(errors(blocks, onnx_tensor("s", {2, 2}, {1, 2, 3, 4}), 21) ==
        "node 'q' (QuantizeLinear-21): scales of shape [2, 2] do not fit blocks of 2 of shape "
        "[2, 5]\n");
  Proto missing = plain;
  CHECK(errors(missing, onnx_tensor("s", {2, 2}, {1, 2, 3, 4}), 21) ==
        "node 'q' (QuantizeLinear-21): a block_size of 0\n");
  // Four bits, and floats of eight.
  for (const auto& [type, name] : {std::pair{22, "INT4"}, std::pair{17, "FLOAT8E4M3FN"}}) {
    Proto node = plain;
    CHECK(errors(node.message(5, onnx_int("output_dtype", type)), onnx_tensor("s", {}, {1}), 21)
              .find("to type " + std::string(name) + ", which npu-tools does not have") !=
          std::string::npos);
  }
}

TEST_CASE("onnx: zero points of another type than the numbers are refused", "[frontend]") {
  const Proto graph = Proto()
                          .message(1, onnx_node("DequantizeLinear", {"x", "s", "z"}, {"y"}, "d"))
                          .message(5, onnx_integers("x", {2}, {1, 2}, kInt8))
                          .message(5, one_number("s", 0.5F))
                          .message(5, one_number("z", 2.7F))
                          .message(12, onnx_value("y", {2}));
  CHECK(import_bytes(onnx_model(graph, 13).text()).errors ==
        "node 'd' (DequantizeLinear-13): numbers of type int8 with zero points of type float32\n");
}
