// SPDX-License-Identifier: Apache-2.0
// The onednn backend through its C ABI alone: every op against slow loops, in float32 and bfloat16,
// and what the ABI promises about buffers, aliases and errors.
//
// References compute in float64 on operands that are rounded to the tested type, and round their
// result to it.
#include <dlfcn.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "backends/onednn/onednn_harness.hpp"
#include "backends/reference_ops.hpp"
#include "backends/v3_calls.hpp"
#include "catch.hpp"
#include "test_paths.hpp"

namespace npu::test::onednn {
namespace {

double sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }
double clip(double x, double low, double high) { return std::min(std::max(x, low), high); }

TEST_CASE("onednn describes itself and its ops", "[onednn]") {
  npu_backend_description description{};
  npu_error error{};
  REQUIRE(api().describe(&description, &error) == NPU_OK);
  CHECK(std::string(description.name) == "onednn");
  CHECK(std::string(description.version).find("oneDNN 2.") != std::string::npos);
  CHECK(std::string(description.fingerprint).find("isa") != std::string::npos);
  CHECK(std::string(description.fingerprint).find(" plan format ") != std::string::npos);
  std::set<std::string> ops;
  const Device device = open_device();
  const auto visit = [](void* context, const char* op, const char* kind) {
    static_cast<std::set<std::string>*>(context)->insert(op);
    CHECK(std::string(kind) == "onednn");
  };
  REQUIRE(api().list_ops(device.get(), visit, &ops, &error) == NPU_OK);
  for (const char* op : {"aten.conv2d.default", "aten.batch_norm.default", "aten.linear.default",
                         "aten.relu_.default", "aten.cat.default", "<built-in function getitem>"}) {
    CHECK(ops.count(op) == 1);
  }
}

TEST_CASE("onednn refuses another ABI and malformed device options", "[onednn]") {
  const std::string path = std::string(npu::test::backend_dir()) + "/npu_backend_onednn.so";
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  REQUIRE(library != nullptr);
  using Entry = const npu4_backend* (*)(const npu4_host*, npu4_error*);
  const auto entry = reinterpret_cast<Entry>(dlsym(library, NPU4_ENTRY_NAME));
  npu4_host host = test_host();
  host.abi_version = NPU4_ABI_VERSION + 1;
  CHECK(entry(&host, nullptr) != nullptr);
  host.abi_version = NPU4_ABI_VERSION - 1;
  npu4_error reason{};
  reason.struct_size = sizeof reason;
  CHECK(entry(&host, &reason) == nullptr);
  CHECK_THAT(reason.text, Catch::Contains("expected a host of version 4"));
  npu_device* device = nullptr;
  npu_error error{};
  for (const char* options : {"[]", "{", R"({"threads":-1})", R"({"threads":"two"})"}) {
    CHECK(api().open_device(options, &device, &error) == NPU_ERROR_INVALID);
    CHECK(device == nullptr);
  }
  REQUIRE(api().open_device(nullptr, &device, &error) == NPU_OK);
  api().close_device(device);
}

TEST_CASE("onednn runs a graph without nodes", "[onednn]") {
  Model model(each_dtype());
  model.input("x", random_array({2, 3}, 1));
  model.input("i", Array({4}), NPU_INT64);
  model.weight("w", random_array({5}, 2));
  for (const char* name : {"x", "i", "w"}) model.output(name);
  check_model(model);
}

TEST_CASE("onednn conv2d", "[onednn]") {
  const npu_dtype dtype = each_dtype();
  check_convolution(dtype, {1, 3, 8, 9}, {5, 3, 3, 3}, true, {}, "");
  check_convolution(dtype, {2, 16, 9, 9}, {16, 16, 3, 3}, false,
                    {{2, 2}, {1, 1}, {1, 1}, {1, 1}, 1}, R"("stride":[2,2],"padding":[1,1])");
  check_convolution(dtype, {2, 8, 7, 6}, {12, 4, 3, 2}, true, {{1, 2}, {2, 0}, {2, 0}, {1, 1}, 2},
                    R"("stride":[1,2],"padding":[2,0],"groups":2)");
  check_convolution(dtype, {1, 24, 9, 9}, {24, 1, 3, 3}, true, {{1, 1}, {1, 1}, {1, 1}, {1, 1}, 24},
                    R"("padding":[1,1],"groups":24)");  // depthwise
  check_convolution(dtype, {1, 8, 12, 11}, {8, 8, 3, 3}, true, {{1, 1}, {2, 3}, {2, 3}, {2, 3}, 1},
                    R"("padding":[2,3],"dilation":[2,3])");
  check_convolution(dtype, {1, 16, 5, 5}, {32, 16, 1, 1}, true, {}, R"("stride":1)");
}

TEST_CASE("onednn conv2d with padding by name", "[onednn]") {
  const npu_dtype dtype = each_dtype();
  // 'same' with kernels of 4 and 3, dilated by 1 and 2: 3 = 1 + 2 and 4 = 2 + 2 elements of
  // padding.
  check_convolution(dtype, {1, 3, 8, 9}, {4, 3, 4, 3}, true, {{1, 1}, {1, 2}, {2, 2}, {1, 2}, 1},
                    R"("padding":"same","dilation":[1,2])", "aten.conv2d.padding");
  check_convolution(dtype, {1, 3, 8, 9}, {4, 3, 4, 3}, false, {}, R"("padding":"valid")",
                    "aten.conv2d.padding");
}

TEST_CASE("onednn conv1d", "[onednn]") {
  const npu_dtype dtype = each_dtype();
  Model model(dtype);
  const Array x = model.input("x", random_array({2, 6, 11}, 1));
  const Array w = model.weight("w", random_array({8, 3, 3}, 2));
  ConvArguments arguments{{1, 2}, {0, 1}, {0, 1}, {1, 1}, 2};
  const Array y = convolve(reshape(x, {2, 6, 1, 11}), reshape(w, {8, 3, 1, 3}), nullptr, arguments);
  model.node("y", "aten.conv1d.default", {"x", "w"}, R"("stride":[2],"padding":[1],"groups":2)",
             reshape(y, {2, 8, y.shape[3]}));
  model.output("y");
  check_model(model);
}

TEST_CASE("onednn convolution with a computed weight", "[onednn]") {
  Model model(each_dtype());
  const Array x = model.input("x", random_array({1, 8, 6, 6}, 1));
  const Array w = model.input("w", random_array({8, 8, 3, 3}, 2));
  const Array r = model.node("r", "aten.relu.default", {"w"}, "",
                             map_values(w, [](double v) { return std::max(v, 0.0); }));
  model.node("y", "aten.conv2d.default", {"x", "r"}, "", convolve(x, r, nullptr, {}));
  model.output("y");
  check_model(model);
}

TEST_CASE("onednn batch_norm", "[onednn]") {
  const npu_dtype dtype = each_dtype();
  const bool affine = GENERATE(true, false);
  const Shape shape = GENERATE(Shape{2, 5, 4, 3}, Shape{4, 6}, Shape{2, 7, 5}, Shape{1, 16, 3, 3});
  Model model(dtype);
  const Shape channels{shape[1]};
  const Array x = model.input("x", random_array(shape, 1));
  const Array weight = affine ? model.weight("weight", random_array(channels, 2)) : Array();
  const Array bias = affine ? model.weight("bias", random_array(channels, 3)) : Array();
  const Array mean = model.weight("mean", random_array(channels, 4));
  const Array variance = model.weight("var", positive_array(channels, 5));
  const std::vector<std::string> operands =
      affine ? std::vector<std::string>{"x", "weight", "bias", "mean", "var"}
             : std::vector<std::string>{"x", "mean", "var"};
  model.node("y", "aten.batch_norm.default", operands,
             R"("training":false,"momentum":0.1,"eps":1e-3,"cudnn_enabled":true)",
             normalize_channels(x, affine ? &weight : nullptr, affine ? &bias : nullptr, mean,
                                variance, 1e-3));
  model.output("y");
  check_model(model);
}

TEST_CASE("onednn functions of one operand", "[onednn]") {
  const npu_dtype dtype = each_dtype();
  const auto relu = [](double x) { return std::max(x, 0.0); };
  check_unary(dtype, "aten.relu.default", "", relu);
  check_unary(dtype, "aten.relu_.default", "", relu, {});
  check_unary(dtype, "aten.relu.default", "", relu, {1});
  check_unary(dtype, "aten.hardtanh_.default", R"("min_val":0.0,"max_val":6.0)",
              [](double x) { return clip(x, 0, 6); });
  check_unary(dtype, "aten.hardtanh.default", "", [](double x) { return clip(x, -1, 1); });
  check_unary(dtype, "aten.relu6.default", "", [](double x) { return clip(x, 0, 6); });
  check_unary(dtype, "aten.silu_.default", "", [](double x) { return x * sigmoid(x); });
  check_unary(dtype, "aten.sigmoid.default", "", sigmoid);
  check_unary(dtype, "aten.tanh.default", "", [](double x) { return std::tanh(x); });
  check_unary(dtype, "aten.hardswish_.default", "",
              [](double x) { return x * clip(x + 3, 0, 6) / 6; });
  check_unary(dtype, "aten.hardsigmoid.default", "",
              [](double x) { return clip(x + 3, 0, 6) / 6; });
  check_unary(dtype, "aten.leaky_relu_.default", R"("negative_slope":0.2)",
              [](double x) { return x > 0 ? x : 0.2 * x; });
  check_unary(dtype, "aten.elu.default", R"("alpha":1.5)",
              [](double x) { return x > 0 ? x : 1.5 * std::expm1(x); });
  check_unary(dtype, "aten.gelu.default", "",
              [](double x) { return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0))); });
  check_unary(dtype, "aten.gelu.default", R"("approximate":"tanh")", [](double x) {
    return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
  });
  check_unary(dtype, "aten.clamp.default", R"("min":-0.5)",
              [](double x) { return std::max(x, -0.5); });
  check_unary(dtype, "aten.exp.default", "", [](double x) { return std::exp(x); });
  check_unary(dtype, "aten.abs.default", "", [](double x) { return std::fabs(x); });
  check_unary(dtype, "aten.neg.default", "", [](double x) { return -x; });
  check_unary(dtype, "aten.mish.default", "",
              [](double x) { return x * std::tanh(std::log1p(std::exp(x))); });
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
  check_binary(dtype, "aten.add.Tensor", a, b, "", [](double x, double y) { return x + y; });
  check_binary(dtype, "aten.add.Tensor", a, b, R"("alpha":-2.5)",
               [](double x, double y) { return x - 2.5 * y; });
  check_binary(dtype, "aten.sub.Tensor", a, b, R"("alpha":2)",
               [](double x, double y) { return x - 2 * y; });
  check_binary(dtype, "aten.mul.Tensor", a, b, "", [](double x, double y) { return x * y; });
  check_binary(dtype, "aten.div.Tensor", a, b, "", [](double x, double y) { return x / y; });
  check_binary(dtype, "aten.maximum.default", a, b, "",
               [](double x, double y) { return std::max(x, y); });
  check_binary(dtype, "aten.minimum.default", a, b, "",
               [](double x, double y) { return std::min(x, y); });
}

