// SPDX-License-Identifier: Apache-2.0
// Chains of one to six element-wise ops behind a convolution, a product or a transposed
// convolution, against float64: functions, and arithmetic with numbers and with tensors of one
// element, one for each channel, for each pixel or for each element, which may also be larger than
// the result in front of them; with results in between that are read twice or returned.
//
// NPU_CHAIN_CASES sets their number, NPU_CHAIN_SEED the seed.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "backends/reference_ops.hpp"
#include "backends/two_devices.hpp"
#include "catch.hpp"
#include "graph_builder.hpp"
#include "npu/compile/compiler.hpp"
#include "npu/partition/partition_plan.hpp"
#include "npu/passes/fuse.hpp"
#include "npu/passes/tag.hpp"
#include "npu/runtime/executor.hpp"
#include "npu/target/target.hpp"
#include "test_paths.hpp"

namespace npu {
namespace {

using test::Array;

int chain_setting(const char* name, int otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::atoi(text);
}

/// Where the elements of a tensor may be.
struct Bounds {
  Array low;
  Array high;
};

/// A document with its values, which grows at its end.
class ChainDocument {
 public:
  explicit ChainDocument(unsigned seed) : random_(seed) {}

  void run() {
    add_anchor();
    const auto length = 1 + random_() % 6;
    for (std::size_t i = 0; i < length; ++i) {
      add_op();
      if (random_() % 6 == 0) give(last_);  // also read behind it
    }
    give(last_);
    check();
  }

 private:
  std::int64_t one_of(std::initializer_list<std::int64_t> values) {
    return values.begin()[random_() % values.size()];
  }
  std::string fresh(const char* prefix) { return prefix + std::to_string(next_++); }

  /// Multiples of 1/8, as an input or, at times, a weight; its name.
  std::string tensor(const Shape& shape, Array& values, int most, bool may_be_weight = true) {
    values = test::map_values(
        test::random_array(shape, static_cast<std::uint32_t>(random_())), [&](double x) {
          return std::clamp(std::round(x * most / 2), double(-most), double(most)) / 8;
        });
    std::string name = fresh("t");
    if (may_be_weight && random_() % 2 == 0) {
      graph_.weight(name, shape);
      values_.push_back({"p_" + name, values});
      return "p_" + name;
    }
    graph_.input(name, shape);
    values_.push_back({name, values});
    return name;
  }

  void add_anchor() {
    Array x;
    Array w;
    const auto kind = random_() % 4;
    const std::int64_t batch = one_of({1, 2});
    const std::int64_t inputs = one_of({3, 8, 16, 32});
    const std::int64_t outputs = one_of({1, 5, 16, 32});
    const std::int64_t extent = one_of({1, 3, 6});
    Json attrs = Json::object();
    std::string op = "aten.conv2d.default";
    Array sums;
    Array sizes;
    const auto compute = [&](const auto& product) {
      const auto size = [](double value) { return std::fabs(value); };
      sums = product(x, w);
      sizes = product(test::map_values(x, size), test::map_values(w, size));
    };
    std::string left;
    std::string right;
    if (kind == 0 || kind == 1) {
      const std::int64_t taps = kind == 0 ? 1 : 3;
      left = tensor({batch, inputs, extent, extent}, x, 8, false);
      right = tensor({outputs, inputs, taps, taps}, w, 4);
      if (taps == 3) attrs["padding"] = {1, 1};
      const test::Index pad{taps / 2, taps / 2};
      compute([&](const Array& a, const Array& b) {
        return test::convolve(a, b, nullptr, {.pad_begin = pad, .pad_end = pad});
      });
    } else if (kind == 2) {
      left = tensor({batch, extent, inputs}, x, 8, false);
      right = tensor({outputs, inputs}, w, 4);
      op = "aten.linear.default";
      compute([](const Array& a, const Array& b) { return test::multiply(a, test::swap_last(b)); });
    } else {
      left = tensor({batch, 2, extent, inputs}, x, 8, false);
      right = tensor({batch, 2, inputs, outputs}, w, 4);
      op = "aten.matmul.default";
      compute([](const Array& a, const Array& b) { return test::multiply(a, b); });
    }
    last_ = fresh("a");
    graph_.node(last_, op, {left, right}, sums.shape, attrs);
    bounds_ = {sums, sums};
    for (std::size_t i = 0; i < sums.values.size(); ++i) {
      // Winograd's and Strassen's sums round more than the definition's.
      widen(i, sizes.values[i] * 0x1p-18);
    }
  }

