// SPDX-License-Identifier: Apache-2.0
// Products of integers whose results are int32, as ONNX's MatMulInteger and ConvInteger are
// imported: the numbers of the device npu against those of libtorch, and no difference at all.
#include <string>
#include <vector>

#include "backends/two_devices.hpp"
#include "catch.hpp"
#include "graph_builder.hpp"

namespace npu {
namespace {

using test::DeviceRun;
using test::GraphBuilder;
using KernelNames = std::vector<std::string>;

class IntegerGraph : public GraphBuilder {
 public:
  /// An operand of 8 bits as int32, from the host or constant.
  IntegerGraph& factor(const std::string& name, const Shape& shape, const std::string& dtype,
                       bool is_constant = false) {
    if (is_constant) {
      weight("q_" + name, shape, dtype);
    } else {
      input("q_" + name, shape, dtype);
    }
    return wide(name, (is_constant ? "p_q_" : "q_") + name, shape);
  }
  /// The same without its zero point, which has 8 bits, too, and is known only when it runs.
  IntegerGraph& centred(const std::string& name, const Shape& shape, const std::string& dtype,
                        const Shape& zeros, bool is_constant = false) {
    factor("all_" + name, shape, dtype, is_constant);
    factor("zero_" + name, zeros, dtype);
    node(name, "aten.sub.Tensor", {"all_" + name, "zero_" + name}, shape, Json::object(), "int32");
    return *this;
  }
  IntegerGraph& product(const std::string& op, const Shape& shape,
                        const Json& attrs = Json::object()) {
    node("y", op, {"a", "b"}, shape, attrs, "int32");
    output("y");
    return *this;
  }

