// SPDX-License-Identifier: Apache-2.0
// Every pair of functions behind a convolution, a product or a transposed convolution, in float32,
// bfloat16, float16 and int8, against float64. A list of post-ops holds functions by their
// algorithm, so it is pairs that go wrong: the second is computed with the numbers of the first.
//
// A run takes a tenth of the pairs: those of the seed NPU_FUNCTION_PAIRS, 0 if there is none; ten
// seeds in a row take all of them once, and so does NPU_FUNCTION_PAIRS=all.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "backends/onednn/onednn_harness.hpp"
#include "backends/reference_ops.hpp"
#include "catch.hpp"
#include "graph_builder.hpp"
#include "npu/compile/compiler.hpp"
#include "npu/partition/partition_plan.hpp"
#include "npu/passes/fuse.hpp"
#include "npu/passes/tag.hpp"
#include "npu/runtime/executor.hpp"
#include "npu/target/target.hpp"
#include "npu/tensor/tensor.hpp"
#include "test_paths.hpp"

namespace npu {
namespace {

using test::Array;
using test::GraphBuilder;

struct Function {
  std::string op;
  Json attrs;
  std::function<double(double)> value;
};

double logistic(double x) { return 1.0 / (1.0 + std::exp(-x)); }

Function leaky_relu(double slope) {
  return {"aten.leaky_relu.default", {{"negative_slope", slope}}, [=](double x) {
            return x < 0 ? x * slope : x;
          }};
}
Function clamp(double low, double high) {
  return {"aten.clamp.default", {{"min", low}, {"max", high}}, [=](double x) {
            return std::clamp(x, low, high);
          }};
}
Function elu(double alpha) {
  return {"aten.elu.default", {{"alpha", alpha}}, [=](double x) {
            return x < 0 ? alpha * std::expm1(x) : x;
          }};
}
Function celu(double alpha) {
  return {"aten.celu.default", {{"alpha", alpha}}, [=](double x) {
            return x < 0 ? alpha * std::expm1(x / alpha) : x;
          }};
}
Function number(const std::string& name, double other,
                const std::function<double(double, double)>& value) {
  return {
      "aten." + name + ".Tensor", {{"other", other}}, [=](double x) { return value(x, other); }};
}

/// Those with numbers twice, each time with others.
std::vector<Function> functions() {
  const Json none = Json::object();
  std::vector<Function> all;
  for (const bool second : {false, true}) {
    const auto either = [&](double a, double b) { return second ? b : a; };
    all.push_back(leaky_relu(either(0.125, 0.75)));
    all.push_back(clamp(either(-0.5, -1.25), either(0.75, 0.25)));
    all.push_back(elu(either(0.5, 1.75)));
    all.push_back(celu(either(0.5, 1.5)));
    all.push_back(number("mul", either(0.3, -1.75), std::multiplies<>()));
    all.push_back(number("add", either(0.4, -0.875), std::plus<>()));
    all.push_back(number("sub", either(0.25, -0.625), std::minus<>()));
    all.push_back(number("div", either(1.6, -0.7), std::divides<>()));
  }
  const double root = std::sqrt(2.0 / std::acos(-1.0));
  all.push_back({"aten.relu.default", none, [](double x) { return std::max(x, 0.0); }});
  all.push_back({"aten.relu6.default", none, [](double x) { return std::clamp(x, 0.0, 6.0); }});
  all.push_back({"aten.hardtanh.default", none, [](double x) { return std::clamp(x, -1.0, 1.0); }});
  all.push_back({"aten.silu.default", none, [](double x) { return x * logistic(x); }});
  all.push_back({"aten.sigmoid.default", none, logistic});
  all.push_back({"aten.tanh.default", none, [](double x) { return std::tanh(x); }});
  all.push_back({"aten.hardswish.default", none,
                 [](double x) { return x * std::clamp(x / 6 + 0.5, 0.0, 1.0); }});
  all.push_back({"aten.hardsigmoid.default", none,
                 [](double x) { return std::clamp(x / 6 + 0.5, 0.0, 1.0); }});
  all.push_back({"aten.gelu.default", {{"approximate", "tanh"}}, [=](double x) {
                   return 0.5 * x * (1 + std::tanh(root * (x + 0.044715 * x * x * x)));
                 }});
  all.push_back({"aten.gelu.default", none,
                 [](double x) { return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0))); }});
  all.push_back({"aten.selu.default", none, [](double x) {
                   const double scale = 1.0507009873554805;
                   return x > 0 ? scale * x : scale * 1.6732632423543772 * std::expm1(x);
                 }});
  all.push_back(
      {"aten.mish.default", none, [](double x) { return x * std::tanh(std::log1p(std::exp(x))); }});
  all.push_back({"aten.abs.default", none, [](double x) { return std::fabs(x); }});
  all.push_back({"aten.neg.default", none, [](double x) { return -x; }});
  all.push_back({"aten.square.default", none, [](double x) { return x * x; }});
  return all;
}