TEST_CASE("onednn arithmetic with a number", "[onednn]") {
  const npu_dtype dtype = each_dtype();
  check_unary(dtype, "aten.add.Tensor", R"("other":1.5)", [](double x) { return x + 1.5; });
  check_unary(dtype, "aten.add_.Tensor", R"("other":3,"alpha":2)", [](double x) { return x + 6; });
  check_unary(dtype, "aten.sub.Tensor", R"("other":1.5)", [](double x) { return x - 1.5; });
  check_unary(dtype, "aten.mul.Tensor", R"("other":-0.3)", [](double x) { return x * -0.3; });
  check_unary(dtype, "aten.mul_.Scalar", R"("other":2)", [](double x) { return x * 2; });
  check_unary(dtype, "aten.div.Tensor", R"("other":3.0)", [](double x) { return x / 3; });
  check_unary(dtype, "aten.rsub.Scalar", R"("other":1.0)", [](double x) { return 1 - x; });
}

TEST_CASE("onednn maximum keeps NaN", "[onednn]") {
  Model model(NPU_FLOAT32);
  Array a = random_array({4}, 1);
  Array b = random_array({4}, 2);
  a.values[1] = NAN;
  b.values[2] = NAN;
  model.input("a", a);
  model.input("b", b);
  Array y = zip_values(a, b, [](double p, double q) { return p > q ? p : q; });
  y.values[1] = NAN;
  y.values[2] = NAN;
  model.node("y", "aten.maximum.default", {"a", "b"}, "", y);
  model.output("y");
  check_model(model);
}

TEST_CASE("onednn max_pool2d", "[onednn]") {
  const npu_dtype dtype = each_dtype();
  const std::string op = "aten.max_pool2d.default";
  check_pool(dtype, op, {2, 3, 8, 8}, {2, 3, 4, 4}, {}, R"("kernel_size":[2,2])");
  check_pool(dtype, op, {1, 16, 9, 11}, {1, 16, 5, 6}, {{3, 3}, {2, 2}, {1, 1}, {1, 1}, true, 0},
             R"("kernel_size":[3,3],"stride":[2,2],"padding":[1,1])");
  // 7 with windows of 2, stride 2: floor 3, ceil 4.
  check_pool(dtype, op, {1, 3, 7, 7}, {1, 3, 4, 4}, {}, R"("kernel_size":2,"ceil_mode":true)");
  // 6 with padding 1, windows of 2, stride 3: ceil(6 / 3) + 1 = 3 windows at -1, 2, 5.
  check_pool(dtype, op, {1, 3, 6, 6}, {1, 3, 3, 3}, {{2, 2}, {3, 3}, {1, 1}, {1, 1}, true, 0},
             R"("kernel_size":2,"stride":3,"padding":1,"ceil_mode":true)");
  // 5 with padding 1, windows of 2, stride 3: a third window at 5 would start behind the input.
  check_pool(dtype, op, {1, 3, 4, 4}, {1, 3, 2, 2}, {{2, 2}, {3, 3}, {1, 1}, {1, 1}, true, 0},
             R"("kernel_size":2,"stride":3,"padding":1,"ceil_mode":true)");
  check_pool(dtype, op, {1, 3, 9, 9}, {1, 3, 5, 5}, {{3, 3}, {1, 1}, {0, 0}, {2, 2}, true, 0},
             R"("kernel_size":3,"stride":1,"dilation":2)");
}

