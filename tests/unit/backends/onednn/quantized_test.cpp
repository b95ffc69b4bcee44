// SPDX-License-Identifier: Apache-2.0
// Ops between dequantize and quantize nodes: the numbers against float64, one step apart at most
// and equal for 99.9 % of them, and no tensor of floats between the conversions where the CPU
// multiplies int8 exactly.
#include <algorithm>
#include <cmath>

#include "backends/onednn/onednn_harness.hpp"
#include "catch.hpp"
#include "npu/support/json.hpp"

namespace npu::test::onednn {
namespace {

struct Quantization {
  double scale = 1;
  int zero_point = 0;
  npu_dtype dtype = NPU_UINT8;
  bool divides = false;
  int least() const { return dtype == NPU_INT8 ? -128 : 0; }
  int most() const { return dtype == NPU_INT8 ? 127 : 255; }

  std::string attrs() const {
    return R"("scale":)" + std::to_string(scale) + R"(,"zero_point":)" +
           std::to_string(zero_point) + R"(,"quant_min":)" + std::to_string(least()) +
           R"(,"quant_max":)" + std::to_string(most()) + R"(,"dtype":"torch.)" + dtype_text(dtype) +
           "\"";
  }
};

const std::string kLibrary = "quantized_decomposed.";

/// A model in whose middle floats are quantized numbers.
class QuantizedModel : public Model {
 public:
  QuantizedModel() : Model(NPU_FLOAT32) {}

  /// Numbers that a host passes, as floats.
  void numbers(const std::string& name, const Shape& shape, const Quantization& as,
               std::uint32_t seed) {
    const Array all = map_values(random_array(shape, seed), [&](double x) {
      return std::clamp(std::floor(x * 64) + as.zero_point, double(as.least()), double(as.most()));
    });
    input("q_" + name, all, as.dtype);
    dequantize(name, "q_" + name, as);
  }

  void dequantize(const std::string& name, const std::string& from, const Quantization& as) {
    node(name, kLibrary + "dequantize_per_tensor.default", {from}, as.attrs());
  }

  /// int8 weights with a scale for each element of the first dimension.
  void channel_weight(const std::string& name, const Shape& shape, std::uint32_t seed) {
    Array scales({shape[0]});
    for (std::size_t i = 0; i < scales.values.size(); ++i) {
      scales.values[i] = 0.0078125 * static_cast<double>(1 + i % 3);
    }
    weight("q_" + name,
           map_values(random_array(shape, seed),
                      [](double x) { return std::clamp(std::round(x * 63), -127., 127.); }),
           NPU_INT8);
    weight("s_" + name, scales);
    weight("z_" + name, Array({shape[0]}), NPU_INT64);
    node(name, kLibrary + "dequantize_per_channel.default", {"q_" + name, "s_" + name, "z_" + name},
         R"("axis":0,"quant_min":-127,"quant_max":127,"dtype":"torch.int8")");
  }

  /// Quantizes a tensor, and makes the numbers an output.
  void quantize(const std::string& name, const std::string& from, const Quantization& to) {
    const std::string attrs = to.attrs() + (to.divides ? R"(,"divide_by_scale":true)" : "");
    output(name);
    node(name, kLibrary + "quantize_per_tensor.default", {from}, attrs);
  }

  /// Runs it and compares. Returns the names of the kernels that compute.
  /// `differing`: the share of numbers that may be one step off.
  std::vector<std::string> check(double differing = 0.001) const {
    const Device device = open_device();
    const Compiled compiled = compile(device.get(), *this);
    INFO(text());
    INFO(compiled.text);
    REQUIRE(compiled.status == NPU_OK);
    for (int repeat = 0; repeat < 2; ++repeat) {
      const std::vector<Data> results = run_once(device.get(), compiled, *this);
      for (std::size_t i = 0; i < results.size(); ++i) {
        compare(results[i], outputs()[i], differing);
      }
    }
    return kernels(device.get(), compiled);
  }