 private:
  IntegerGraph& wide(const std::string& name, const std::string& from, const Shape& shape) {
    node(name, "aten.to.dtype", {from}, shape, {{"dtype", "torch.int32"}}, "int32");
    return *this;
  }
};

Tensor integers_of(const TensorInfo& info, unsigned seed) {
  Tensor values(info.dtype, info.shape);
  unsigned state = seed * 2654435761U + 1;
  for (std::int64_t i = 0; i < values.element_count(); ++i) {
    state = state * 1664525U + 1013904223U;
    if (info.dtype == DType::kInt32) {
      values.as_mutable<std::int32_t>()[i] = static_cast<std::int32_t>(state >> 24) - 128;
    } else {
      values.as_mutable<std::uint8_t>()[i] = static_cast<std::uint8_t>(state >> 24);
    }
  }
  return values;
}

DeviceRun run_integers(const GraphBuilder& builder, const std::string& device) {
  const Graph graph = builder.build();
  std::vector<Tensor> weights;
  std::vector<Tensor> inputs;
  for (const TensorInfo& tensor : graph.tensors()) {
    weights.push_back(tensor.kind == TensorKind::kWeight ? integers_of(tensor, 3) : Tensor());
  }
  for (const TensorId id : graph.graph_inputs()) {
    inputs.push_back(integers_of(graph.tensor(id), 5 + static_cast<unsigned>(inputs.size())));
  }
  return test::run_on(builder, device, weights, inputs);
}

/// Compares, and returns the kernels.
KernelNames check_integers(const GraphBuilder& builder) {
  const DeviceRun run = run_integers(builder, "npu");
  const Tensor expected = run_integers(builder, "cpu").result;
  REQUIRE(run.result.dtype() == DType::kInt32);
  REQUIRE(run.result.shape() == expected.shape());
  for (std::int64_t i = 0; i < expected.element_count(); ++i) {
    INFO(i);
    REQUIRE(run.result.as<std::int32_t>()[i] == expected.as<std::int32_t>()[i]);
  }
  return run.kernels;
}

const KernelNames kProduct{"integer-product"};

}  // namespace

TEST_CASE("onednn: products of 8 bits are exact, whatever their zero points",
          "[onednn][integers]") {
  const std::string left = GENERATE("uint8", "int8");
  const std::string right = GENERATE("uint8", "int8");
  IntegerGraph graph;
  SECTION("without zero points") {
    graph.factor("a", {5, 37}, left).factor("b", {37, 19}, right, true);
    graph.product("aten.matmul.default", {5, 19});
    CHECK(check_integers(graph) == kProduct);
  }
  SECTION("one for all") {
    graph.centred("a", {2, 5, 1037}, left, {}).factor("b", {1037, 19}, right, true);
    graph.product("aten.matmul.default", {2, 5, 19});
    const KernelNames kernels = check_integers(graph);
    CHECK(kernels.back() == "integer-product");
    CHECK(kernels.size() == 2);  // the zero point is converted
  }
  SECTION("one for each row and column") {
    graph.centred("a", {5, 37}, left, {5, 1}).centred("b", {37, 40}, right, {1, 40}, true);
    graph.product("aten.mm.default", {5, 40});
    CHECK(check_integers(graph).back() == "integer-product");
  }
  SECTION("batches") {
    graph.centred("a", {3, 5, 37}, left, {1}).centred("b", {3, 37, 19}, right, {19});
    graph.product("aten.bmm.default", {3, 5, 19});
    CHECK(check_integers(graph).back() == "integer-product");
  }
  SECTION("rows of several matrices, which the kernel does not know") {
    graph.centred("a", {3, 5, 37}, left, {3, 5, 1}).factor("b", {37, 19}, right, true);
    graph.product("aten.matmul.default", {3, 5, 19});
    CHECK(check_integers(graph).size() > 2);
  }
}

TEST_CASE("onednn: products of int32 are exact", "[onednn][integers]") {
  IntegerGraph graph;
  SECTION("matrices") {
    graph.input("a", {2, 5, 37}, "int32").input("b", {37, 19}, "int32");
    graph.product("aten.matmul.default", {2, 5, 19});
  }
  SECTION("a vector") {
    graph.input("a", {37}, "int32").input("b", {3, 37, 19}, "int32");
    graph.product("aten.matmul.default", {3, 19});
  }
  SECTION("a convolution") {
    graph.input("a", {2, 4, 7, 6}, "int32").input("b", {6, 2, 3, 2}, "int32");
    graph.product("aten.conv2d.default", {2, 6, 4, 3},
                  {{"stride", {2, 2}}, {"padding", {1, 0}}, {"groups", 2}});
  }
  SECTION("with a constant that bytes hold") {
    graph.factor("a", {5, 37}, "uint8").weight("b", {37, 19}, "int32");
    graph.node("y", "aten.matmul.default", {"a", "p_b"}, Shape{5, 19}, Json::object(), "int32");
    graph.output("y");
  }
  CHECK(check_integers(graph) == kProduct);
}

TEST_CASE("onednn: convolutions of 8 bits are exact, with zero points around the image",
          "[onednn][integers]") {
  const std::string left = GENERATE("uint8", "int8");
  const std::string right = GENERATE("uint8", "int8");
  IntegerGraph graph;
  SECTION("in one dimension") {
    graph.centred("a", {2, 3, 17}, left, {}).centred("b", {5, 3, 4}, right, {}, true);
    graph.product("aten.conv1d.default", {2, 5, 9}, {{"stride", {2}}, {"padding", {2}}});
  }
  SECTION("in two, with a zero point for each channel") {
    graph.centred("a", {1, 16, 9, 8}, left, {}).centred("b", {24, 16, 3, 3}, right, {24, 1, 1, 1});
    graph.product("aten.conv2d.default", {1, 24, 9, 8}, {{"padding", {1, 1}}});
  }
  SECTION("in groups") {
    graph.centred("a", {2, 6, 9, 8}, left, {1}).factor("b", {12, 1, 3, 3}, right, true);
    graph.product("aten.conv2d.default", {2, 12, 5, 4},
                  {{"stride", {2, 2}}, {"padding", {1, 1}}, {"groups", 6}});
  }
  SECTION("in three") {
    graph.factor("a", {1, 4, 5, 6, 7}, left).centred("b", {3, 4, 2, 3, 1}, right, {}, true);
    graph.product("aten.conv3d.default", {1, 3, 6, 4, 7}, {{"padding", {1, 0, 0}}});
  }
  CHECK(check_integers(graph).back() == "integer-product");
}

TEST_CASE("onednn: a zero point that bytes do not hold lies around an image, too",
          "[onednn][integers]") {
  IntegerGraph graph;
  graph.factor("all_a", {1, 4, 6, 6}, "uint8").input("zero", {1}, "int32");  // -34
  graph.node("a", "aten.sub.Tensor", {"all_a", "zero"}, Shape{1, 4, 6, 6}, Json::object(), "int32");
  graph.factor("b", {8, 4, 3, 3}, "int8", true);
  SECTION("of an image with a border") {
    graph.product("aten.conv2d.default", {1, 8, 6, 6}, {{"padding", {1, 1}}});
    CHECK(check_integers(graph).size() > 1);
  }
  SECTION("without one, which is taken from the sums as any other") {
    graph.product("aten.conv2d.default", {1, 8, 4, 4});
    CHECK(check_integers(graph) == kProduct);
  }
}

TEST_CASE("onednn: a scale that is computed quantizes", "[onednn][integers]") {
  GraphBuilder graph;
  graph.lines(R"(
    input q_s [] int32; input z [] uint8; input q_x [7,5] int32
    f = aten.to.dtype(q_s) float32 {"dtype": "torch.float32"}
    s = abs(f)
    x = aten.to.dtype(q_x) float32 {"dtype": "torch.float32"}
    y = quantized_decomposed.quantize_per_tensor.tensor(x, s, z) uint8 {"quant_min": 0,
        "quant_max": 255, "dtype": "torch.uint8", "divide_by_scale": true}
    w = aten.to.dtype(y) int32 {"dtype": "torch.int32"}; output w)");
  CHECK(check_integers(graph).size() >= 3);
}

}  // namespace npu