TEST_CASE("onednn avg_pool2d", "[onednn]") {
  const npu_dtype dtype = each_dtype();
  const std::string op = "aten.avg_pool2d.default";
  check_pool(dtype, op, {2, 3, 8, 8}, {2, 3, 4, 4}, {}, R"("kernel_size":[2,2])");
  for (const bool counts : {true, false}) {
    const std::string flag = counts ? "" : R"(,"count_include_pad":false)";
    check_pool(dtype, op, {1, 16, 9, 9}, {1, 16, 9, 9}, {{3, 3}, {1, 1}, {1, 1}, {1, 1}, counts, 0},
               R"("kernel_size":3,"stride":1,"padding":1)" + flag);
    // 7 with padding 1, windows of 3, stride 3: ceil gives 3 windows at -1, 2, 5; the last ends at
    // 8, the end of the padding.
    check_pool(dtype, op, {1, 3, 7, 7}, {1, 3, 3, 3}, {{3, 3}, {3, 3}, {1, 1}, {1, 1}, counts, 0},
               R"("kernel_size":3,"stride":3,"padding":1,"ceil_mode":true)" + flag);
    // 8 with padding 1, windows of 3, stride 2: windows at -1, 1, 3, 5, 7; the last ends behind the
    // padding.
    check_pool(dtype, op, {1, 3, 8, 8}, {1, 3, 5, 5}, {{3, 3}, {2, 2}, {1, 1}, {1, 1}, counts, 0},
               R"("kernel_size":3,"stride":2,"padding":1,"ceil_mode":true)" + flag);
  }
  check_pool(dtype, op, {1, 3, 7, 7}, {1, 3, 4, 4}, {}, R"("kernel_size":2,"ceil_mode":true)");
  check_pool(dtype, op, {1, 3, 8, 8}, {1, 3, 4, 4}, {{2, 2}, {2, 2}, {0, 0}, {1, 1}, true, 3},
             R"("kernel_size":2,"divisor_override":3)");
}

TEST_CASE("onednn adaptive_avg_pool2d", "[onednn]") {
  const npu_dtype dtype = each_dtype();
  const auto [height, width] =
      GENERATE(table<std::int64_t, std::int64_t>({{1, 1}, {5, 3}, {7, 4}, {3, 12}}));
  Model model(dtype);
  const Array x = model.input("x", random_array({2, 5, 10, 6}, 1));
  model.node("y", "aten.adaptive_avg_pool2d.default", {"x"},
             R"("output_size":)" + list_text({height, width}), pool_adaptively(x, height, width));
  model.output("y");
  check_model(model);
}

TEST_CASE("onednn pooling without a batch dimension", "[onednn]") {
  Model model(each_dtype());
  const Array x = model.input("x", random_array({5, 6, 6}, 1));
  const Array batched = reshape(x, {1, 5, 6, 6});
  model.node("y", "aten.adaptive_avg_pool2d.default", {"x"}, R"("output_size":[4,3])",
             reshape(pool_adaptively(batched, 4, 3), {5, 4, 3}));
  model.node("z", "aten.max_pool2d.default", {"x"}, R"("kernel_size":2)",
             reshape(pool(batched, {1, 5, 3, 3}, {}, true), {5, 3, 3}));
  model.output("y");
  model.output("z");
  check_model(model);
}

TEST_CASE("onednn mean", "[onednn]") {
  const npu_dtype dtype = each_dtype();
  const bool keep = GENERATE(false, true);
  const auto [list, dimensions] =
      GENERATE(table<std::string, std::set<std::size_t>>({{"[-1,-2]", {2, 3}},
                                                          {"[1]", {1}},
                                                          {"[-1]", {3}},
                                                          {"[0,2]", {0, 2}},
                                                          {"[0,1,2,3]", {0, 1, 2, 3}},
                                                          {"[]", {0, 1, 2, 3}}}));
  Model model(dtype);
  const Array x = model.input("x", random_array({2, 9, 5, 6}, 1));
  model.node("y", "aten.mean.dim", {"x"}, R"("dim":)" + list + (keep ? R"(,"keepdim":true)" : ""),
             mean_over(x, dimensions, keep));
  model.output("y");
  check_model(model);
}

TEST_CASE("onednn linear", "[onednn]") {
  const npu_dtype dtype = each_dtype();
  const Shape shape = GENERATE(Shape{3, 10}, Shape{10}, Shape{2, 3, 10}, Shape{1, 10});
  const bool with_bias = GENERATE(false, true);
  Model model(dtype);
  const Array x = model.input("x", random_array(shape, 1));
  const Array w = model.weight("w", random_array({7, 10}, 2));
  Array y = multiply(reshape(x, {count_of(shape) / 10, 10}), swap_last(w));
  std::vector<std::string> operands{"x", "w"};
  if (with_bias) {
    y = zip_values(y, model.weight("b", random_array({7}, 3)), std::plus<>());
    operands.emplace_back("b");
  }
  Shape result = shape;
  result.back() = 7;
  model.node("y", "aten.linear.default", operands, "", reshape(y, result));
  model.output("y");
  check_model(model);
}

TEST_CASE("onednn addmm", "[onednn]") {
  const npu_dtype dtype = each_dtype();
  const Shape bias = GENERATE(Shape{7}, Shape{1, 7}, Shape{4, 7}, Shape{4, 1}, Shape{});
  const auto [attrs, beta, alpha] = GENERATE(table<std::string, double, double>(
      {{"", 1.0, 1.0}, {R"("alpha":0.5,"beta":-2)", -2.0, 0.5}, {R"("beta":0)", 0.0, 1.0}}));
  Model model(dtype);
  const Array self = model.input("self", random_array(bias, 1));
  const Array a = model.input("a", random_array({4, 5}, 2));
  const Array b = model.weight("b", random_array({5, 7}, 3));
  const double b_factor = beta;
  const double a_factor = alpha;
  model.node("y", "aten.addmm.default", {"self", "a", "b"}, attrs,
             zip_values(multiply(a, b), self,
                        [=](double p, double s) { return a_factor * p + b_factor * s; }));
  model.output("y");
  check_model(model);
}