 private:
  void compare(const Data& data, const std::string& name, double differing) const {
    INFO("output " << name);
    const Values& wanted = expected(name);
    if (data.dtype == NPU_FLOAT32) return check_close(data, wanted);
    REQUIRE(onednn::dtype_of(data.dtype) == wanted.dtype);
    REQUIRE(data.shape == wanted.shape);
    const Array actual = decode(data);
    std::size_t differ = 0;
    for (std::size_t j = 0; j < wanted.data.size(); ++j) {
      REQUIRE(std::fabs(actual.values[j] - wanted.data[j].value) <= 1);
      differ += actual.values[j] != wanted.data[j].value ? 1 : 0;
    }
    CHECK(static_cast<double>(differ) <= differing * static_cast<double>(wanted.data.size()) + 1);
  }

  static std::vector<std::string> kernels(npu_device* device, const Compiled& compiled) {
    std::string bytes;
    CallError error;
    REQUIRE(api().blob_report(device, compiled.blob, &bytes, &error) == NPU_OK);
    const Json report = Json::parse(bytes);
    std::vector<std::string> names;
    for (const Json& step : report.at("steps")) {
      if (step.at("kind") != "reorder") names.push_back(step.at("kernel").get<std::string>());
    }
    return names;
  }
};

using Names = std::vector<std::string>;

/// What the document's quantized groups become: that many kernels of these names where int8
/// products are exact.
void check_kernels(const QuantizedModel& model, const Names& expected) {
  const Names found = model.check();
  if (multiplies_int8()) CHECK(found == expected);
}

constexpr Quantization kAsymmetric{0.0213, 131, NPU_UINT8, true};
constexpr Quantization kPositive{0.0417, 0, NPU_UINT8, false};
constexpr Quantization kSigned{0.0307, -5, NPU_INT8, false};

struct Case {
  Shape x;
  Shape w;
  std::string attrs;
};

/// Dense, with padding and strides, grouped, by channel, pointwise.
const Case kConvolutions[]{
    {{2, 5, 9, 7}, {13, 5, 3, 3}, R"("padding":[1,1])"},
    {{1, 16, 9, 9}, {32, 16, 3, 3}, R"("padding":[1,1],"stride":[2,2])"},
    {{1, 16, 9, 9}, {32, 4, 3, 3}, R"("padding":[1,1],"groups":4)"},
    {{1, 32, 9, 9}, {32, 1, 3, 3}, R"("padding":[1,1],"groups":32)"},
    {{1, 32, 10, 9}, {32, 1, 5, 5}, R"("padding":[2,2],"stride":[2,2],"groups":32)"},
    {{1, 24, 5, 5}, {40, 24, 1, 1}, ""},
    {{1, 16, 9, 9}, {16, 16, 3, 3}, R"("padding":[2,2],"dilation":[2,2])"},
    {{1, 3, 20, 20}, {16, 3, 7, 7}, R"("padding":[3,3],"stride":[2,2])"},
};

}  // namespace

TEST_CASE("onednn: a convolution between conversions is one kernel", "[onednn][quantized]") {
  const Case& each = GENERATE(from_range(std::begin(kConvolutions), std::end(kConvolutions)));
  const Quantization from = GENERATE(kAsymmetric, kPositive, kSigned);
  const Quantization to = GENERATE(kAsymmetric, kPositive, kSigned);
  const std::string function = GENERATE("none", "relu", "hardswish", "hardsigmoid");
  QuantizedModel model;
  model.numbers("x", each.x, from, 1);
  model.channel_weight("w", each.w, 2);
  model.weight("b", random_array({each.w[0]}, 3));
  model.node("y", "aten.conv2d.default", {"x", "w", "b"}, each.attrs);
  if (function == "relu") model.node("f", "aten.relu.default", {"y"});
  if (function == "hardswish") {
    model.node("f", "aten.hardswish.default", {"y"});
  }
  if (function == "hardsigmoid") {
    model.node("f", "aten.hardsigmoid.default", {"y"});
  }
  model.quantize("q", function == "none" ? "y" : "f", to);
  check_kernels(model, {"convolution"});
}

