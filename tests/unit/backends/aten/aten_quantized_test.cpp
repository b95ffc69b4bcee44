// SPDX-License-Identifier: Apache-2.0
// The quantized_decomposed ops of the aten backend. Expected numbers are written beside their
// arithmetic; those of divide_by_scale are ONNX's, the others PyTorch's.
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "backends/aten/aten_harness.hpp"
#include "catch.hpp"

namespace npu::test::aten {
namespace {

const std::string kPrefix = "quantized_decomposed.";

struct Range {
  std::string dtype;
  std::int64_t low;
  std::int64_t high;
};

Json range_attrs(const Range& range) {
  return {{"quant_min", range.low}, {"quant_max", range.high}, {"dtype", "torch." + range.dtype}};
}

const Range kUInt8{"uint8", 0, 255};
const Range kInt8{"int8", -128, 127};
const Range kInt16{"int16", -32768, 32767};
const Range kInt32{"int32", std::numeric_limits<std::int32_t>::min(),
                   std::numeric_limits<std::int32_t>::max()};

HostTensor quantized(const HostTensor& x, double scale, std::int64_t zero, const Range& range,
                     bool divides) {
  Json attrs = range_attrs(range);
  attrs["scale"] = scale;
  attrs["zero_point"] = zero;
  if (divides) attrs["divide_by_scale"] = true;
  return run(one_node(kPrefix + "quantize_per_tensor.default", {{"x", x}}, attrs,
                      {{"y", x.shape, range.dtype}}))[0];
}

constexpr double kTenth = 0.10000000149011612;  // 0.1 in float32

}  // namespace

TEST_CASE("quantized: ties go to even", "[aten]") {
  const auto x = f32({8}, {-2.5F, -1.5F, -0.5F, 0.5F, 1.5F, 2.5F, 3.5F, 0.49999997F});
  const std::vector<std::int8_t> even{-2, -2, 0, 0, 2, 2, 4, 0};
  CHECK(quantized(x, 1, 0, kInt8, true).as<std::int8_t>() == even);
  CHECK(quantized(x, 1, 0, kInt8, false).as<std::int8_t>() == even);
  // The zero point is added to the rounded number: 0.5 is 0 + 1, not 1.5 rounded.
  CHECK(quantized(x, 1, 1, kInt8, true).as<std::int8_t>() ==
        std::vector<std::int8_t>{-1, -1, 1, 1, 3, 3, 5, 1});
}

TEST_CASE("quantized: a quotient and a product with the reciprocal round differently", "[aten]") {
  // 3.2500002 / 0.1 is 32.500000 in float32, a tie, and 3.2500002 * 10 is 32.500004.
  const auto x = f32({2}, {3.250000238418579F, -7.250000476837158F});
  CHECK(quantized(x, kTenth, 0, kInt8, true).as<std::int8_t>() ==
        std::vector<std::int8_t>{32, -72});
  CHECK(quantized(x, kTenth, 0, kInt8, false).as<std::int8_t>() ==
        std::vector<std::int8_t>{33, -73});
  for (const bool divides : {true, false}) {
    Json attrs = range_attrs(kInt8);
    if (divides) attrs["divide_by_scale"] = true;
    const std::vector<std::int8_t> expected =
        divides ? std::vector<std::int8_t>{32, -72} : std::vector<std::int8_t>{33, -73};
    const std::vector<std::pair<std::string, HostTensor>> one{
        {"x", x}, {"s", f32({}, {0.1F})}, {"z", i64({}, {0})}};
    CHECK(run(one_node(kPrefix + "quantize_per_tensor.tensor", one, attrs, {{"y", {2}, "int8"}}))[0]
              .as<std::int8_t>() == expected);
    attrs["axis"] = -1;
    const std::vector<std::pair<std::string, HostTensor>> two{
        {"x", x}, {"s", f32({2}, {0.1F, 0.1F})}, {"z", i64({2}, {0, 0})}};
    CHECK(
        run(one_node(kPrefix + "quantize_per_channel.default", two, attrs, {{"y", {2}, "int8"}}))[0]
            .as<std::int8_t>() == expected);
  }
}

TEST_CASE("quantized: results saturate in every dtype, at both ends of its zero points", "[aten]") {
  const auto x = f32({5}, {-1e9F, -1, 0, 1, 1e9F});
  for (const bool divides : {true, false}) {
    CHECK(quantized(x, 1, 0, kUInt8, divides).as<std::uint8_t>() ==
          std::vector<std::uint8_t>{0, 0, 0, 1, 255});
    CHECK(quantized(x, 1, 255, kUInt8, divides).as<std::uint8_t>() ==
          std::vector<std::uint8_t>{0, 254, 255, 255, 255});
    CHECK(quantized(x, 1, -128, kInt8, divides).as<std::int8_t>() ==
          std::vector<std::int8_t>{-128, -128, -128, -127, 127});
    CHECK(quantized(x, 1, 127, kInt8, divides).as<std::int8_t>() ==
          std::vector<std::int8_t>{-128, 126, 127, 127, 127});
    CHECK(quantized(x, 1, -32768, kInt16, divides).as<std::int16_t>() ==
          std::vector<std::int16_t>{-32768, -32768, -32768, -32767, 32767});
    CHECK(quantized(x, 1, 32767, kInt16, divides).as<std::int16_t>() ==
          std::vector<std::int16_t>{-32768, 32766, 32767, 32767, 32767});
    // Four bits in a byte.
    CHECK(quantized(x, 1, 0, {"int8", -8, 7}, divides).as<std::int8_t>() ==
          std::vector<std::int8_t>{-8, -1, 0, 1, 7});
  }
  CHECK(quantized(f32({3}, {-1e20F, 5, 1e20F}), 1, 0, kInt32, true).as<std::int32_t>() ==
        std::vector<std::int32_t>{std::numeric_limits<std::int32_t>::min(), 5,
                                  std::numeric_limits<std::int32_t>::max()});
}

TEST_CASE("quantized: infinities saturate, and ONNX's NaN is the least number", "[aten]") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const auto x = f32({4}, {-kInfinity, kInfinity, nan, 2});
  CHECK(quantized(x, 0.5, 3, kUInt8, true).as<std::uint8_t>() ==
        std::vector<std::uint8_t>{0, 255, 0, 7});
  CHECK(quantized(x, 0.5, 3, kInt8, true).as<std::int8_t>() ==
        std::vector<std::int8_t>{-128, 127, -128, 7});
  const auto bounded = f32({3}, {-kInfinity, kInfinity, 2});
  CHECK(quantized(bounded, 0.5, 3, kInt8, false).as<std::int8_t>() ==
        std::vector<std::int8_t>{-128, 127, 7});
  // A scale of zero divides to infinities.
  CHECK(quantized(f32({2}, {-1, 1}), 0, 0, kInt8, true).as<std::int8_t>() ==
        std::vector<std::int8_t>{-128, 127});
}