/// x and w are multiples of 1/8 and 1/16, which every dtype holds.
struct PairedLayer {
  std::string op;
  Shape source;
  Shape weight;
  Json attrs;
  Shape result;
  bool in_int8 = true;
};

const PairedLayer kLayers[] = {
    {"aten.conv2d.default", {1, 16, 6, 6}, {16, 16, 3, 3}, {{"padding", {1, 1}}}, {1, 16, 6, 6}},
    {"aten.conv2d.default", {2, 12, 5, 5}, {20, 12, 1, 1}, Json::object(), {2, 20, 5, 5}},
    {"aten.conv2d.default",
     {1, 16, 7, 7},
     {16, 1, 3, 3},
     {{"padding", {1, 1}}, {"groups", 16}},
     {1, 16, 7, 7}},
    {"aten.conv1d.default", {1, 3, 20}, {7, 3, 4}, Json::object(), {1, 7, 17}},
    {"aten.conv_transpose2d.input",
     {1, 16, 4, 4},
     {16, 8, 3, 3},
     {{"stride", {2, 2}}},
     {1, 8, 9, 9}},
    {"aten.conv_transpose2d.input",
     {1, 16, 4, 4},
     {16, 16, 2, 2},
     {{"stride", {2, 2}}},
     {1, 16, 8, 8}},
    {"aten.linear.default", {5, 16}, {32, 16}, Json::object(), {5, 32}},
    {"aten.linear.default", {3, 13}, {7, 13}, Json::object(), {3, 7}},
    {"aten.matmul.default", {2, 3, 5, 6}, {2, 3, 6, 9}, Json::object(), {2, 3, 5, 9}, false},
};

Array multiples(const Shape& shape, std::uint32_t seed, int most, double unit) {
  return test::map_values(test::random_array(shape, seed), [&](double x) {
    return std::clamp(std::round(x * most / 2), double(-most), double(most)) * unit;
  });
}

/// As a convolution of the source with zeros between its pixels.
Array convolve_transposed(const Array& x, const Array& w, std::int64_t stride) {
  const std::int64_t taps = w.shape[2];
  Array wide(
      {x.shape[0], x.shape[1], (x.shape[2] - 1) * stride + 1, (x.shape[3] - 1) * stride + 1});
  test::for_each(x.shape, [&](const test::Index& i) {
    wide.at({i[0], i[1], i[2] * stride, i[3] * stride}) = x.at(i);
  });
  Array turned({w.shape[1], w.shape[0], taps, taps});
  test::for_each(w.shape, [&](const test::Index& i) {
    turned.at({i[1], i[0], taps - 1 - i[2], taps - 1 - i[3]}) = w.at(i);
  });
  return test::convolve(wide, turned, nullptr,
                        {.pad_begin = {taps - 1, taps - 1}, .pad_end = {taps - 1, taps - 1}});
}