TEST_CASE("onednn: a batch norm is part of an int8 convolution", "[onednn][quantized]") {
  const Quantization from = GENERATE(kAsymmetric, kSigned);
  const bool has_bias = GENERATE(false, true);
  const bool is_depthwise = GENERATE(false, true);
  constexpr std::int64_t kChannels = 32;
  QuantizedModel model;
  model.numbers("x", {1, 32, 9, 8}, from, 1);
  model.channel_weight("w", {kChannels, is_depthwise ? 1 : 32, 3, 3}, 2);
  std::vector<std::string> operands{"x", "w"};
  if (has_bias) {
    model.weight("b", random_array({kChannels}, 3));
    operands.emplace_back("b");
  }
  model.node("y", "aten.conv2d.default", operands,
             R"("padding":[1,1],"groups":)" + std::string(is_depthwise ? "32" : "1"));
  model.weight("mean", random_array({kChannels}, 4));
  Array gamma = random_array({kChannels}, 5);
  gamma.values[3] = 0;  // a channel that training switched off
  gamma.values[4] = -0.75;
  model.weight("gamma", gamma);
  model.weight("beta", random_array({kChannels}, 6));
  model.weight("variance",
               map_values(random_array({kChannels}, 7), [](double v) { return v * v + 0.5; }));
  model.node("n", "aten.batch_norm.default", {"y", "gamma", "beta", "mean", "variance"},
             R"("training":false,"momentum":0.1,"eps":1e-05,"cudnn_enabled":true)");
  model.node("f", "aten.relu.default", {"n"});
  model.quantize("q", "f", kPositive);
  check_kernels(model, {"convolution"});
}

TEST_CASE("onednn: a convolution in one and in three dimensions on int8", "[onednn][quantized]") {
  SECTION("one") {
    QuantizedModel line;
    line.numbers("x", {2, 16, 30}, kAsymmetric, 1);
    line.channel_weight("w", {24, 16, 3}, 2);
    line.node("y", "aten.conv1d.default", {"x", "w"}, R"("padding":[1])");
    line.quantize("q", "y", kSigned);
    check_kernels(line, {"convolution"});
  }
  SECTION("three") {
    QuantizedModel cube;
    cube.numbers("x", {2, 16, 1, 1, 30}, kAsymmetric, 1);
    cube.channel_weight("w", {24, 16, 1, 1, 3}, 2);
    cube.node("y", "aten.conv3d.default", {"x", "w"}, R"("padding":[0,0,1])");
    cube.quantize("q", "y", kPositive);
    check_kernels(cube, {"convolution"});
  }
}

TEST_CASE("onednn: a sum behind an int8 convolution has a scale of its own",
          "[onednn][quantized]") {
  const bool is_read_later = GENERATE(false, true);
  const Quantization of_sum = GENERATE(Quantization{0.0523, 120, NPU_UINT8}, kSigned);
  QuantizedModel model;
  model.numbers("x", {1, 16, 9, 9}, kAsymmetric, 1);
  model.numbers("r", {1, 16, 9, 9}, of_sum, 4);
  model.channel_weight("w", {16, 16, 3, 3}, 2);
  model.node("y", "aten.conv2d.default", {"x", "w"}, R"("padding":[1,1])");
  model.node("s", "aten.add.Tensor", {"r", "y"});
  model.node("f", "aten.relu.default", {"s"});
  model.quantize("q", "f", kPositive);
  if (is_read_later) {
    model.node("again", "aten.relu.default", {"r"});
    model.quantize("p", "again", kPositive);
  }
  check_kernels(model, is_read_later ? Names{"convolution", "byte-table"} : Names{"convolution"});
}