TEST_CASE("onednn matrix products of any rank", "[onednn]") {
  const npu_dtype dtype = each_dtype();
  const bool weight = GENERATE(false, true);
  check_matmul(dtype, "aten.mm.default", {4, 5}, {5, 6}, {4, 6}, weight);
  check_matmul(dtype, "aten.bmm.default", {3, 4, 5}, {3, 5, 6}, {3, 4, 6}, weight);
  check_matmul(dtype, "aten.matmul.default", {5}, {5}, {}, weight);
  check_matmul(dtype, "aten.matmul.default", {4, 5}, {5}, {4}, weight);
  check_matmul(dtype, "aten.matmul.default", {5}, {5, 6}, {6}, weight);
  check_matmul(dtype, "aten.matmul.default", {2, 3, 4, 5}, {5, 6}, {2, 3, 4, 6}, weight);
  check_matmul(dtype, "aten.matmul.default", {4, 5}, {2, 3, 5, 6}, {2, 3, 4, 6}, weight);
  check_matmul(dtype, "aten.matmul.default", {2, 1, 4, 5}, {3, 5, 6}, {2, 3, 4, 6}, weight);
  check_matmul(dtype, "aten.matmul.default", {2, 3, 4, 5}, {2, 3, 5, 6}, {2, 3, 4, 6}, weight);
  check_matmul(dtype, "aten.matmul.default", {2, 3, 4, 5}, {1, 1, 5, 6}, {2, 3, 4, 6}, weight);
  check_matmul(dtype, "aten.matmul.default", {4, 4, 5}, {1, 4, 5, 6}, {1, 4, 4, 6}, weight);
  check_matmul(dtype, "aten.matmul.default", {5}, {3, 5, 6}, {3, 6}, weight);
  check_matmul(dtype, "aten.matmul.default", {3, 4, 5}, {5}, {3, 4}, weight);
}

TEST_CASE("onednn matrix products of transposed and sliced views", "[onednn]") {
  Model model(each_dtype());
  const Array q = model.input("q", random_array({2, 5, 3, 4}, 1));
  const Array k = model.input("k", random_array({2, 6, 3, 4}, 2));
  const Array qt = model.node("qt", "aten.transpose.int", {"q"}, R"("dim0":1,"dim1":2)",
                              permute(q, {0, 2, 1, 3}));
  const Array kt = model.node("kt", "aten.permute.default", {"k"}, R"("dims":[0,2,3,1])",
                              permute(k, {0, 2, 3, 1}));
  model.node("s", "aten.matmul.default", {"qt", "kt"}, "", multiply(qt, kt));
  const Array part = model.node("part", "aten.slice.Tensor", {"kt"},
                                R"("dim":3,"start":1,"end":6,"step":2)", slice(kt, 3, 1, 3, 2));
  model.node("t", "aten.matmul.default", {"qt", "part"}, "", multiply(qt, part));
  for (const char* name : {"s", "t", "kt"}) model.output(name);
  check_model(model);
}

TEST_CASE("onednn softmax and log_softmax", "[onednn]") {
  const npu_dtype dtype = each_dtype();
  const int dimension = GENERATE(0, 1, 2, -1);
  const auto axis = static_cast<std::size_t>(dimension < 0 ? 3 + dimension : dimension);
  Model model(dtype);
  const Array x = model.input("x", random_array({3, 5, 7}, 1));
  const std::string attrs = R"("dim":)" + std::to_string(dimension);
  model.node("y", "aten.softmax.int", {"x"}, attrs, softmax(x, axis, false));
  model.node("z", "aten.log_softmax.int", {"x"}, attrs, softmax(x, axis, true));
  model.output("y");
  model.output("z");
  check_model(model);
}

TEST_CASE("onednn softmax converts by its dtype argument", "[onednn]") {
  Model model(NPU_BFLOAT16);
  const Array x = model.input("x", random_array({3, 7}, 1));
  model.node("y", "aten.softmax.int", {"x"}, R"("dim":-1,"dtype":"torch.float32")",
             softmax(x, 1, false), NPU_FLOAT32);
  model.output("y");
  check_model(model);
}

TEST_CASE("onednn layer_norm", "[onednn]") {
  const npu_dtype dtype = each_dtype();
  const auto [list, width] = GENERATE(table<std::string, std::size_t>({{"[6]", 6}, {"[5,6]", 30}}));
  const bool affine = GENERATE(true, false);
  Model model(dtype);
  const Array x = model.input("x", random_array({2, 4, 5, 6}, 1));
  std::vector<std::string> operands{"x"};
  Array weight;
  Array bias;
  if (affine) {
    const Shape shape = width == 6 ? Shape{6} : Shape{5, 6};
    weight = model.weight("w", random_array(shape, 2));
    bias = model.weight("b", random_array(shape, 3));
    operands.insert(operands.end(), {"w", "b"});
  }
  model.node("y", "aten.layer_norm.default", operands,
             R"("normalized_shape":)" + list + R"(,"eps":1e-4)",
             normalize_rows(x, width, affine ? &weight : nullptr, affine ? &bias : nullptr, 1e-4));
  model.output("y");
  check_model(model);
}

TEST_CASE("onednn scaled_dot_product_attention", "[onednn]") {
  const npu_dtype dtype = each_dtype();
  const std::string variant = GENERATE(as<std::string>(), "plain", "mask", "causal", "scale");
  Model model(dtype);
  const Array q = model.input("q", random_array({2, 3, 5, 8}, 1));
  const Array k = model.input("k", random_array({2, 3, 6, 8}, 2));
  const Array v = model.input("v", random_array({2, 3, 6, 4}, 3));
  std::vector<std::string> operands{"q", "k", "v"};
  const double scale = variant == "scale" ? 0.7 : 1 / std::sqrt(8.0);
  Array scores = map_values(multiply(q, swap_last(k)), [=](double s) { return scale * s; });
  std::string attrs;
  if (variant == "scale") attrs = R"("scale":0.7)";
  if (variant == "mask") {
    scores = zip_values(scores, model.input("m", random_array({2, 1, 5, 6}, 4)), std::plus<>());
    operands.emplace_back("m");
  }
  if (variant == "causal") {
    attrs = R"("is_causal":true)";
    for_each(scores.shape, [&](const Index& i) {
      if (i[3] > i[2]) scores.at(i) = -INFINITY;
    });
  }
  model.node("y", "aten.scaled_dot_product_attention.default", operands, attrs,
             multiply(softmax(scores, 3, false), v));
  model.output("y");
  check_model(model);
}

TEST_CASE("onednn embedding", "[onednn]") {
  const npu_dtype dtype = each_dtype();
  Model model(dtype);
  Array indices({2, 3});
  indices.values = {0, 4, 2, 4, 1, 3};
  const Array table = model.weight("table", random_array({5, 7}, 1));
  model.input("i", indices, NPU_INT64);
  Array y({2, 3, 7});
  for_each(y.shape, [&](const Index& o) {
    y.at(o) = table.at({static_cast<std::int64_t>(indices.at({o[0], o[1]})), o[2]});
  });
  model.node("y", "aten.embedding.default", {"table", "i"}, "", y);
  model.output("y");
  check_model(model);
}

TEST_CASE("onednn fails on an index outside its dimension, and names the node", "[onednn]") {
  struct Case {
    const char* op;
    const char* attrs;
    Shape result;
  };
  const Case one =
      GENERATE(Case{"aten.index.Tensor", R"("_tensor_list_none_masks":[[false]])", {2, 7}},
               Case{"aten.index_select.default", R"("dim":0)", {2, 7}},
               Case{"aten.gather.default", R"("dim":0)", {2, 1}},
               Case{"aten.scatter.value", R"("dim":0,"value":1.5)", {5, 7}});
  const bool wraps = std::string(one.op) == "aten.index.Tensor";
  const bool is_matrix = std::string(one.op).find("index") == std::string::npos;
  Array indices(is_matrix ? Shape{2, 1} : Shape{2});
  indices.values = {1, static_cast<double>(GENERATE_COPY(5, wraps ? -6 : -1))};
  Model model(NPU_FLOAT32);
  model.input("x", random_array({5, 7}, 1));
  model.input("i", indices, NPU_INT64);
  model.node("y", one.op, {"x", "i"}, one.attrs, Array(one.result));
  model.output("y");
  const Device device = open_device();
  const Compiled compiled = compile(device.get(), model);
  REQUIRE(compiled.status == NPU_OK);
  const std::vector<Buffer> inputs = model.import_inputs(device.get());
  npu_buffer* operands[2]{inputs[0].get(), inputs[1].get()};
  npu_buffer* output = nullptr;
  npu_error error{};
  CHECK(api().run(compiled.program.get(), operands, 2, &output, 1, &error) == NPU_ERROR_FAILED);
  CHECK(std::string(error.text).find("node 'y' (" + std::string(one.op)) != std::string::npos);
}

