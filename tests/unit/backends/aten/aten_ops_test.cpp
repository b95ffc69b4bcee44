// SPDX-License-Identifier: Apache-2.0
// The results of the aten backend: ops that libtorch lacks, ops that it computes directly, and
// custom ops.
//
// NPU_TEST_CUSTOM_OPS and NPU_TEST_BAD_CUSTOM_OPS are the shared objects built of
// aten_custom_ops.cpp and aten_bad_custom_ops.cpp. Expected values are computed here or written
// beside their arithmetic.
#include <dlfcn.h>
#include <sys/mman.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "backends/aten/aten_harness.hpp"
#include "catch.hpp"
#include "npu/backend.h"

namespace npu::test::aten {
namespace {

// ---- decompositions

// softmax(q k^T * scale + mask) v for one head, in double.
std::vector<float> attention(const std::vector<float>& q, const std::vector<float>& k,
                             const std::vector<float>& v, std::size_t length, std::size_t source,
                             std::size_t width, double scale, const std::vector<double>& mask,
                             std::vector<float>* logsumexp = nullptr) {
  std::vector<float> result(length * width);
  for (std::size_t i = 0; i < length; ++i) {
    std::vector<double> weights(source);
    double sum = 0.0;
    for (std::size_t j = 0; j < source; ++j) {
      double score = 0.0;
      for (std::size_t d = 0; d < width; ++d)
        score += double{q[i * width + d]} * double{k[j * width + d]};
      weights[j] = std::exp(score * scale + (mask.empty() ? 0.0 : mask[i * source + j]));
      sum += weights[j];
    }
    if (logsumexp != nullptr) logsumexp->push_back(static_cast<float>(std::log(sum)));
    for (std::size_t d = 0; d < width; ++d) {
      double value = 0.0;
      for (std::size_t j = 0; j < source; ++j) value += weights[j] * double{v[j * width + d]};
      result[i * width + d] = sum == 0.0 ? 0.0F : static_cast<float>(value / sum);
    }
  }
  return result;
}

TEST_CASE("segment_reduce", "[aten]") {
  const std::string op = "npu.segment_reduce";
  // Edges 0, 1 of node 0, none of node 1, edges 2, 3, 4 of node 2.
  const auto x = f32({3, 2}, {1, 2, 3, -4, 5, 6});
  const auto offsets = i64({4}, {0, 2, 2, 5});
  const auto sources = i64({5}, {2, 0, 1, 1, 0});
  const std::vector<std::pair<std::string, HostTensor>> plain = {
      {"x", x}, {"o", offsets}, {"s", sources}};
  auto weighted = plain;
  weighted.emplace_back("w", f32({5, 1}, {2, 1, 0, 0, 1}));
  const std::vector<Result> y = {{"y", {3, 2}}};
  // Rows (5 6), (1 2) and (3 -4), (3 -4), (1 2).
  check_near(run(one_node(op, plain, {}, y))[0].floats(), {6, 8, 0, 0, 7, -6});
  check_near(run(one_node(op, plain, {{"reduce", "mean"}}, y))[0].floats(),
             {3, 4, 0, 0, 7.0F / 3, -2});
  check_near(run(one_node(op, plain, {{"reduce", "amax"}}, y))[0].floats(), {5, 6, 0, 0, 3, 2});
  check_near(run(one_node(op, weighted, {}, y))[0].floats(), {11, 14, 0, 0, 1, 2});
  const auto e = std::exp(1.0F);
  check_near(run(one_node(op, weighted, {{"reduce", "softmax"}}, y))[0].floats(),
             {(5 * e + 1) / (e + 1), (6 * e + 2) / (e + 1), 0, 0, (6 + e) / (2 + e),
              (-8 + 2 * e) / (2 + e)});
  // Weights of each element, and rows of edges without indices.
  auto by_element = plain;
  by_element.emplace_back("w", f32({5, 2}, {2, 1, 1, 2, 0, 1, 1, 0, -1, -1}));
  check_near(run(one_node(op, by_element, {}, y))[0].floats(), {11, 10, 0, 0, 2, -6});
  check_near(run(one_node(op, {{"x", f32({5, 1}, {1, 2, 4, 8, 16})}, {"o", offsets}}, {},
                          {{"y", {3, 1}}}))[0]
                 .floats(),
             {3, 0, 28});
}

TEST_CASE("segment_reduce weighs the heads of rows", "[aten]") {
  // Two nodes with two edges each, two heads of one element.
  const auto offsets = i64({3}, {0, 2, 4});
  const auto sources = i64({4}, {0, 1, 1, 0});
  const std::vector<std::pair<std::string, HostTensor>> operands = {
      {"x", f32({2, 2, 1}, {1, 2, 3, 4})},
      {"o", offsets},
      {"s", sources},
      {"w", f32({4, 2, 1}, {1, 0, 1, 1, 2, 0, 0, 2})}};
  const std::vector<Result> y = {{"y", {2, 2, 1}}};
  check_near(run(one_node("npu.segment_reduce", operands, {}, y))[0].floats(), {4, 4, 6, 4});
  const auto largest = one_node("npu.segment_reduce", operands, {{"reduce", "amax"}}, y);
  check_near(run(largest)[0].floats(), {3, 4, 6, 4});
}

TEST_CASE("segment_reduce refuses offsets and indices that do not fit", "[aten]") {
  const auto x = f32({3, 2}, {1, 2, 3, -4, 5, 6});
  const auto refused = [&](const std::vector<std::int64_t>& offsets,
                           const std::vector<std::int64_t>& sources) {
    const auto graph = one_node("npu.segment_reduce",
                                {{"x", x}, {"o", i64({4}, offsets)}, {"s", i64({5}, sources)}}, {},
                                {{"y", {3, 2}}});
    CHECK_THROWS(run(graph));
  };
  refused({1, 2, 2, 5}, {2, 0, 1, 1, 0});
  refused({0, 3, 2, 5}, {2, 0, 1, 1, 0});
  refused({0, 2, 2, 6}, {2, 0, 1, 1, 0});
  refused({0, 2, 2, 4}, {2, 0, 1, 1, 0});
  refused({0, 2, 2, 5}, {3, 0, 1, 1, 0});
  refused({0, 2, 2, 5}, {2, 0, -1, 1, 0});
  refused({0, 2, 2, 5}, {2, 0, std::int64_t{1} << 32, 1, 0});
}

TEST_CASE("scaled_dot_product_attention", "[aten]") {
  const std::string op = "aten.scaled_dot_product_attention.default";
  const auto q = range({1, 1, 2, 4}, -0.5F, 0.1F);
  const auto k = range({1, 1, 3, 4}, 0.2F, -0.1F);
  const auto v = range({1, 1, 3, 4}, 1.0F, 0.5F);
  const std::vector<std::pair<std::string, HostTensor>> qkv = {{"q", q}, {"k", k}, {"v", v}};
  const auto expected = [&](double scale, const std::vector<double>& mask) {
    return attention(q.floats(), k.floats(), v.floats(), 2, 3, 4, scale, mask);
  };
  const double out = -std::numeric_limits<double>::infinity();
  const std::vector<Result> y = {{"y", {1, 1, 2, 4}}};
  SECTION("plain") { check_near(run(one_node(op, qkv, {}, y))[0].floats(), expected(0.5, {})); }
  SECTION("scale") {
    check_near(run(one_node(op, qkv, {{"scale", 2.0}}, y))[0].floats(), expected(2.0, {}));
    check_near(run(one_node(op, qkv, {{"scale", nullptr}, {"enable_gqa", false}}, y))[0].floats(),
               expected(0.5, {}));
    check_near(run(one_node(op, qkv, {{"scale", -1.0}}, y))[0].floats(), expected(-1.0, {}));
  }
  SECTION("causal") {
    check_near(run(one_node(op, qkv, {{"is_causal", true}}, y))[0].floats(),
               expected(0.5, {0, out, out, 0, 0, out}));
  }
  SECTION("masks, and a row that lets nothing through") {
    auto operands = qkv;
    operands.emplace_back("m", boolean({2, 3}, {1, 0, 1, 0, 0, 0}));
    check_near(run(one_node(op, operands, {}, y))[0].floats(),
               expected(0.5, {0, out, 0, out, out, out}));
    operands.back().second = f32({1, 1, 2, 3}, {0, 1, -kInfinity, 0.5F, 0, 0});
    check_near(run(one_node(op, operands, {}, y))[0].floats(),
               expected(0.5, {0, 1, out, 0.5, 0, 0}));
  }
  SECTION("fewer heads of keys than of queries") {
    const auto q4 = range({1, 4, 2, 2}, 0, 0.05F);
    const auto k2 = range({1, 2, 2, 2}, 0.3F, -0.1F);
    const auto result = run(one_node(op, {{"q", q4}, {"k", k2}, {"v", k2}}, {{"enable_gqa", true}},
                                     {{"y", {1, 4, 2, 2}}}))[0]
                            .floats();
    for (std::size_t head = 0; head < 4; ++head) {
      const auto part = [](const HostTensor& tensor, std::size_t index) {
        const auto all = tensor.floats();
        return std::vector<float>(all.begin() + static_cast<std::ptrdiff_t>(4 * index),
                                  all.begin() + static_cast<std::ptrdiff_t>(4 * index + 4));
      };
      const auto reference = attention(part(q4, head), part(k2, head / 2), part(k2, head / 2), 2, 2,
                                       2, 1.0 / std::sqrt(2.0), {});
      check_near(std::vector<float>(result.begin() + static_cast<std::ptrdiff_t>(4 * head),
                                    result.begin() + static_cast<std::ptrdiff_t>(4 * head + 4)),
                 reference);
    }
  }
  SECTION("dropout is refused") {
    const Failure failure = failure_of(one_node(op, qkv, {{"dropout_p", 0.1}}, y));
    CHECK(failure.text.starts_with("node 'n' (" + op +
                                   "): dropout_p is 0.1, but only 0 runs here; arguments: "));
  }
  SECTION("the flash variant, whose second result is the logarithm of the sum") {
    std::vector<float> logsumexp;
    const auto reference =
        attention(q.floats(), k.floats(), v.floats(), 2, 3, 4, 0.5, {}, &logsumexp);
    const auto results = run(one_node("aten._scaled_dot_product_flash_attention_for_cpu.default",
                                      qkv, {}, {{"y", {1, 1, 2, 4}}, {"l", {1, 1, 2}}}));
    check_near(results[0].floats(), reference);
    check_near(results[1].floats(), logsumexp);
  }
}

TEST_CASE("normalisation that libtorch 1.13 lacks", "[aten]") {
  SECTION("rms_norm") {
    // Mean squares of (3, 4) and (6, 8): 12.5 and 50.
    const auto y = run(one_node("aten.rms_norm.default",
                                {{"x", f32({2, 2}, {3, 4, 6, 8})}, {"w", f32({2}, {1, 2})}},
                                {{"normalized_shape", {2}}, {"eps", 0.0}}, {{"y", {2, 2}}}));
    const float a = 3 / std::sqrt(12.5F);
    const float b = 4 / std::sqrt(12.5F);
    check_near(y[0].floats(), {a, 2 * b, a, 2 * b});
  }
  SECTION("batch norm without training") {
    // (x - 1) / sqrt(4) * 3 + 0.5
    const auto y =
        run(one_node("aten._native_batch_norm_legit_no_training.default",
                     {{"x", f32({2, 1}, {1, 3})},
                      {"w", f32({1}, {3})},
                      {"b", f32({1}, {0.5F})},
                      {"m", f32({1}, {1})},
                      {"v", f32({1}, {4})}},
                     {{"momentum", 0.1}, {"eps", 0.0}}, {{"y", {2, 1}}, {"s", {0}}, {"t", {0}}}));
    check_near(y[0].floats(), {0.5F, 3.5F});
  }
  SECTION("batch norm of the batch's own statistics") {
    const auto y =
        run(one_node("aten._native_batch_norm_legit.no_stats", {{"x", f32({2, 1}, {1, 3})}},
                     {{"training", true},
                      {"momentum", 0.1},
                      {"eps", 0.0},
                      {"weight", nullptr},
                      {"bias", nullptr}},
                     {{"y", {2, 1}}, {"s", {1}}, {"t", {1}}}));
    check_near(y[0].floats(), {-1, 1});
    check_near(y[1].floats(), {2});
  }
  SECTION("safe softmax") {
    const auto y = run(one_node("aten._safe_softmax.default",
                                {{"x", f32({2, 2}, {0, 0, -kInfinity, -kInfinity})}}, {{"dim", -1}},
                                {{"y", {2, 2}}}));
    check_near(y[0].floats(), {0.5F, 0.5F, 0, 0});
  }
}

TEST_CASE("statistics with a correction that is a float", "[aten]") {
  // 1 and 3: mean 2, squares 1 + 1; divided by 2 - correction.
  const auto x = f32({2}, {1, 3});
  const auto var = [&](const Json& attrs) {
    return run(one_node("aten.var.correction", {{"x", x}}, attrs, {{"y", {}}}))[0].floats();
  };
  check_near(var({{"dim", {0}}, {"correction", 0.0}}), {1});
  check_near(var({{"dim", {0}}, {"correction", 1}}), {2});
  check_near(var(Json::object()), {2});
  const auto both = run(one_node("aten.std_mean.correction", {{"x", x}},
                                 {{"dim", {0}}, {"correction", 1.0}, {"keepdim", true}},
                                 {{"s", {1}}, {"m", {1}}}));
  check_near(both[0].floats(), {std::sqrt(2.0F)});
  check_near(both[1].floats(), {2});
}

TEST_CASE("shape and index ops that libtorch 1.13 lacks", "[aten]") {
  const auto x = range({1, 2, 1});
  CHECK(run(one_node("aten.squeeze.dims", {{"x", x}}, {{"dim", {0, -1}}}, {{"y", {2}}}))[0]
            .floats() == x.floats());
  CHECK(run(one_node("aten.squeeze.dims", {{"x", x}}, {{"dim", {0, 1}}}, {{"y", {2, 1}}}))[0]
            .floats() == x.floats());
  const auto flags = boolean({2, 2}, {1, 1, 1, 0});
  CHECK(run(one_node("aten.all.dims", {{"x", flags}}, {{"dim", {1}}}, {{"y", {2}, "bool"}}))[0]
            .bytes == std::vector<char>{1, 0});
  CHECK(run(one_node("aten.all.dims", {{"x", flags}}, {{"dim", {0, 1}}}, {{"y", {}, "bool"}}))[0]
            .bytes == std::vector<char>{0});
  CHECK(run(one_node("aten.any.dims", {{"x", flags}}, {}, {{"y", {}, "bool"}}))[0].bytes ==
        std::vector<char>{1});
  CHECK(run(one_node("aten._unsafe_index.Tensor", {{"x", range({3})}, {"i", i64({2}, {2, -1})}},
                     {{"_tensor_list_sizes", {1}}}, {{"y", {2}}}))[0]
            .floats() == std::vector<float>{2, 2});
  CHECK(run(one_node("aten.nonzero_static.default", {{"x", f32({3}, {0, 5, 6})}}, {{"size", 3}},
                     {{"y", {3, 1}, "int64"}}))[0]
            .ints() == std::vector<std::int64_t>{1, 2, -1});
  CHECK(run(one_node("aten.view_copy.default", {{"x", x}}, {{"size", {-1}}}, {{"y", {2}}}))[0]
            .floats() == x.floats());
  CHECK(run(one_node("aten.lift_fresh_copy.default", {{"x", x}}, {}, {{"y", {1, 2, 1}}}))[0]
            .floats() == x.floats());
  CHECK(run(one_node("aten.alias.default", {{"x", x}}, {}, {{"y", {1, 2, 1}}}))[0].floats() ==
        x.floats());
  CHECK(run(one_node("aten.detach_.default", {{"x", x}}, {}, {{"y", {1, 2, 1}}}))[0].floats() ==
        x.floats());
  const auto dropout =
      run(one_node("aten.native_dropout.default", {{"x", x}}, {{"p", 0.5}, {"train", false}},
                   {{"y", {1, 2, 1}}, {"m", {1, 2, 1}, "bool"}}));
  CHECK(dropout[0].floats() == x.floats());
}

TEST_CASE("assertions of exported programs", "[aten]") {
  const auto model = [](const Json& attrs) {
    Model result;
    result.input("x", range({2}))
        .node("a", "aten._assert_tensor_metadata.default", {"x"}, attrs, {})
        .output("x");
    return result;
  };
  CHECK(
      run(model({{"dtype", "torch.float32"}, {"device", "cuda:0"}, {"layout", "torch.strided"}}))[0]
          .floats() == std::vector<float>{0, 1});
  CHECK(failure_of(model({{"dtype", "torch.int64"}}))
            .text.starts_with(
                "node 'a' (aten._assert_tensor_metadata.default): the tensor has dtype"));
  CHECK(failure_of(model({{"size", {3}}})).text.find("the tensor has shape [2], expected [3]") !=
        std::string::npos);
  Model async;
  async.input("x", boolean({}, {0}))
      .node("a", "aten._assert_async.msg", {"x"}, {{"assert_msg", "x must hold"}}, {})
      .output("x");
  CHECK(failure_of(async).text ==
        "node 'a' (aten._assert_async.msg): x must hold; arguments: self: bool [], assert_msg: \"x "
        "must hold\"");
}

// ---- dtypes that do not fit

TEST_CASE("small element-wise ops that need no dispatcher", "[aten]") {
  // In-place and functional forms, an operand that is read again later, one that is read twice by
  // one node, a view in another order (the dispatcher's case) and an operand that dies.
  Model model;
  model.input("x", f32({2, 2}, {1, 2, 3, 4}))
      .input("y", f32({2, 2}, {10, 20, 30, 40}))
      .node("twice", "aten.add.Tensor", {"x", "x"}, Json::object(), {{"twice", {2, 2}}})
      .node("product", "aten.mul_.Tensor", {"twice", "y"}, Json::object(), {{"product", {2, 2}}})
      .node("turned", "aten.t.default", {"product"}, Json::object(), {{"turned", {2, 2}}})
      .node("mixed", "aten.sub.Tensor", {"turned", "twice"}, Json::object(), {{"mixed", {2, 2}}})
      .node("minus", "aten.neg.default", {"mixed"}, Json::object(), {{"minus", {2, 2}}})
      .node("ratio", "aten.div.Tensor", {"minus", "y"}, Json::object(), {{"ratio", {2, 2}}})
      .node("weighted", "aten.add.Tensor", {"ratio", "x"}, {{"alpha", 3}}, {{"weighted", {2, 2}}})
      .output("product")
      .output("weighted");
  const auto results = run(model);
  // twice = 2 4 6 8; product = 20 80 180 320; turned = 20 180 80 320; mixed = 18 176 74 312
  CHECK(results[0].floats() == std::vector<float>{20, 80, 180, 320});
  // ratio = -1.8 -8.8 -74/30 -7.8; weighted = ratio + 3 x
  CHECK(results[1].floats() ==
        std::vector<float>{-1.8F + 3, -8.8F + 6, -74.0F / 30 + 9, -7.8F + 12});

  // Integers wrap; the sum of int32 and int64 is the dispatcher's.
  constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max();
  Model integers;
  integers.input("a", i64({2}, {kLargest, -5}))
      .input("b", i64({2}, {1, 7}))
      .node("sum", "aten.add.Tensor", {"a", "b"}, Json::object(), {{"sum", {2}, "int64"}})
      .node("minus", "aten.neg.default", {"sum"}, Json::object(), {{"minus", {2}, "int64"}})
      .node("square", "aten.mul.Tensor", {"sum", "sum"}, Json::object(), {{"square", {2}, "int64"}})
      .output("minus")
      .output("square");
  const auto wrapped = run(integers);
  constexpr std::int64_t kSmallest = std::numeric_limits<std::int64_t>::min();
  CHECK(wrapped[0].ints() == std::vector<std::int64_t>{kSmallest, -2});
  CHECK(wrapped[1].ints() == std::vector<std::int64_t>{0, 4});

  // Inputs and weights stay as they are over runs, and no elements are fine.
  Model weights;
  weights.input("x", f32({0}, {}))
      .weight("w", f32({0}, {}))
      .node("sum", "aten.add_.Tensor", {"w", "x"}, Json::object(), {{"sum", {0}}})
      .output("sum");
  CHECK(run(weights)[0].floats().empty());
}

TEST_CASE("operands of different floating dtypes", "[aten]") {
  // 1.5 in bfloat16 is 0x3fc0.
  const auto model = [](const std::string& dtype) {
    return one_node("aten.linear.default",
                    {{"x", bits16("bfloat16", {1, 1}, {0x3fc0})}, {"w", f32({1, 1}, {1.001F})}}, {},
                    {{"y", {1, 1}, dtype}});
  };
  const Failure failure = failure_of(model("float32"));
  CHECK(failure.status == NPU_UNSUPPORTED);
  CHECK(failure.text ==
        "node 'n' (aten.linear.default): operand 'x' is bfloat16 and 'w' is float32; this op needs "
        "one dtype (npu-run --promote, or the device option \"promote\": true, converts them)");
  check_near(run(model("float32"), R"({"promote": true})")[0].floats(), {1.5015F});
  // Ops that promote need no option.
  const auto sum = run(one_node("aten.add.Tensor",
                                {{"x", bits16("bfloat16", {1}, {0x3fc0})}, {"y", f32({1}, {1})}},
                                {}, {{"z", {1}}}));
  CHECK(sum[0].floats() == std::vector<float>{2.5F});
}

TEST_CASE("16-bit ops without a kernel run in float32", "[aten]") {
  // 1.0, 2.0 and 3.0 in float16; 1 * 1 + 2 * 3 = 7.
  Model model;
  model.input("x", bits16("float16", {1, 2}, {0x3c00, 0x4000}))
      .weight("w", bits16("float16", {1, 2}, {0x3c00, 0x4200}))
      .node("n", "aten.linear.default", {"x", "w"}, {}, {{"y", {1, 1}, "float16"}})
      .node("m", "aten.linear.default", {"y", "y"}, {}, {{"z", {1, 1}, "float16"}})
      .output("y")
      .output("z");
  const auto results = run(model);
  CHECK(results[0].as<std::uint16_t>() == std::vector<std::uint16_t>{0x4700});
  CHECK(results[1].as<std::uint16_t>() == std::vector<std::uint16_t>{0x5220});  // 49
}

// ---- errors

TEST_CASE("transposed convolutions of bfloat16 are not plain ones", "[aten]") {
  // 1 and 2; 3 times 1, 2 and 4: the result is longer than both.
  const auto x = bits16("bfloat16", {1, 1, 1, 2}, {0x3f80, 0x4000});
  const auto w = bits16("bfloat16", {1, 1, 1, 3}, {0x4040, 0x40c0, 0x4140});
  const std::vector<std::pair<std::string, HostTensor>> operands{{"x", x}, {"w", w}};
  const std::vector<Result> y{{"y", {1, 1, 1, 4}, "bfloat16"}};
  const auto expected = bits16("bfloat16", {1, 1, 1, 4}, {0x4040, 0x4140, 0x41c0, 0x41c0});
  CHECK(run(one_node("aten.conv_transpose2d.input", operands, {}, y))[0].bytes == expected.bytes);
  const Json attrs{{"stride", {1, 1}},      {"padding", {0, 0}},        {"dilation", {1, 1}},
                   {"transposed", true},    {"output_padding", {0, 0}}, {"groups", 1},
                   {"_none_args", {"bias"}}};
  CHECK(run(one_node("aten.convolution.default", operands, attrs, y))[0].bytes == expected.bytes);
}

TEST_CASE("errors name node, op and argument", "[aten]") {
  const std::vector<std::pair<std::string, HostTensor>> conv = {{"x", range({1, 1, 3, 3})},
                                                                {"w", range({1, 1, 2, 2})}};
  const Failure type = failure_of(
      one_node("aten.conv2d.default", conv, {{"stride", "same"}}, {{"y", {1, 1, 2, 2}}}));
  CHECK(type.status == NPU_INVALID);
  CHECK(type.text.starts_with("node 'n' (aten.conv2d.default): argument 'stride': expected"));
  const Failure missing =
      failure_of(one_node("aten.softmax.int", {{"x", range({2})}}, {}, {{"y", {2}}}));
  CHECK(missing.text.starts_with("node 'n' (aten.softmax.int): argument 'dim': "));
  const Failure extra =
      failure_of(one_node("aten.relu.default", {{"x", range({2})}}, {{"alpha", 1}}, {{"y", {2}}}));
  CHECK(extra.text.find("alpha") != std::string::npos);
  const Failure run_time = failure_of(one_node(
      "aten.mm.default", {{"x", range({2, 3})}, {"y", range({2, 3})}}, {}, {{"z", {2, 3}}}));
  CHECK(run_time.status == NPU_FAILED);
  CHECK(run_time.text.starts_with("node 'n' (aten.mm.default): "));
  CHECK(run_time.text.ends_with("; arguments: self: float32 [2, 3], mat2: float32 [2, 3]"));
  const Failure dim =
      failure_of(one_node("aten.softmax.int", {{"x", range({2})}}, {{"dim", 5}}, {{"y", {2}}}));
  CHECK(dim.status == NPU_FAILED);
  CHECK(dim.text.ends_with("; arguments: self: float32 [2], dim: 5"));
  const Failure list =
      failure_of(one_node("aten.cat.default", {{"x", range({2, 3})}, {"y", range({2, 2})}},
                          {{"dim", 0}}, {{"z", {4, 3}}}));
  CHECK(list.text.ends_with("; arguments: tensors: [float32 [2, 3], float32 [2, 2]], dim: 0"));
}

TEST_CASE("unknown ops are refused with the nearest names", "[aten]") {
  const auto text = [](const std::string& op_type) {
    const Failure failure = failure_of(one_node(op_type, {{"x", range({2})}}, {}, {{"y", {2}}}));
    CHECK(failure.status == NPU_UNSUPPORTED);
    return failure.text;
  };
  const std::string misspelt = text("aten.sigmoidd.default");
  CHECK(misspelt.starts_with("node 'n' (aten.sigmoidd.default): libtorch "));
  CHECK(misspelt.find("aten.sigmoid.default") != std::string::npos);
  const std::string overload = text("aten.relu.Tensor");
  CHECK(overload.find("overloads of 'aten.relu': default") != std::string::npos);
  CHECK(text("my_op").find("has no such op") != std::string::npos);
  CHECK(text("aten.cudnn_convolution.default").ends_with("has no CPU kernel for this op"));
}

// ---- bodies

TEST_CASE("wrap_with_set_grad_enabled runs the body it is given", "[aten]") {
  Model body;
  body.input("a", range({2}))
      .weight("w", range({2}, 10))
      .node("s", "aten.add.Tensor", {"a", "w"}, {}, {{"s", {2}}})
      .node("r", "aten.neg_.default", {"s"}, {}, {{"r", {2}}})
      .output("r");
  Model model;
  model.input("x", range({2}))
      .weight("w", range({2}, 10))
      .node("g", "wrap_with_set_grad_enabled", {"x"}, {{"body", body.json()}}, {{"y", {2}}})
      .node("m", "aten.mul.Tensor", {"y", "w"}, {}, {{"z", {2}}})
      .output("z");
  // -(0 + 10) * 10, -(1 + 11) * 11
  CHECK(run(model)[0].floats() == std::vector<float>{-100, -132});
}

TEST_CASE("wrap_with_set_grad_enabled without a body hands on its operands", "[aten]") {
  Model model;
  model.input("x", range({2}))
      .input("i", range({3}, 5))
      .node("g", "wrap_with_set_grad_enabled", {"x", "i"}, {{"body", nullptr}},
            {{"y", {2}}, {"j", {3}}})
      .node("m", "aten.neg.default", {"j"}, {}, {{"z", {3}}})
      .output("y")
      .output("z");
  const auto results = run(model);
  CHECK(results[0].floats() == std::vector<float>{0, 1});
  CHECK(results[1].floats() == std::vector<float>{-5, -6, -7});
  const Failure failure =
      failure_of(one_node("wrap_with_set_grad_enabled", {{"x", range({2})}}, {}, {{"y", {3}}}));
  CHECK(failure.status == NPU_UNSUPPORTED);
  CHECK(failure.text.starts_with(
      "node 'n' (wrap_with_set_grad_enabled): its body is not in the document, and its results"));
}

// ---- custom ops

TEST_CASE("custom ops are loaded from a shared object", "[aten]") {
  const std::string options = Json{{"load_ops", {NPU_TEST_CUSTOM_OPS}}}.dump();
  const auto x = range({2, 2});
  CHECK(run(one_node("test.scale", {{"x", x}}, {}, {{"y", {2, 2}}}), options)[0].floats() ==
        std::vector<float>{0, 2, 4, 6});
  CHECK(run(one_node("test.scale", {{"x", x}}, {{"triple", true}}, {{"y", {2, 2}}}), options)[0]
            .floats() == std::vector<float>{0, 3, 6, 9});
  SECTION("operands are row-major, results may be of several dtypes") {
    Model model;
    model.input("x", x)
        .node("t", "aten.t.default", {"x"}, {}, {{"t", {2, 2}}})
        .node("s", "test.scale", {"t"}, {}, {{"s", {2, 2}}})
        .node("u", "test.summary", {"s", "x"}, {}, {{"u_0", {}, "float64"}, {"u_1", {}, "int64"}})
        .output("s")
        .output("u_0")
        .output("u_1");
    const auto results = run(model, options);
    CHECK(results[0].floats() == std::vector<float>{0, 4, 2, 6});
    CHECK(results[1].as<double>() == std::vector<double>{18});
    CHECK(results[2].ints() == std::vector<std::int64_t>{8});
  }
  SECTION("failures") {
    CHECK(failure_of(one_node("test.fail", {{"x", x}}, {}, {{"y", {2, 2}}}), options).text ==
          "node 'n' (test.fail): cannot run on n");
    CHECK(failure_of(one_node("test.forget", {{"x", x}}, {}, {{"y", {2, 2}}}), options).text ==
          "node 'n' (test.forget): the custom op did not allocate result 0");
    CHECK(failure_of(one_node("test.scale", {{"x", x}}, {}, {{"y", {4}}}), options).text ==
          "node 'n' (test.scale): result 'y': expected float32 [4], found float32 [2, 2]");
    CHECK(failure_of(one_node("test.scale", {{"x", i64({1}, {1})}}, {}, {{"y", {1}}}), options)
              .text.starts_with("node 'n' (test.scale): operand 0 has another dtype"));
    CHECK(failure_of(one_node("test.scale", {{"x", x}}, {}, {{"y", {2, 2}}})).status ==
          NPU_UNSUPPORTED);
  }
}

TEST_CASE("a bad shared object of custom ops is refused", "[aten]") {
  const auto text = [](const std::vector<std::string>& paths, const char* fault) {
    ::setenv("NPU_TEST_FAULT", fault, 1);
    std::string found;
    try {
      const Device device(Json{{"load_ops", paths}}.dump());
    } catch (const Failure& failure) {
      CHECK(failure.status == NPU_INVALID);
      found = failure.text;
    }
    ::unsetenv("NPU_TEST_FAULT");
    return found;
  };
  const std::string path = NPU_TEST_BAD_CUSTOM_OPS;
  const std::string file = "custom ops '" + path + "': ";
  CHECK(text({path}, "").empty());
  CHECK(text({"/nonexistent/ops.so"}, "").starts_with("custom ops '/nonexistent/ops.so': "));
  CHECK(text({"libm.so.6"}, "") == "custom ops 'libm.so.6': exports no npu_custom_op_entry");
  CHECK(text({path}, "clash") == file + "the backend has an op 'aten.relu.default' of its own");
  CHECK(text({path}, "version") ==
        file + "was built for version 2 of npu/custom_op.hpp, expected 1");
  CHECK(text({path}, "null") == file + "does not serve version 1 of npu/custom_op.hpp");
  CHECK(text({path}, "twice") == file + "op 'test.two' stands there twice");
  CHECK(text({path}, "function") == file + "op 'test.one' has no function");
  CHECK(text({path, path}, "") == file + "op 'test.one' stands in '" + path + "' already");
}

}  // namespace
}  // namespace npu::test::aten
