// SPDX-License-Identifier: Apache-2.0
// Functions behind a product or a convolution that gives its source: whichever kernel is taken for
// them, they are four units in the last place away at most where a result is 2^-20 of the largest.
#include <algorithm>
#include <cmath>
#include <random>

#include "backends/onednn/onednn_harness.hpp"
#include "catch.hpp"

using namespace npu::test;
using namespace npu::test::onednn;
using npu::Shape;

namespace {

struct Definition {
  const char* op;
  double (*exact)(double);
};

double softplus(double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))); }

double ulp_of(double number) {
  int exponent = 0;
  std::frexp(std::max(std::abs(number), 0x1p-126), &exponent);
  return std::ldexp(1.0, exponent - 24);
}

}  // namespace

TEST_CASE("onednn: functions behind an anchor have their places", "[onednn][ulps]") {
  const auto [op, exact] = GENERATE(
      Definition{"silu", [](double x) { return x / (1.0 + std::exp(-x)); }},
      Definition{"sigmoid", [](double x) { return 1.0 / (1.0 + std::exp(-x)); }},
      Definition{"tanh", [](double x) { return std::tanh(x); }},
      Definition{"elu", [](double x) { return x > 0.0 ? x : std::expm1(x); }},
      Definition{"gelu", [](double x) { return 0.5 * x * std::erfc(-x / std::sqrt(2.0)); }},
      Definition{"mish", [](double x) { return x * std::tanh(softplus(x)); }},
      Definition{"softplus", softplus},
      Definition{"hardswish", [](double x) { return x * std::clamp((x + 3.0) / 6.0, 0.0, 1.0); }},
      Definition{"log", [](double x) { return std::log(x); }},
      Definition{"exp", [](double x) { return std::exp(x); }});
  const bool is_convolution = GENERATE(false, true);
  const Shape shape = is_convolution ? Shape{1, 16, 40, 50} : Shape{2000, 16};
  Array source(shape);
  std::mt19937 random(3);  // NOLINT(cert-msc51-cpp): the same numbers in every run
  std::uniform_real_distribution<float> usual(-16.0F, 8.0F);
  std::uniform_int_distribution<int> exponent(-12, 2);
  for (double& value : source.values) {
    // Some near 0, where 1 + f and f(x) - 1 lose their places; of log near 1.
    const auto number =
        random() % 2 == 0 ? usual(random) : std::ldexp(usual(random) / 16.0F, exponent(random));
    const bool is_log = std::string(op) == "log";
    value = static_cast<double>(is_log ? 1.0F + std::abs(number) / 8.0F : number);
  }
  Array identity(is_convolution ? Shape{16, 16, 1, 1} : Shape{16, 16});
  for (std::size_t i = 0; i < 16; ++i) identity.values[i * 17] = 1.0;
  Array expected = source;
  for (double& value : expected.values) value = exact(value);
  Model model(NPU_FLOAT32);
  model.input("x", source);
  model.weight("w", identity);
  model.node("p", is_convolution ? "aten.conv2d.default" : "aten.linear.default", {"x", "w"});
  model.node("y", "aten." + std::string(op) + ".default", {"p"});
  model.output("y");
  const Device device = open_device();
  const Compiled compiled = compile(device.get(), model);
  REQUIRE(compiled.status == NPU_OK);
  const Array found = decode(run_once(device.get(), compiled, model).front());
  double largest = 0.0;
  for (const double value : expected.values) largest = std::max(largest, std::abs(value));
  double worst = 0.0;
  double at = 0.0;
  for (std::size_t i = 0; i < expected.values.size(); ++i) {
    if (std::abs(expected.values[i]) < 0x1p-20 * largest) continue;
    const double error =
        std::abs(found.values[i] - expected.values[i]) / ulp_of(expected.values[i]);
    if (error > worst) {
      worst = error;
      at = source.values[i];
    }
  }
  INFO(op << " of " << at << " behind a " << (is_convolution ? "convolution" : "product"));
  CHECK(worst <= 4.0);
}