TEST_CASE("onednn embedding fails on an index outside the table", "[onednn]") {
  Model model(NPU_FLOAT32);
  Array indices({1});
  indices.values = {static_cast<double>(GENERATE(5, -1))};
  model.weight("table", random_array({5, 7}, 1));
  model.input("i", indices, NPU_INT64);
  model.node("y", "aten.embedding.default", {"table", "i"}, "", Array({1, 7}));
  model.output("y");
  const Device device = open_device();
  const Compiled compiled = compile(device.get(), model);
  REQUIRE(compiled.status == NPU_OK);
  const std::vector<Buffer> inputs = model.import_inputs(device.get());
  npu_buffer* input = inputs[0].get();
  npu_buffer* output = nullptr;
  npu_error error{};
  CHECK(api().run(compiled.program.get(), &input, 1, &output, 1, &error) == NPU_ERROR_FAILED);
  CHECK(std::string(error.text).find("node 'y'") != std::string::npos);
  CHECK(output == nullptr);
}

TEST_CASE("onednn cat", "[onednn]") {
  const npu_dtype dtype = each_dtype();
  const std::size_t dimension = GENERATE(std::size_t{0}, std::size_t{1}, std::size_t{2});
  Model model(dtype);
  Shape other{2, 3, 4};
  other[dimension] = 5;
  const Array a = model.input("a", random_array({2, 3, 4}, 1));
  const Array b = model.input("b", random_array(other, 2));
  const Array t = model.node("t", "aten.transpose.int", {"b"}, R"("dim0":0,"dim1":0)", b);
  model.node("y", "aten.cat.default", {"a", "t", "a"},
             R"("_tensor_list_sizes":[3],"dim":)" + std::to_string(dimension),
             concatenate({a, b, a}, dimension));
  model.output("y");
  check_model(model);
}

TEST_CASE("onednn cat of convolutions on channels", "[onednn]") {
  const npu_dtype dtype = each_dtype();
  // 8 and 16 fill blocks; 5 does not; 32 alone fills those of AVX-512.
  const auto [first, second] =
      GENERATE(table<std::int64_t, std::int64_t>({{8, 16}, {5, 8}, {8, 5}, {32, 16}}));
  Model model(dtype);
  const Array x = model.input("x", random_array({1, 16, 6, 6}, 1));
  const Array u = model.weight("u", random_array({first, 16, 3, 3}, 2));
  const Array v = model.weight("v", random_array({second, 16, 3, 3}, 3));
  const Array a =
      model.node("a", "aten.conv2d.default", {"x", "u"}, "", convolve(x, u, nullptr, {}));
  const Array b =
      model.node("b", "aten.conv2d.default", {"x", "v"}, "", convolve(x, v, nullptr, {}));
  const Array c = model.node("c", "aten.cat.default", {"a", "b"},
                             R"("_tensor_list_sizes":[2],"dim":1)", concatenate({a, b}, 1));
  model.node("y", "aten.relu_.default", {"c"}, "",
             map_values(c, [](double r) { return std::max(r, 0.0); }));
  model.output("y");
  check_model(model);
}

TEST_CASE("onednn moves elements without changing them", "[onednn]") {
  const npu_dtype dtype = GENERATE(NPU_FLOAT32, NPU_BFLOAT16, NPU_INT64);
  Model model(dtype);
  Array values({2, 3, 4});
  std::iota(values.values.begin(), values.values.end(), 1.0);
  const Array x = model.input("x", values);
  const auto add = [&](const std::string& name, const std::string& op, const std::string& from,
                       const std::string& attrs, const Array& expected) {
    model.node(name, op, {from}, attrs, expected);
    model.output(name);
    return expected;
  };
  add("view", "aten.view.default", "x", R"("size":[6,-1])", reshape(x, {6, 4}));
  add("reshape", "aten.reshape.default", "x", R"("shape":[2,12])", reshape(x, {2, 12}));
  add("flatten", "aten.flatten.using_ints", "x", R"("start_dim":1)", reshape(x, {2, 12}));
  const Array p =
      add("permute", "aten.permute.default", "x", R"("dims":[2,0,-2])", permute(x, {2, 0, 1}));
  add("pview", "aten.reshape.default", "permute", R"("shape":[-1])", reshape(p, {24}));
  const Array t =
      add("transpose", "aten.transpose.int", "x", R"("dim0":-1,"dim1":0)", permute(x, {2, 1, 0}));
  add("tcontiguous", "aten.contiguous.default", "transpose", "", t);
  add("unsqueeze", "aten.unsqueeze.default", "x", R"("dim":-2)", reshape(x, {2, 3, 1, 4}));
  add("squeeze", "aten.squeeze.dim", "unsqueeze", R"("dim":2)", x);
  add("squeeze0", "aten.squeeze.dim", "x", R"("dim":1)", x);
  const Array s =
      add("slice", "aten.slice.Tensor", "x",
          R"("dim":2,"start":-3,"end":9223372036854775807,"step":2)", slice(x, 2, 1, 2, 2));
  add("sview", "aten.view.default", "slice", R"("size":[12])", reshape(s, {12}));
  add("select", "aten.select.int", "x", R"("dim":1,"index":-1)",
      reshape(slice(x, 1, 2, 1, 1), {2, 4}));
  add("expand", "aten.expand.default", "select", R"("size":[3,2,-1])",
      concatenate(std::vector<Array>(3, reshape(slice(x, 1, 2, 1, 1), {1, 2, 4})), 0));
  add("alias", "aten.alias.default", "x", "", x);
  add("clone", "aten.clone.default", "x", "", x);
  add("dropout", "aten.dropout.default", "x", R"("p":0.5,"train":false)", x);
  add("to", "aten.to.dtype", "x", R"("dtype":"torch.)" + dtype_text(dtype) + "\"", x);
  check_model(model);
}