  void widen(std::size_t i, double error) {
    bounds_.low.values[i] -= error;
    bounds_.high.values[i] += error;
  }

  void add_op() { random_() % 2 == 0 ? add_function() : add_arithmetic(); }

  /// One of those that rise, so that bounds stay bounds.
  void add_function() {
    const double a = static_cast<double>(one_of({1, 2, 3, 6})) / 8;
    const auto apply = [&](const std::string& op, const Json& attrs, const auto& function) {
      node(op, {last_}, bounds_.low.shape, attrs);
      bounds_ = {test::map_values(bounds_.low, function), test::map_values(bounds_.high, function)};
      round();
    };
    switch (random_() % 7) {
      case 0:
        return apply("aten.relu.default", Json::object(),
                     [](double x) { return std::max(x, 0.0); });
      case 1:
        return apply("aten.leaky_relu.default", {{"negative_slope", a}},
                     [=](double x) { return x < 0 ? a * x : x; });
      case 2:
        return apply("aten.clamp.default", {{"min", -a}, {"max", 2 * a}},
                     [=](double x) { return std::clamp(x, -a, 2 * a); });
      case 3:
        return apply("aten.tanh.default", Json::object(), [](double x) { return std::tanh(x); });
      case 4:
        return apply("aten.sigmoid.default", Json::object(),
                     [](double x) { return 1 / (1 + std::exp(-x)); });
      case 5:
        return apply("aten.mul.Tensor", {{"other", a}}, [=](double x) { return x * a; });
      default:
        return apply("aten.add.Tensor", {{"other", a}}, [=](double x) { return x + a; });
    }
  }

  /// With one element, one for each index of some dimensions, or of one larger dimension.
  Shape operand_shape() {
    Shape shape = bounds_.low.shape;
    for (std::size_t d = 0; d < shape.size(); ++d) {
      if (shape[d] == 1 && random_() % 8 == 0) shape[d] = 3;
    }
    switch (random_() % 5) {
      case 0:
        return {1};
      case 1:  // a channel of a convolution, a column of a product
        for (std::size_t d = 0; d < shape.size(); ++d) {
          if (d != (shape.size() == 4 ? 1 : shape.size() - 1)) shape[d] = 1;
        }
        break;
      case 2:  // a pixel, or a row
        shape[0] = shape[1] = 1;
        break;
      case 3:
        shape[random_() % shape.size()] = 1;
        break;
      default:
        break;
    }
    if (random_() % 3 == 0) {
      while (shape.size() > 1 && shape.front() == 1) shape.erase(shape.begin());
    }
    return shape;
  }

  void add_arithmetic() {
    Array other;
    const std::string name = tensor(operand_shape(), other, 16);
    const auto which = random_() % 4;
    if (which == 3) {  // no divisor near zero
      for (auto& [known, values] : values_) {
        if (known != name) continue;
        for (double& each : values.values) each += each < 0 ? -0.5 : 0.5;
        other = values;
      }
    }
    const bool turns = which < 3 && random_() % 3 == 0;
    const double alpha = which < 2 && random_() % 4 == 0 ? 0.5 : 1.0;
    const char* const ops[] = {"aten.add.Tensor", "aten.sub.Tensor", "aten.mul.Tensor",
                               "aten.div.Tensor"};
    const auto value = [&](double x, double y) {
      if (turns) std::swap(x, y);
      return which == 0 ? x + alpha * y : which == 1 ? x - alpha * y : which == 2 ? x * y : x / y;
    };
    const Array first = test::zip_values(bounds_.low, other, value);
    const Array second = test::zip_values(bounds_.high, other, value);
    std::vector<std::string> operands{last_, name};
    if (turns) std::swap(operands[0], operands[1]);
    node(ops[which], operands, first.shape, alpha == 1.0 ? Json::object() : Json{{"alpha", alpha}});
    bounds_ = {first, first};
    for (std::size_t i = 0; i < first.values.size(); ++i) {
      bounds_.low.values[i] = std::min(first.values[i], second.values[i]);
      bounds_.high.values[i] = std::max(first.values[i], second.values[i]);
    }
    // What is added may be large beside the sum.
    largest_ = std::max(largest_, 4.0);
    round();
  }