Array reference(const PairedLayer& layer, Array x, Array w) {
  if (layer.op.find("linear") != std::string::npos) return test::multiply(x, test::swap_last(w));
  if (layer.op.find("matmul") != std::string::npos) return test::multiply(x, w);
  if (layer.op.find("transpose") != std::string::npos) return convolve_transposed(x, w, 2);
  test::ConvArguments arguments;
  if (layer.source.size() == 3) {
    x.shape.insert(x.shape.begin() + 2, 1);
    w.shape.insert(w.shape.begin() + 2, 1);
  }
  if (layer.attrs.contains("padding")) arguments.pad_begin = arguments.pad_end = {1, 1};
  arguments.groups = layer.attrs.value("groups", 1);
  Array result = test::convolve(x, w, nullptr, arguments);
  result.shape = layer.result;
  return result;
}

/// Where a result may be.
struct Range {
  double low;
  double high;
};

struct Precision {
  std::string dtype;    ///< of the document's tensors, or int8
  std::string compute;  ///< the option
  double unit;          ///< to which a result may be rounded, relative
};

/// One function on all values of a range. `unit`: of the result's rounding. The functions' own
/// errors are for other tests.
Range after(const Function& function, Range from, double unit) {
  constexpr double kFunctionError = 1.0 / 65536;
  std::vector<double> values;
  for (const double x : {from.low, (from.low + from.high) / 2, from.high}) {
    values.push_back(function.value(x));
  }
  if (from.low < 0 && from.high > 0) values.push_back(function.value(0));
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  const double size = std::max({std::fabs(*low), std::fabs(*high), 1.0});
  const double curve = (from.high - from.low) * (from.high - from.low);  // between the points
  const double error = curve + (unit + kFunctionError) * size;
  return {*low - error, *high + error};
}

struct FunctionPair {
  const Function* first;
  const Function* second;
};

/// The pairs of this run.
std::vector<FunctionPair> chains_of(const std::vector<Function>& all, std::size_t layer) {
  const char* setting = std::getenv("NPU_FUNCTION_PAIRS");
  const std::string which = setting == nullptr ? "0" : setting;
  const auto seed = static_cast<std::size_t>(std::strtoul(which.c_str(), nullptr, 10));
  std::vector<FunctionPair> chains;
  for (std::size_t i = 0; i < all.size() * all.size(); ++i) {
    if (which != "all" && (i + layer + seed) % 10 != 0) continue;
    chains.push_back({&all[i / all.size()], &all[i % all.size()]});
  }
  return chains;
}

Tensor tensor_of(const TensorInfo& info, const Array& values) {
  Tensor tensor(info.dtype, info.shape);
  for (std::int64_t i = 0; i < tensor.element_count(); ++i) {
    const auto value = static_cast<float>(values.values[static_cast<std::size_t>(i)]);
    switch (info.dtype) {
      case DType::kFloat32:
        tensor.as_mutable<float>()[i] = value;
        break;
      case DType::kBFloat16:
        tensor.as_mutable<std::uint16_t>()[i] = float_to_bfloat16(value);
        break;
      case DType::kFloat16:
        tensor.as_mutable<std::uint16_t>()[i] = float_to_float16(value);
        break;
      case DType::kUInt8:
        tensor.as_mutable<std::uint8_t>()[i] = static_cast<std::uint8_t>(value * 8 + 128);
        break;
      default:
        tensor.as_mutable<std::int8_t>()[i] = static_cast<std::int8_t>(value * 16);
    }
  }
  return tensor;
}