TEST_CASE("onednn splits and getitem", "[onednn]") {
  Model model(each_dtype());
  const Array x = model.input("x", random_array({2, 7, 3}, 1));
  const auto parts = [&](const std::string& name, const std::string& op, const std::string& attrs,
                         const Index& sizes) {
    std::vector<std::pair<std::string, Array>> results;
    std::vector<std::string> names;
    std::int64_t begin = 0;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      names.push_back(name + "_" + std::to_string(i));
      results.emplace_back(names.back(), slice(x, 1, begin, sizes[i], 1));
      begin += sizes[i];
    }
    model.node(name, op, {"x"}, attrs, results);
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      const std::string item = name + "_item_" + std::to_string(i);
      model.node(item, "<built-in function getitem>", names, R"("index":)" + std::to_string(i),
                 results[i].second);
      model.output(item);
    }
  };
  parts("split", "aten.split.Tensor", R"("split_size":3,"dim":1)", {3, 3, 1});
  parts("sizes", "aten.split_with_sizes.default", R"("split_sizes":[2,5],"dim":-2)", {2, 5});
  parts("chunk", "aten.chunk.default", R"("chunks":3,"dim":1)", {3, 3, 1});
  parts("cuts", "aten.tensor_split.indices", R"("indices":[1,-2],"dim":1)", {1, 4, 2});
  parts("sections", "aten.tensor_split.sections", R"("sections":3,"dim":1)", {3, 2, 2});
  check_model(model);
}

TEST_CASE("onednn converts between float32 and bfloat16", "[onednn]") {
  Model model(NPU_FLOAT32);
  const Array x = model.input("x", random_array({3, 5}, 1));
  const Array narrow =
      model.node("narrow", "aten.to.dtype", {"x"}, R"("dtype":"torch.bfloat16")", x, NPU_BFLOAT16);
  model.node("wide", "aten.to.dtype", {"narrow"}, R"("dtype":"torch.float32")", narrow);
  for (const char* name : {"narrow", "wide", "x"}) model.output(name);
  check_model(model);
}

// ---- Layouts, aliases and in-place ops across nodes ----

TEST_CASE("onednn adds a residual behind a convolution", "[onednn]") {
  const npu_dtype dtype = each_dtype();
  const std::int64_t channels = GENERATE(16, 5);
  Model model(dtype);
  const Array x = model.input("x", random_array({2, channels, 6, 6}, 1));
  const Array w = model.weight("w", random_array({channels, channels, 3, 3}, 2));
  const Array s = model.weight("s", random_array({channels, 1, 1}, 3));
  const ConvArguments arguments{{1, 1}, {1, 1}, {1, 1}, {1, 1}, 1};
  const Array c = model.node("c", "aten.conv2d.default", {"x", "w"}, R"("padding":[1,1])",
                             convolve(x, w, nullptr, arguments));
  const Array a =
      model.node("a", "aten.add_.Tensor", {"c", "x"}, "", zip_values(c, x, std::plus<>()));
  const Array b =
      model.node("b", "aten.add.Tensor", {"x", "c"}, "", zip_values(x, c, std::plus<>()));
  const Array m =
      model.node("m", "aten.mul.Tensor", {"a", "s"}, "", zip_values(a, s, std::multiplies<>()));
  const Array d = model.node("d", "aten.conv2d.default", {"m", "w"}, R"("padding":[1,1])",
                             convolve(m, w, nullptr, arguments));
  const Array g = model.node("g", "aten.adaptive_avg_pool2d.default", {"d"},
                             R"("output_size":[1,1])", pool_adaptively(d, 1, 1));
  const Array e =
      model.node("e", "aten.mul.Tensor", {"g", "d"}, "", zip_values(g, d, std::multiplies<>()));
  model.node("q", "aten.div.Tensor", {"e"}, R"("other":3.0)",
             map_values(e, [](double v) { return v / 3; }));
  for (const char* name : {"a", "b", "m", "q"}) model.output(name);
  check_model(model);
}

TEST_CASE("onednn keeps the operand of an in-place op for its other readers", "[onednn]") {
  Model model(each_dtype());
  const auto relu = [](double v) { return std::max(v, 0.0); };
  const Array x = model.input("x", random_array({2, 8, 4, 4}, 1));
  const Array w = model.weight("w", random_array({8, 8, 1, 1}, 2));
  const Array c =
      model.node("c", "aten.conv2d.default", {"x", "w"}, "", convolve(x, w, nullptr, {}));
  const Array v =
      model.node("v", "aten.view.default", {"c"}, R"("size":[2,128])", reshape(c, {2, 128}));
  const Array r = model.node("r", "aten.relu_.default", {"c"}, "", map_values(c, relu));
  model.node("xr", "aten.relu_.default", {"x"}, "", map_values(x, relu));
  const Array u = model.node("u", "aten.add_.Tensor", {"v"}, R"("other":1)",
                             map_values(v, [](double p) { return p + 1; }));
  model.node("s", "aten.add.Tensor", {"c", "r"}, "", zip_values(c, r, std::plus<>()));
  model.node("t", "aten.mul.Tensor", {"v", "u"}, "", zip_values(v, u, std::multiplies<>()));
  for (const char* name : {"c", "v", "r", "xr", "s", "t", "x"}) model.output(name);
  check_model(model);
}

TEST_CASE("onednn reshapes and permutes what a convolution made", "[onednn]") {
  const npu_dtype dtype = each_dtype();
  const std::int64_t channels = GENERATE(16, 12);
  Model model(dtype);
  const Array x = model.input("x", random_array({2, 3, 8, 8}, 1));
  const Array w = model.weight("w", random_array({channels, 3, 4, 4}, 2));
  const Array c = model.node("c", "aten.conv2d.default", {"x", "w"}, R"("stride":[4,4])",
                             convolve(x, w, nullptr, {{4, 4}, {0, 0}, {0, 0}, {1, 1}, 1}));
  const Array r = model.node("r", "aten.reshape.default", {"c"}, R"("shape":[2,-1,4])",
                             reshape(c, {2, channels, 4}));
  const Array p =
      model.node("p", "aten.permute.default", {"r"}, R"("dims":[0,2,1])", permute(r, {0, 2, 1}));
  model.node("n", "aten.layer_norm.default", {"p"},
             R"("normalized_shape":)" + list_text({channels}),
             normalize_rows(p, static_cast<std::size_t>(channels), nullptr, nullptr, 1e-5));
  const Array h = model.node("h", "aten.permute.default", {"c"}, R"("dims":[0,2,3,1])",
                             permute(c, {0, 2, 3, 1}));
  model.node("hr", "aten.relu.default", {"h"}, "",
             map_values(h, [](double v) { return std::max(v, 0.0); }));
  const Array g = model.node("g", "aten.adaptive_avg_pool2d.default", {"c"},
                             R"("output_size":[1,1])", pool_adaptively(c, 1, 1));
  const Array f = model.node("f", "aten.flatten.using_ints", {"g"}, R"("start_dim":1)",
                             reshape(g, {2, channels}));
  model.node("m", "aten.softmax.int", {"c"}, R"("dim":1)", softmax(c, 1, false));
  for (const char* name : {"n", "h", "hr", "f", "g", "m"}) model.output(name);
  check_model(model);
}

TEST_CASE("onednn computes what depends on weights alone", "[onednn]") {
  Model model(each_dtype());
  const Array x = model.input("x", random_array({4, 6}, 1));
  const Array w = model.weight("w", random_array({5, 6}, 2));
  const Array t = model.node("t", "aten.t.default", {"w"}, "", permute(w, {1, 0}));
  const Array d = model.node("d", "aten.mul.Tensor", {"t"}, R"("other":2.0)",
                             map_values(t, [](double v) { return 2 * v; }));
  model.node("y", "aten.mm.default", {"x", "d"}, "", multiply(x, d));
  for (const char* name : {"y", "d", "t", "w"}) model.output(name);
  check_model(model);
}