TEST_CASE("quantized: halves are divided as halves, and multiplied as float32", "[aten]") {
  // 0x3c00 is 1, 0x2e66 is 0.0999756: the quotient 10.0024 is 10 as a half.
  const auto x = bits16("float16", {1}, {0x3c00});
  CHECK(quantized(x, 0.0999755859375, 0, kInt8, true).as<std::int8_t>() ==
        std::vector<std::int8_t>{10});
  CHECK(quantized(x, 0.0999755859375, 0, kInt8, false).as<std::int8_t>() ==
        std::vector<std::int8_t>{10});
  // 2049 steps of 1 plus 1 are more than halves hold, but not more than int16 does.
  const auto large = bits16("float16", {1}, {0x6800});  // 2048
  CHECK(quantized(large, 1, 1, kInt16, true).as<std::int16_t>() == std::vector<std::int16_t>{2049});
}

TEST_CASE("quantized: channels of any axis, with zero points of the quantized dtype", "[aten]") {
  const auto x = f32({2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  Json attrs = range_attrs(kInt8);
  attrs["divide_by_scale"] = true;
  attrs["axis"] = -2;
  const std::vector<std::pair<std::string, HostTensor>> operands{
      {"x", x}, {"s", f32({2}, {1, 0.5F})}, {"z", make<std::int8_t>("int8", {2}, {-128, 100})}};
  const auto y = run(one_node(kPrefix + "quantize_per_channel.default", operands, attrs,
                              {{"y", {2, 2, 2}, "int8"}}))[0];
  // 3 / 0.5 + 100 = 106, and so on.
  CHECK(y.as<std::int8_t>() ==
        std::vector<std::int8_t>{-127, -126, 106, 108, -123, -122, 114, 116});
  attrs.erase("divide_by_scale");
  // -127 - -128 is 1 and 106 - 100 is 6, without wrapping in int8.
  const auto back =
      run(one_node(kPrefix + "dequantize_per_channel.default", {{"y", y}, operands[1], operands[2]},
                   attrs, {{"x", {2, 2, 2}}}))[0];
  CHECK(back.floats() == x.floats());
  // Without zero points, in float64.
  attrs["out_dtype"] = "torch.float64";
  const auto wide = run(one_node(kPrefix + "dequantize_per_channel.default",
                                 {{"y", y}, {"s", make<double>("float64", {2}, {0.1, 0.5})}}, attrs,
                                 {{"x", {2, 2, 2}, "float64"}}))[0];
  CHECK(wide.as<double>()[0] == -127 * 0.1);
  attrs["axis"] = 3;
  CHECK(failure_of(one_node(kPrefix + "dequantize_per_channel.default",
                            {{"y", y}, operands[1], operands[2]}, attrs, {{"x", {2, 2, 2}}}))
            .text.find("axis is 3, but the operand has rank 3") != std::string::npos);
  attrs["axis"] = 0;
  CHECK(failure_of(one_node(kPrefix + "dequantize_per_channel.default",
                            {{"y", y}, {"s", f32({3}, {1, 1, 1})}}, attrs, {{"x", {2, 2, 2}}}))
            .text.find("scales has shape [3], expected [2]") != std::string::npos);
}

TEST_CASE("quantized: back to float", "[aten]") {
  const auto x = make<std::uint8_t>("uint8", {3}, {0, 128, 255});
  Json attrs = range_attrs(kUInt8);
  attrs["scale"] = kTenth;
  attrs["zero_point"] = 255;
  const std::string op = kPrefix + "dequantize_per_tensor.default";
  CHECK(run(one_node(op, {{"x", x}}, attrs, {{"y", {3}}}))[0].floats() ==
        std::vector<float>{-255 * 0.1F, -127 * 0.1F, 0});
  attrs["out_dtype"] = "torch.float64";
  CHECK(run(one_node(op, {{"x", x}}, attrs, {{"y", {3}, "float64"}}))[0].as<double>() ==
        std::vector<double>{-255 * kTenth, -127 * kTenth, 0});
  attrs["dtype"] = "torch.int8";
  CHECK(failure_of(one_node(op, {{"x", x}}, attrs, {{"y", {3}, "float64"}}))
            .text.find("dtype is Char, but the operand is Byte") != std::string::npos);
}

TEST_CASE("quantized: tokens and groups add the zero point before they round", "[aten]") {
  Json attrs = range_attrs(kInt8);
  const std::vector<std::pair<std::string, HostTensor>> operands{
      {"x", f32({2, 2}, {0.5F, 1.5F, 3, 5})},
      {"s", f32({2, 1}, {1, 2})},
      {"z", make<std::int32_t>("int32", {2, 1}, {1, 0})}};
  // 0.5 + 1 rounds to 2, 1.5 + 1 to 2; 3 / 2 to 2, 5 / 2 to 2.
  const std::vector<std::int8_t> expected{2, 2, 2, 2};
  const auto by_token = run(one_node(kPrefix + "quantize_per_token.default", operands, attrs,
                                     {{"y", {2, 2}, "int8"}}))[0];
  CHECK(by_token.as<std::int8_t>() == expected);
  attrs["group_size"] = 2;
  CHECK(run(one_node(kPrefix + "quantize_per_channel_group.default", operands, attrs,
                     {{"y", {2, 2}, "int8"}}))[0]
            .as<std::int8_t>() == expected);
  attrs["output_dtype"] = "torch.float32";
  const std::vector<std::pair<std::string, HostTensor>> back{
      {"x", by_token}, operands[1], operands[2]};
  CHECK(run(one_node(kPrefix + "dequantize_per_channel_group.default", back, attrs,
                     {{"y", {2, 2}}}))[0]
            .floats() == std::vector<float>{1, 1, 4, 4});
  attrs.erase("group_size");
  CHECK(run(one_node(kPrefix + "dequantize_per_token.default", back, attrs, {{"y", {2, 2}}}))[0]
            .floats() == std::vector<float>{1, 1, 4, 4});
}

TEST_CASE("quantized: scales and zero points that are chosen at run time", "[aten]") {
  Json attrs{{"quant_min", -128}, {"quant_max", 127}, {"eps", 1e-5}, {"dtype", "torch.int8"}};
  const std::vector<Result> results{{"s", {1}, "float64"}, {"z", {1}, "int64"}};
  // (3 - -2) / 255; the zero point -128 - round(-2 / scale) = -128 + 102.
  const auto affine = run(
      one_node(kPrefix + "choose_qparams.tensor", {{"x", f32({3}, {-2, 1, 3})}}, attrs, results));
  CHECK(affine[0].as<double>()[0] == static_cast<double>(5.0F / 255.0F));
  CHECK(affine[1].ints() == std::vector<std::int64_t>{-26});
  const auto symmetric = run(one_node(kPrefix + "choose_qparams_symmetric.tensor",
                                      {{"x", f32({3}, {-2, 1, 3})}}, attrs, results));
  CHECK(symmetric[0].as<double>()[0] == static_cast<double>(3.0F / 127.5F));
  CHECK(symmetric[1].ints() == std::vector<std::int64_t>{0});
  // Nothing but zeros: the smallest scale.
  const auto none =
      run(one_node(kPrefix + "choose_qparams.tensor", {{"x", f32({2}, {0, 0})}}, attrs, results));
  CHECK(none[0].as<double>()[0] == static_cast<double>(1e-5F));
}

TEST_CASE("quantized: what cannot be is refused", "[aten]") {
  const auto text = [](const Range& range, double scale, bool divides) {
    Json attrs = range_attrs(range);
    attrs["scale"] = scale;
    attrs["zero_point"] = 0;
    if (divides) attrs["divide_by_scale"] = true;
    return failure_of(one_node(kPrefix + "quantize_per_tensor.default", {{"x", f32({1}, {1})}},
                               attrs, {{"y", {1}, range.dtype}}))
        .text;
  };
  CHECK(text({"uint8", 0, 256}, 1, true)
            .find("quant_min and quant_max are 0 and 256, which is no range within 0 to 255") !=
        std::string::npos);
  CHECK(text({"float32", 0, 1}, 1, true).find("dtype is Float, expected uint8") !=
        std::string::npos);
  CHECK(text(kInt8, 0, false).find("scale is 0, expected another number") != std::string::npos);
}

}  // namespace npu::test::aten