  /// A result is rounded, relative to the largest number that is in it.
  void round() {
    for (std::size_t i = 0; i < bounds_.low.values.size(); ++i) {
      largest_ =
          std::max({largest_, std::fabs(bounds_.low.values[i]), std::fabs(bounds_.high.values[i])});
    }
    for (std::size_t i = 0; i < bounds_.low.values.size(); ++i) widen(i, largest_ * 0x1p-20);
  }

  void node(const std::string& op, const std::vector<std::string>& operands, const Shape& shape,
            const Json& attrs) {
    last_ = fresh("n");
    graph_.node(last_, op, operands, shape, attrs);
  }

  void give(const std::string& name) {
    if (!given_.empty() && given_.back().first == name) return;
    graph_.output(name);
    given_.push_back({name, bounds_});
  }

  Tensor value_of(const TensorInfo& info) const {
    Tensor tensor(info.dtype, info.shape);
    for (const auto& [name, values] : values_) {
      if (name != info.name) continue;
      for (std::int64_t i = 0; i < tensor.element_count(); ++i) {
        tensor.as_mutable<float>()[i] =
            static_cast<float>(values.values[static_cast<std::size_t>(i)]);
      }
    }
    return tensor;
  }

  void check() {
    CAPTURE(graph_.text());
    Graph graph = graph_.build();
    const Target target = load_target("host");
    Diagnostics diagnostics;
    tag_ops(graph, target, {}, diagnostics);  // the target's patterns are what fuses
    for (Node& each : graph.nodes()) each.device = "npu";
    fuse_ops(graph, {}, diagnostics);
    REQUIRE(test::errors_of(diagnostics).empty());
    std::vector<Tensor> weights(graph.tensors().size());
    std::vector<Tensor> inputs;
    for (std::size_t t = 0; t < weights.size(); ++t) {
      const TensorInfo& info = graph.tensors()[t];
      if (info.kind == TensorKind::kWeight) weights[t] = value_of(info);
    }
    for (const TensorId id : graph.graph_inputs()) inputs.push_back(value_of(graph.tensor(id)));
    const PartitionPlan plan = single_partition_plan(graph, "npu");
    const std::vector<Tensor> results =
        Executor(graph, plan, target, weights, {.threads = 1}).run(inputs, nullptr);
    for (std::size_t o = 0; o < results.size(); ++o) {
      const Bounds& bounds = given_[o].second;
      REQUIRE(results[o].shape() == bounds.low.shape);
      for (std::int64_t i = 0; i < results[o].element_count(); ++i) {
        const auto place = static_cast<std::size_t>(i);
        const double value = results[o].value_as_double(i);
        if (value >= bounds.low.values[place] && value <= bounds.high.values[place]) continue;
        CAPTURE(given_[o].first, i, value, bounds.low.values[place], bounds.high.values[place]);
        FAIL("a result is outside its bounds");
      }
    }
  }

  std::minstd_rand random_;
  test::GraphBuilder graph_;
  std::vector<std::pair<std::string, Array>> values_;
  std::vector<std::pair<std::string, Bounds>> given_;
  std::string last_;
  Bounds bounds_;
  double largest_ = 1.0;  ///< of all numbers so far
  int next_ = 0;
};

}  // namespace

TEST_CASE("chains of element-wise ops behind a layer are what float64 gives", "[onednn][fusion]") {
  if (!test::use_backends()) return;
  const auto seed = static_cast<unsigned>(chain_setting("NPU_CHAIN_SEED", 1));
  for (int i = 0; i < chain_setting("NPU_CHAIN_CASES", 150); ++i) {
    const unsigned number = seed * 100003U + static_cast<unsigned>(i);
    CAPTURE(number);
    ChainDocument(number).run();
  }
}

}  // namespace npu