TEST_CASE("onednn gives outputs memory of their own", "[onednn]") {
  Model model(NPU_FLOAT32);
  const Array x = model.input("x", random_array({2, 6}, 1));
  model.node("a", "aten.view.default", {"x"}, R"("size":[3,4])", reshape(x, {3, 4}));
  const Array r = model.node("r", "aten.relu.default", {"x"}, "",
                             map_values(x, [](double v) { return std::max(v, 0.0); }));
  model.node("b", "aten.view.default", {"r"}, R"("size":[12])", reshape(r, {12}));
  for (const char* name : {"x", "a", "r", "b"}) model.output(name);
  const Device device = open_device();
  const Compiled compiled = compile(device.get(), model);
  REQUIRE(compiled.status == NPU_OK);
  const std::vector<Buffer> inputs = model.import_inputs(device.get());
  npu_buffer* input = inputs[0].get();
  // One output passed in, the others made by the backend.
  npu_error error{};
  npu_buffer* own = nullptr;
  const Shape shape{12};
  REQUIRE(api().buffer_allocate(device.get(), NPU_FLOAT32, 1, shape.data(), &own, &error) ==
          NPU_OK);
  npu_buffer* outputs[4] = {nullptr, nullptr, nullptr, own};
  REQUIRE(api().run(compiled.program.get(), &input, 1, outputs, 4, &error) == NPU_OK);
  CHECK(outputs[3] == own);
  std::set<const void*> addresses;
  npu_tensor description{};
  REQUIRE(api().buffer_describe(input, &description, &error) == NPU_OK);
  addresses.insert(description.data);
  for (npu_buffer* output : outputs) {
    REQUIRE(api().buffer_describe(output, &description, &error) == NPU_OK);
    CHECK(reinterpret_cast<std::uintptr_t>(description.data) % 64 == 0);
    addresses.insert(description.data);
  }
  CHECK(addresses.size() == 5);
  check_close(decode(read_buffer(outputs[3])), model.expected("b"), NPU_FLOAT32);
  for (npu_buffer* output : outputs) api().buffer_free(output);
}

// ---- Refusals ----

TEST_CASE("onednn refuses what it does not run, with node, op, argument and reason", "[onednn]") {
  const auto one_node = [](const std::string& op, const Shape& shape, const std::string& attrs,
                           npu_dtype dtype = NPU_FLOAT32) {
    Model model(dtype);
    model.input("x", Array(shape));
    model.node("bad", op, {"x"}, attrs, Array(shape));
    model.output("bad");
    return refusal(model, NPU_ERROR_UNSUPPORTED);
  };
  CHECK(one_node("aten.cumprod.default", {2}, R"("dim":0)")
            .find("node 'bad' (aten.cumprod.default)") == 0);
  CHECK(one_node("aten.dropout.default", {2}, R"("p":0.5,"train":true)").find("argument 'train'") !=
        std::string::npos);
  CHECK(one_node("aten.exp.default", {2}, "", NPU_INT64).find("dtype int64") != std::string::npos);
  CHECK(one_node("aten.elu.default", {2}, R"("scale":2)").find("argument 'scale'") !=
        std::string::npos);
  CHECK(one_node("aten.relu.default", {2, 0}, "").find("no elements") != std::string::npos);
  CHECK(one_node("aten.to.dtype", {2}, R"("dtype":"torch.float16")").find("'dtype'") !=
        std::string::npos);
  CHECK(one_node("aten.relu.default", Shape(9, 1), "").find("rank 9") != std::string::npos);
}

TEST_CASE("onednn refuses a sub-IR that contradicts itself", "[onednn]") {
  Model model(NPU_FLOAT32);
  model.input("x", random_array({2, 6}, 1));
  const std::string variant =
      GENERATE(as<std::string>(), "shape", "elements", "dimension", "broadcast");
  if (variant == "shape") model.node("bad", "aten.relu.default", {"x"}, "", Array({2, 5}));
  if (variant == "elements")
    model.node("bad", "aten.view.default", {"x"}, R"("size":[5,-1])", Array({5, 2}));
  if (variant == "dimension")
    model.node("bad", "aten.softmax.int", {"x"}, R"("dim":2)", Array({2, 6}));
  if (variant == "broadcast") {
    model.input("y", random_array({4}, 2));
    model.node("bad", "aten.add.Tensor", {"x", "y"}, "", Array({2, 6}));
  }
  model.output("bad");
  CHECK(refusal(model, NPU_ERROR_INVALID).find("node 'bad'") != std::string::npos);
}

TEST_CASE("onednn refuses extents that oneDNN does not count", "[onednn]") {
  const std::int64_t rows =
      GENERATE(std::int64_t{1} << 31, std::int64_t{1} << 32, std::int64_t{1} << 40);
  const std::string op =
      GENERATE(as<std::string>(), "aten.linear.default", "aten.mm.default", "aten.relu.default");
  const std::string shape = "[" + std::to_string(rows) + ",8]";
  const bool has_weight = op != "aten.relu.default";
  const std::string operand = R"({"name":"w","shape":[8,8],"dtype":"float32"})";
  const std::string x = R"({"name":"x","shape":)" + shape + R"(,"dtype":"float32"})";
  const std::string y = R"({"name":"y","shape":)" + shape + R"(,"dtype":"float32"})";
  const std::string text =
      R"({"model_name":"m","graph_inputs":[)" + x + (has_weight ? "," + operand : "") +
      R"(],"graph_outputs":[)" + y +
      R"(],"weights":[],"weight_name_mapping":{},"nodes":[{"name":"y","op_type":")" + op +
      R"(","inputs":[)" + x + (has_weight ? "," + operand : "") + R"(],"outputs":[)" + y +
      R"(],"attrs":{}}]})";
  const Device device = open_device();
  npu_blob blob{};
  npu_error error{};
  CHECK(api().compile(device.get(), text.data(), text.size(), nullptr, 0, "{}", &blob, &error) ==
        NPU_ERROR_UNSUPPORTED);
  CHECK(std::string(error.text).find("an extent above 2147483647") != std::string::npos);
}

TEST_CASE("onednn refuses a stated result that the operands do not give", "[onednn]") {
  struct Wrong {
    const char* op;
    const char* attrs;
    Shape stated;
    bool has_second;
  };
  const Wrong wrong = GENERATE(
      Wrong{"aten.linear.default", "", {3, 8}, true}, Wrong{"aten.mm.default", "", {6, 4}, true},
      Wrong{"aten.matmul.default", "", {1, 6, 8}, true},
      Wrong{"aten.gelu.default", "", {8, 6}, false}, Wrong{"aten.add.Tensor", "", {6, 8, 8}, true},
      Wrong{"aten.softmax.int", R"("dim":1)", {6, 7}, false},
      Wrong{"aten.view.default", R"("size":[4,12])", {4, 11}, false},
      Wrong{"aten.permute.default", R"("dims":[1,0])", {6, 8}, false},
      Wrong{"aten.sum.dim_IntList", R"("dim":[1])", {8}, false},
      Wrong{"aten.unsqueeze.default", R"("dim":0)", {6, 1, 8}, false});
  Model model(NPU_FLOAT32);
  model.input("x", random_array({6, 8}, 1));
  if (wrong.has_second) model.input("z", random_array({8, 8}, 2));
  if (wrong.has_second) {
    model.node("bad", wrong.op, {"x", "z"}, wrong.attrs, Array(wrong.stated));
  } else {
    model.node("bad", wrong.op, {"x"}, wrong.attrs, Array(wrong.stated));
  }
  model.output("bad");
  const std::string text = refusal(model, NPU_ERROR_INVALID);
  INFO(wrong.op << ": " << text);
  CHECK(text.find("node 'bad'") != std::string::npos);
}