TEST_CASE("onednn: matrix products between conversions are one kernel", "[onednn][quantized]") {
  const Quantization from = GENERATE(kAsymmetric, kSigned);
  QuantizedModel model;
  SECTION("linear with a bias") {
    model.numbers("x", {3, 7, 40}, from, 1);
    model.channel_weight("w", {24, 40}, 2);
    model.weight("b", random_array({24}, 3));
    model.node("y", "aten.linear.default", {"x", "w", "b"});
    model.quantize("q", "y", kAsymmetric);
    check_kernels(model, {"matmul"});
  }
  SECTION("linear whose result stays a tensor of floats") {
    model.numbers("x", {1, 40}, from, 1);
    model.channel_weight("w", {24, 40}, 2);
    model.node("y", "aten.linear.default", {"x", "w"});
    model.output("y");
    check_kernels(model, {"matmul"});
  }
  SECTION("addmm with a transposed weight") {
    model.numbers("x", {5, 40}, from, 1);
    model.channel_weight("w", {24, 40}, 2);
    model.node("t", "aten.t.default", {"w"});
    model.weight("b", random_array({24}, 3));
    model.node("y", "aten.addmm.default", {"b", "x", "t"});
    model.quantize("q", "y", kSigned);
    check_kernels(model, {"matmul"});
  }
  SECTION("two activations") {
    model.numbers("a", {2, 5, 40}, from, 1);
    model.numbers("b", {2, 40, 9}, kSigned, 2);
    model.node("y", "aten.bmm.default", {"a", "b"});
    model.quantize("q", "y", Quantization{0.2613, 128, NPU_UINT8});
    const Names found = model.check();
    if (multiplies_int8()) CHECK(found.size() == 1);
  }
}

TEST_CASE("onednn: ops between conversions need no floats", "[onednn][quantized]") {
  QuantizedModel model;
  const Shape shape{2, 19, 6, 8};
  const Quantization to = GENERATE(kAsymmetric, kPositive, kSigned);
  model.numbers("x", shape, kAsymmetric, 1);
  SECTION("a sum of two tensors and a ReLU") {
    model.numbers("r", shape, kSigned, 2);
    model.node("y", "aten.add.Tensor", {"x", "r"});
    model.node("f", "aten.relu.default", {"y"});
    model.quantize("q", "f", to);
    CHECK(model.check() == Names{"quantized-binary"});
  }
  SECTION("a product of two tensors") {
    model.numbers("r", shape, kSigned, 2);
    model.node("y", "aten.mul.Tensor", {"x", "r"});
    model.quantize("q", "y", to);
    CHECK(model.check() == Names{"quantized-binary"});
  }
  SECTION("a product with the gates of the channels") {
    const bool is_first = GENERATE(false, true);
    model.numbers("g", {2, 19, 1, 1}, kSigned, 2);
    model.node("y", "aten.mul.Tensor",
               is_first ? std::vector<std::string>{"g", "x"} : std::vector<std::string>{"x", "g"});
    model.quantize("q", "y", to);
    CHECK(model.check() == Names{"quantized-binary"});
  }
  SECTION("a difference to one number for each channel of all samples") {
    model.numbers("g", {19, 1, 1}, kSigned, 2);
    model.node("y", "aten.sub.Tensor", {"g", "x"});
    model.quantize("q", "y", to);
    CHECK(model.check() == Names{"quantized-binary"});
  }
  SECTION("two tensors that are both broadcast stay with floats") {
    model.numbers("c", {2, 19, 1, 1}, kSigned, 2);
    model.numbers("r", {1, 1, 6, 8}, kSigned, 3);
    model.node("y", "aten.mul.Tensor", {"c", "r"});
    model.quantize("q", "y", to);
    const Names found = model.check();
    CHECK(std::count(found.begin(), found.end(), "quantized-binary") == 0);
  }
  SECTION("a function") {
    model.node("y", "aten.hardswish.default", {"x"});
    model.quantize("q", "y", to);
    // One of 256 numbers that is close to a tie is many elements.
    CHECK(model.check(0.01) == Names{"byte-table"});
  }
  SECTION("a maximum of windows") {
    model.node("y", "aten.max_pool2d.default", {"x"},
               R"("kernel_size":[3,3],"stride":[2,2],"padding":[1,1])");
    model.quantize("q", "y", to);
    const bool is_same = to.scale == kAsymmetric.scale;
    CHECK(model.check() == (is_same ? Names{"pooling"} : Names{"pooling", "byte-table"}));
  }
  SECTION("averages of windows") {
    model.node("y", "aten.avg_pool2d.default", {"x"},
               R"("kernel_size":[3,3],"stride":[2,2],"padding":[1,1])");
    model.quantize("q", "y", to);
    // Averages of a few numbers are often ties, which rounding in float breaks at random.
    CHECK(model.check(0.12) == Names{"quantized-average"});
  }
  SECTION("averages that adapt") {
    model.node("y", "aten.adaptive_avg_pool2d.default", {"x"}, R"("output_size":[4,3])");
    model.quantize("q", "y", to);
    CHECK(model.check(0.12) == Names{"quantized-average"});
  }
  SECTION("means of planes") {
    model.node("y", "aten.mean.dim", {"x"}, R"("dim":[2,3])");
    model.quantize("q", "y", to);
    CHECK(model.check(0.12) == Names{"quantized-average"});
  }
  SECTION("a concatenation of tensors of several scales") {
    model.numbers("r", {2, 5, 6, 8}, kSigned, 2);
    model.node("y", "aten.cat.default", {"x", "r"}, R"("dim":1)");
    model.quantize("q", "y", to);
    const Names found = model.check(0.01);
    CHECK(found.back() == "concat");
    CHECK(std::count(found.begin(), found.end(), "dequantize") == 0);
  }
  SECTION("another shape") {
    model.node("y", "aten.flatten.using_ints", {"x"}, R"("start_dim":1)");
    model.quantize("q", "y", to);
    const Names found = model.check();
    CHECK(std::count(found.begin(), found.end(), "dequantize") == 0);
  }
}

