// SPDX-License-Identifier: Apache-2.0
// Every pair of functions behind a convolution, a product or a transposed convolution, in float32,
// bfloat16, float16 and int8, against the generator's oracle. A list of post-ops holds functions by
// their algorithm, so it is pairs that go wrong: the second is computed with the numbers of the
// first.
//
// A run takes a tenth of the pairs: those of the seed NPU_FUNCTION_PAIRS, 0 if there is none; ten
// seeds in a row take all of them once, and so does NPU_FUNCTION_PAIRS=all.
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "backends/onednn/onednn_harness.hpp"
#include "catch.hpp"
#include "seed.hpp"
#include "test_paths.hpp"

namespace npu {
namespace {

using test::Network;
using Function = std::pair<std::string, Json>;

/// Those with numbers twice, each time with others.
std::vector<Function> functions() {
  std::vector<Function> all;
  for (const bool second : {false, true}) {
    const auto either = [&](double a, double b) { return second ? b : a; };
    all.push_back({"leaky_relu.default", {{"negative_slope", either(0.125, 0.75)}}});
    all.push_back({"clamp.default", {{"min", either(-0.5, -1.25)}, {"max", either(0.75, 0.25)}}});
    all.push_back({"elu.default", {{"alpha", either(0.5, 1.75)}}});
    all.push_back({"celu.default", {{"alpha", either(0.5, 1.5)}}});
    all.push_back({"mul.Tensor", {{"other", either(0.3, -1.75)}}});
    all.push_back({"add.Tensor", {{"other", either(0.4, -0.875)}}});
    all.push_back({"sub.Tensor", {{"other", either(0.25, -0.625)}}});
    all.push_back({"div.Tensor", {{"other", either(1.6, -0.7)}}});
  }
  all.push_back({"gelu.default", {{"approximate", "tanh"}}});
  for (const std::string name : {"relu", "silu", "sigmoid", "tanh", "hardswish", "hardsigmoid",
                                 "gelu", "selu", "mish", "abs", "neg", "square"})
    all.push_back({name + ".default", Json::object()});
  return all;
}

struct PairedLayer {
  std::string op;
  Shape source;
  Shape weight;
  Json attrs = Json::object();
};

const PairedLayer kLayers[] = {
    {"aten.conv2d.default", {1, 16, 6, 6}, {16, 16, 3, 3}, {{"padding", {1, 1}}}},
    {"aten.conv2d.default", {2, 12, 5, 5}, {20, 12, 1, 1}},
    {"aten.conv2d.default", {1, 16, 7, 7}, {16, 1, 3, 3}, {{"padding", {1, 1}}, {"groups", 16}}},
    {"aten.conv1d.default", {1, 3, 20}, {7, 3, 4}},
    {"aten.conv_transpose2d.input", {1, 16, 4, 4}, {16, 8, 3, 3}, {{"stride", {2, 2}}}},
    {"aten.conv_transpose2d.input", {1, 16, 4, 4}, {16, 16, 2, 2}, {{"stride", {2, 2}}}},
    {"aten.linear.default", {5, 16}, {32, 16}},
    {"aten.linear.default", {3, 13}, {7, 13}},
    {"aten.matmul.default", {2, 3, 5, 6}, {2, 3, 6, 9}},
};

/// Layers with two functions behind each, on inputs of their own.
class PairedNetwork {
 public:
  PairedNetwork(const PairedLayer& layer, DType dtype) : layer_(layer), dtype_(dtype) {
    weight_ = add_data("p_w", layer.weight, layer.op != "aten.matmul.default");
  }

  void add(const Function& first, const Function& second) {
    const std::size_t x = add_data("x" + std::to_string(network_.tensors.size()), layer_.source);
    const std::size_t y = add_node(layer_.op, layer_.attrs, {x, weight_});
    const std::size_t f = add_node("aten." + first.first, first.second, {y});
    network_.outputs.push_back(add_node("aten." + second.first, second.second, {f}));
  }

  void check(const std::string& precision) {
    if (network_.outputs.empty()) return;
    REQUIRE(test::recompute(network_));
    test::Totals totals;
    INFO(layer_.op << ' ' << shape_text(layer_.weight) << ' ' << dtype_name(dtype_) << ' '
                   << precision << '\n'
                   << network_.text());
    CHECK(test::fault_of(network_, {.precision = precision}, totals) == "");
  }

 private:
  std::size_t add_data(const std::string& name, const Shape& shape, bool is_weight = false) {
    test::NetworkTensor tensor{.name = name, .values = {}};
    if (is_weight) tensor.kind = test::NetworkTensor::Kind::kWeight;
    tensor.data =
        test::random_values({.shape = shape, .dtype = dtype_, .is_weight = is_weight}, random_);
    tensor.values = conformance::values_of(tensor.data);
    network_.tensors.push_back(std::move(tensor));
    return network_.tensors.size() - 1;
  }
  std::size_t add_node(const std::string& op, const Json& attrs,
                       const std::vector<std::size_t>& operands) {
    const std::size_t result = network_.tensors.size();
    network_.tensors.push_back({.name = "n" + std::to_string(result),
                                .kind = test::NetworkTensor::Kind::kResult,
                                .values = {}});
    network_.nodes.push_back({op, attrs, operands, {result}});
    return result;
  }

  PairedLayer layer_;
  DType dtype_;
  conformance::Random random_{3};
  std::size_t weight_ = 0;
  Network network_;
};

}  // namespace

TEST_CASE("every pair of functions behind a layer is computed with its own numbers",
          "[onednn][fusion]") {
  if (!test::use_backends()) return;
  const char* setting = std::getenv("NPU_FUNCTION_PAIRS");
  const std::string which = setting == nullptr ? "0" : setting;
  const auto seed = static_cast<std::size_t>(std::strtoul(which.c_str(), nullptr, 10));
  constexpr std::size_t kChains = 24;  // of a network
  const std::pair<DType, std::string> precisions[] = {{DType::kFloat32, "f32"},
                                                      {DType::kFloat32, "f16"},
                                                      {DType::kBFloat16, "f32"},
                                                      {DType::kFloat16, "f32"},
                                                      {DType::kFloat32, "int8"}};
  const std::vector<Function> all = functions();
  for (std::size_t layer = 0; layer < std::size(kLayers); ++layer) {
    for (const auto& [dtype, precision] : precisions) {
      if (precision == "f16" && !test::onednn::has_avx2()) continue;  // which it needs
      PairedNetwork network(kLayers[layer], dtype);
      std::size_t count = 0;
      for (std::size_t i = 0; i < all.size() * all.size(); ++i) {
        if (which != "all" && (i + layer + seed) % 10 != 0) continue;
        network.add(all[i / all.size()], all[i % all.size()]);
        if (++count % kChains != 0) continue;
        network.check(precision);
        network = PairedNetwork(kLayers[layer], dtype);
      }
      network.check(precision);
    }
  }
}

}  // namespace npu