TEST_CASE("onednn keeps NaN through exp, hardsigmoid and softmax behind a product", "[onednn]") {
  Model model(NPU_FLOAT32);
  Array x = random_array({2, 4}, 1);
  x.values[1] = std::nan("");
  model.input("x", x);
  const Array w = model.input("w", random_array({4, 4}, 2));
  Array product({2, 4});
  for (std::size_t i = 0; i < 8; ++i) {
    for (std::size_t k = 0; k < 4; ++k)
      product.values[i] += x.values[i / 4 * 4 + k] * w.values[k * 4 + i % 4];
  }
  model.node("p", "aten.mm.default", {"x", "w"}, "", product);
  const auto of = [&](auto function) {
    Array result = product;
    for (double& value : result.values) value = function(value);
    return result;
  };
  model.node("e", "aten.exp.default", {"p"}, "", of([](double v) { return std::exp(v); }));
  model.node("h", "aten.hardsigmoid.default", {"p"}, "",
             of([](double v) { return std::isnan(v) ? v : clip(v + 3, 0, 6) / 6; }));
  model.node("s", "aten.softplus.default", {"p"}, "",
             of([](double v) { return std::log1p(std::exp(v)); }));
  model.node("l", "aten.log_sigmoid.default", {"p"}, "",
             of([](double v) { return -std::log1p(std::exp(-v)); }));
  model.node("m", "aten.softmax.int", {"p"}, R"("dim":1)", softmax(product, 1, false));
  for (const char* name : {"e", "h", "s", "l", "m"}) model.output(name);
  check_model(model);
}

TEST_CASE("onednn refuses weights, blobs and buffers that do not fit", "[onednn]") {
  Model model(NPU_FLOAT32);
  const Array x = model.input("x", random_array({2, 6}, 1));
  const Array w = model.weight("w", random_array({6}, 2));
  model.node("y", "aten.add.Tensor", {"x", "w"}, "", zip_values(x, w, std::plus<>()));
  model.output("y");
  const Device device = open_device();
  npu_error error{};
  const std::string text = model.text();
  npu_blob blob{};
  CHECK(api().compile(device.get(), text.data(), text.size(), nullptr, 0, nullptr, &blob, &error) ==
        NPU_ERROR_INVALID);
  CHECK(std::string(error.text).find("'w'") != std::string::npos);
  CHECK(blob.data == nullptr);
  CHECK(api().compile(device.get(), text.data(), text.size() - 1, nullptr, 0, nullptr, &blob,
                      &error) == NPU_ERROR_INVALID);

  const Compiled compiled = compile(device.get(), model);
  REQUIRE(compiled.status == NPU_OK);
  npu_program* program = nullptr;
  auto weights = model.weight_views();
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{7}, std::size_t{16}, compiled.blob.size() - 1}) {
    CHECK(api().load(device.get(), compiled.blob.data(), size, weights.data(), 1, &program,
                     &error) == NPU_ERROR_INVALID);
  }
  const Shape wrong{3};
  weights[0].shape = wrong.data();
  CHECK(api().compile(device.get(), text.data(), text.size(), weights.data(), 1, nullptr, &blob,
                      &error) == NPU_ERROR_INVALID);
  CHECK(api().compile(device.get(), text.data(), text.size(), model.weight_views().data(), 1,
                      R"({"precision":"f8"})", &blob, &error) == NPU_ERROR_INVALID);
  CHECK(std::string(error.text).find("'precision'") != std::string::npos);
  CHECK(blob.data == nullptr);
  CHECK(program == nullptr);

  npu_buffer* buffer = nullptr;
  const Shape negative{2, -1};
  CHECK(api().buffer_allocate(device.get(), NPU_FLOAT32, 2, negative.data(), &buffer, &error) ==
        NPU_ERROR_INVALID);
  const Shape huge{std::int64_t{1} << 40, std::int64_t{1} << 40};
  CHECK(api().buffer_allocate(device.get(), NPU_FLOAT32, 2, huge.data(), &buffer, &error) ==
        NPU_ERROR_INVALID);
  const Shape transposed{6, 2};
  REQUIRE(api().buffer_allocate(device.get(), NPU_FLOAT32, 2, transposed.data(), &buffer, &error) ==
          NPU_OK);
  npu_buffer* output = nullptr;
  CHECK(api().run(compiled.program.get(), &buffer, 1, &output, 1, &error) == NPU_ERROR_INVALID);
  CHECK(std::string(error.text).find("input 'x'") != std::string::npos);
  CHECK(api().run(compiled.program.get(), &buffer, 0, &output, 1, &error) == NPU_ERROR_INVALID);
  float many[13];
  CHECK(api().buffer_export(buffer, many, sizeof many, &error) == NPU_ERROR_INVALID);
  api().buffer_free(buffer);
}

TEST_CASE("onednn reads weights at any address", "[onednn]") {
  Model model(NPU_FLOAT32);
  const Array x = model.input("x", random_array({3, 4}, 1));
  const Array w = model.weight("w", random_array({4}, 2));
  model.node("y", "aten.add.Tensor", {"x", "w"}, "", zip_values(x, w, std::plus<>()));
  model.output("y");
  const Device device = open_device();
  auto weights = model.weight_views();
  std::vector<char> odd(weights[0].bytes + 1);
  std::memcpy(odd.data() + 1, weights[0].data, weights[0].bytes);
  weights[0].data = odd.data() + 1;
  npu_program* program = nullptr;
  npu_error error{};
  npu_blob blob{};
  const std::string text = model.text();
  REQUIRE(api().compile(device.get(), text.data(), text.size(), weights.data(), 1, "{}", &blob,
                        &error) == NPU_OK);
  // The blob, too, may lie anywhere; it alone has what load needs.
  std::vector<char> moved(blob.size + 1);
  std::memcpy(moved.data() + 1, blob.data, blob.size);
  api().blob_free(&blob);
  REQUIRE(api().load(device.get(), moved.data() + 1, moved.size() - 1, nullptr, 0, &program,
                     &error) == NPU_OK);
  const Program owner(program);
  const std::vector<Buffer> inputs = model.import_inputs(device.get());
  npu_buffer* input = inputs[0].get();
  npu_buffer* output = nullptr;
  REQUIRE(api().run(program, &input, 1, &output, 1, &error) == NPU_OK);
  const Buffer result(output);
  check_close(decode(read_buffer(output)), model.expected("y"), NPU_FLOAT32);
}

}  // namespace
}  // namespace npu::test::onednn