TEST_CASE("onednn: conversions alone", "[onednn][quantized]") {
  QuantizedModel model;
  const Quantization to = GENERATE(kAsymmetric, kPositive, kSigned);
  model.input("x", random_array({2, 3, 5, 7}, 1), NPU_FLOAT32);
  model.quantize("q", "x", to);
  model.dequantize("y", "q", to);
  model.output("y");
  const Device device = open_device();
  const Compiled compiled = compile(device.get(), model);
  REQUIRE(compiled.status == NPU_OK);
  const std::vector<Data> results = run_once(device.get(), compiled, model);
  const Array numbers = decode(results[0]);
  const Array floats = decode(results[1]);
  for (std::size_t i = 0; i < numbers.values.size(); ++i) {
    REQUIRE(std::fabs(numbers.values[i] - model.expected("q").data[i].value) <= 1);
    const auto back =
        static_cast<float>(numbers.values[i] - to.zero_point) * static_cast<float>(to.scale);
    REQUIRE(floats.values[i] == static_cast<double>(back));
  }
}

TEST_CASE("onednn: a group between conversions is checked as its nodes are",
          "[onednn][quantized]") {
  QuantizedModel model;
  model.numbers("x", {1, 4, 6, 6}, kAsymmetric, 1);
  const std::string average = "aten.avg_pool2d.default", kernel = R"("kernel_size":[2,2])";
  SECTION("a divisor of 0") {
    model.node("y", average, {"x"}, kernel + R"(,"divisor_override":0)");
    model.quantize("q", "y", kPositive);
  }
  SECTION("another shape of the average") {
    model.node_stating({1, 4, 9, 1}, "y", average, {"x"}, kernel);
    model.quantize("q", "y", kPositive);
  }
  SECTION("another shape of the numbers") {
    model.node("y", average, {"x"}, kernel);
    model.node_stating({1, 4, 9, 1}, "q", kLibrary + "quantize_per_tensor.default", {"y"},
                       kPositive.attrs(), kPositive.dtype);
    model.output("q");
  }
  const Device device = open_device();
  CHECK(compile(device.get(), model).status != NPU_OK);
}

TEST_CASE("onednn: numbers that no byte has stay with floats", "[onednn][quantized]") {
  QuantizedModel model;
  const Quantization far = GENERATE(Quantization{0.0213, 300, NPU_UINT8, false},
                                    Quantization{0.0213, -129, NPU_INT8, false});
  model.input("q_x",
              map_values(random_array({2, 8}, 1), [](double v) { return std::floor(v * 9) + 60; }),
              far.dtype);
  model.dequantize("x", "q_x", far);
  model.node("y", "aten.relu.default", {"x"});
  model.quantize("q", "y", kPositive);
  const Names found = model.check();
  CHECK(std::count(found.begin(), found.end(), "dequantize") == 1);
}

}  // namespace npu::test::onednn