/// Layers with functions behind them, each with an input of its own, on the npu.
class Network {
 public:
  Network(const PairedLayer& layer, Precision precision)
      : layer_(layer),
        precision_(std::move(precision)),
        x_(multiples(layer.source, 3, 16, 0.125)),
        w_(multiples(layer.weight, 5, 4, 0.0625)) {
    const auto size = [](double value) { return std::fabs(value); };
    const Array products = reference(layer, test::map_values(x_, size), test::map_values(w_, size));
    sums_ = reference(layer, x_, w_);
    for (std::size_t i = 0; i < sums_.values.size(); ++i) {
      // Winograd's filters round more than a sum does.
      errors_.push_back(products.values[i] / (1 << 18) +
                        std::fabs(sums_.values[i]) * precision_.unit);
    }
    if (layer.op == "aten.matmul.default") {
      builder_.input("p_w", layer.weight, precision_.dtype);
    } else {
      builder_.weight("w", layer.weight, in_int8() ? "int8" : precision_.dtype);
    }
  }

  void add(const FunctionPair& chain) {
    const std::string number = std::to_string(chains_.size());
    std::string x = "x" + number;
    std::string w = "p_w";
    const std::string dtype = in_int8() ? "float32" : precision_.dtype;
    builder_.input(x, layer_.source, in_int8() ? "uint8" : precision_.dtype);
    if (in_int8()) {
      x = dequantized(x, 0.125, 128, "uint8", layer_.source);
      w = dequantized(w, 0.0625, 0, "int8", layer_.weight, number);
    }
    builder_.node("c" + number, layer_.op, {x, w}, layer_.result, layer_.attrs, dtype);
    const auto apply = [&](const std::string& name, const Function& function,
                           const std::string& from) {
      builder_.node(name, function.op, {from}, layer_.result, function.attrs, dtype);
    };
    apply("f" + number, *chain.first, "c" + number);
    apply("g" + number, *chain.second, "f" + number);
    std::string last = "g" + number;
    if (in_int8()) {
      const Step step = step_of(chain);
      builder_.node("q" + number, kLibrary + "quantize_per_tensor.default", {last}, layer_.result,
                    numbers(step.scale, step.zero_point, "uint8"), "uint8");
      last = "q" + number;
    }
    builder_.output(last);
    chains_.push_back(chain);
  }

  std::size_t size() const { return chains_.size(); }

  void check() {
    const std::vector<Tensor> results = run();
    for (std::size_t i = 0; i < chains_.size(); ++i) {
      INFO(layer_.op << ' ' << shape_text(layer_.weight) << ' ' << precision_.dtype << ' '
                     << precision_.compute << ": " << chains_[i].first->op
                     << chains_[i].first->attrs.dump() << ", " << chains_[i].second->op
                     << chains_[i].second->attrs.dump());
      CHECK(fault_of(chains_[i], results[i]).empty());
    }
  }

 private:
  inline static const std::string kLibrary = "quantized_decomposed.";
  struct Step {
    double scale = 0.0;
    std::int64_t zero_point = 0;
  };

  bool in_int8() const { return precision_.dtype == "int8"; }

  static Json numbers(double scale, std::int64_t zero_point, const std::string& dtype) {
    const bool is_signed = dtype == "int8";
    return {{"scale", scale},
            {"zero_point", zero_point},
            {"quant_min", is_signed ? -127 : 0},
            {"quant_max", is_signed ? 127 : 255},
            {"dtype", "torch." + dtype}};
  }

  std::string dequantized(const std::string& from, double scale, std::int64_t zero_point,
                          const std::string& dtype, const Shape& shape,
                          const std::string& suffix = "") {
    const std::string name = "d_" + from + suffix;
    builder_.node(name, kLibrary + "dequantize_per_tensor.default", {from}, shape,
                  numbers(scale, zero_point, dtype), "float32");
    return name;
  }

  Range range_of(const FunctionPair& chain, std::size_t i) const {
    // In int8 the sums are exact.
    const double error = in_int8() ? 1e-6 : errors_[i];
    const Range sum{sums_.values[i] - error, sums_.values[i] + error};
    return after(*chain.second, after(*chain.first, sum, precision_.unit), precision_.unit);
  }

  /// The scale that the results fill.
  Step step_of(const FunctionPair& chain) const {
    double low = 0.0;
    double high = 1.0 / 64;
    for (std::size_t i = 0; i < sums_.values.size(); ++i) {
      low = std::min(low, range_of(chain, i).low);
      high = std::max(high, range_of(chain, i).high);
    }
    const double scale = static_cast<double>(static_cast<float>((high - low) / 255));
    return {scale, std::llround(-low / scale)};
  }

  std::string fault_of(const FunctionPair& chain, const Tensor& result) const {
    const Step step = in_int8() ? step_of(chain) : Step{};
    for (std::int64_t i = 0; i < result.element_count(); ++i) {
      Range range = range_of(chain, static_cast<std::size_t>(i));
      double value = result.value_as_double(i);
      if (in_int8()) {
        value = (value - static_cast<double>(step.zero_point)) * step.scale;
        range = {range.low - 0.51 * step.scale, range.high + 0.51 * step.scale};
      }
      if (value >= range.low && value <= range.high) continue;
      return "element " + std::to_string(i) + " is " + std::to_string(value) + ", expected " +
             std::to_string(range.low) + " to " + std::to_string(range.high);
    }
    return {};
  }

  std::vector<Tensor> run() {
    Graph graph = builder_.build();
    const Target target = load_target("host");
    Diagnostics diagnostics;
    tag_ops(graph, target, {}, diagnostics);  // the target's patterns are what fuses
    for (Node& node : graph.nodes()) node.device = "npu";
    fuse_ops(graph, {}, diagnostics);
    REQUIRE(test::errors_of(diagnostics).empty());
    std::vector<Tensor> weights(graph.tensors().size());
    std::vector<Tensor> inputs;
    for (std::size_t t = 0; t < weights.size(); ++t) {
      const TensorInfo& info = graph.tensors()[t];
      if (info.kind == TensorKind::kWeight) weights[t] = tensor_of(info, w_);
    }
    for (const TensorId id : graph.graph_inputs()) {
      const TensorInfo& info = graph.tensor(id);
      inputs.push_back(tensor_of(info, info.name == "p_w" ? w_ : x_));
    }
    const PartitionPlan plan = single_partition_plan(graph, "npu");
    CompileOptions options;
    options.precision = precision_.compute;
    options.fallback = false;
    const CompiledModel model = compile_graph(graph, plan, target, weights, options, nullptr);
    return Executor(graph, plan, target, weights, {.threads = 1}, model.partitions, {})
        .run(inputs, nullptr);
  }

  PairedLayer layer_;
  Precision precision_;
  Array x_;
  Array w_;
  Array sums_;
  std::vector<double> errors_;
  GraphBuilder builder_;
  std::vector<FunctionPair> chains_;
};

}  // namespace

TEST_CASE("every pair of functions behind a layer is computed with its own numbers",
          "[onednn][fusion]") {
  if (!test::use_backends()) return;
  constexpr std::size_t kChains = 24;  // of a network
  const Precision precisions[] = {{"float32", "f32", 0x1p-23},
                                  {"float32", "f16", 0x1p-11},
                                  {"bfloat16", "f32", 0x1p-8},
                                  {"float16", "f32", 0x1p-11},
                                  {"int8", "f32", 0x1p-23}};
  const std::vector<Function> all = functions();
  for (std::size_t i = 0; i < std::size(kLayers); ++i) {
    for (const Precision& precision : precisions) {
      if (precision.dtype == "int8" && !kLayers[i].in_int8) continue;
      if (precision.compute == "f16" && !test::onednn::has_avx2()) continue;  // which it needs
      std::vector<FunctionPair> chains = chains_of(all, i);
      for (std::size_t begin = 0; begin < chains.size(); begin += kChains) {
        Network network(kLayers[i], precision);
        for (std::size_t j = begin; j < std::min(begin + kChains, chains.size()); ++j) {
          network.add(chains[j]);
        }
        network.check();
      }
    }
  }
}

}  // namespace npu
