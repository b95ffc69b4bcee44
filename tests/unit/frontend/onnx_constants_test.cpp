// SPDX-License-Identifier: Apache-2.0
// What depends on constants alone has one value on every way in: folded when a model is imported,
// when it is compiled, or not at all, on npu, on cpu, and on npu alone. The reference has the same
// nodes with graph inputs in place of constants, on cpu. Integers and bools are equal, floats
// within 2 ulp: of functions of one operand, of which none is behind another.
#include <algorithm>
#include <cmath>
#include <random>

#include "catch.hpp"
#include "frontend/onnx_imported.hpp"
#include "npu/compile/fold_constants.hpp"
#include "npu/partition/partition_graph.hpp"
#include "npu/passes/tag.hpp"
#include "npu/runtime/executor.hpp"
#include "npu/runtime/weight_store.hpp"
#include "npu/target/target.hpp"
#include "test_paths.hpp"

namespace npu {
namespace {

using test::import_bytes;
using test::onnx_node;
using test::onnx_value;
using test::Proto;

constexpr std::uint64_t kFloats = 1, kIntegers = 7, kBools = 9;

/// A model that is built with constants, or with graph inputs that have their values.
class Constants {
 public:
  explicit Constants(bool are_inputs) : are_inputs_(are_inputs) {}

  std::string integers(const Shape& shape, const std::vector<std::int64_t>& values) {
    const std::string name = next();
    if (!are_inputs_) return graph_.message(5, test::onnx_integers(name, shape, values)), name;
    Tensor tensor(DType::kInt64, shape);
    std::copy(values.begin(), values.end(), tensor.as_mutable<std::int64_t>());
    return input(name, kIntegers, shape, std::move(tensor));
  }
  std::string floats(const Shape& shape, const std::vector<float>& values) {
    const std::string name = next();
    if (!are_inputs_) return graph_.message(5, test::onnx_tensor(name, shape, values)), name;
    Tensor tensor(DType::kFloat32, shape);
    std::copy(values.begin(), values.end(), tensor.as_mutable<float>());
    return input(name, kFloats, shape, std::move(tensor));
  }
  std::string node(const char* op, const std::vector<std::string>& operands, std::uint64_t type) {
    const std::string name = next();
    Proto node = onnx_node(op, operands, {name});
    if (op == std::string("Cast"))
      node.message(5, test::onnx_int("to", static_cast<std::int64_t>(type)));
    graph_.message(1, node);
    return name;
  }
  void output(const std::string& name) { graph_.message(12, test::onnx_result(name)); }

  std::vector<Tensor> run(const std::string& target_name, const std::string& device, bool folds) {
    test::Imported imported = import_bytes(test::onnx_model(graph_).text());
    REQUIRE(imported.errors.empty());
    Target target = load_target(target_name);
    if (!device.empty()) {
      Json json = *target.json;
      Json devices = Json::array();
      for (const Json& each : json["devices"]) {
        if (each["name"] == device) devices.push_back(each);
      }
      json["devices"] = devices;
      json["links"] = Json::array();
      target = parse_target(json, target_name);
    }
    TagOptions tagging;
    tagging.fold = folds;
    Diagnostics diagnostics;
    Graph& graph = imported.graph;
    tag_ops(graph, target, tagging, diagnostics);
    for (const Diagnostic& each : diagnostics.entries()) UNSCOPED_INFO(each.text);
    REQUIRE_FALSE(diagnostics.has_errors());
    std::vector<Tensor> weights = load_weights(graph, {}, diagnostics);
    const PartitionPlan plan = partition_graph(graph, {}, diagnostics).plan;
    REQUIRE_FALSE(diagnostics.has_errors());
    CompileOptions compiling;
    compiling.threads = 1;
    if (!graph.folded().empty()) fold_constants(graph, target, compiling, nullptr, weights);
    ExecutorOptions options;
    options.threads = 1;
    return compile_and_load(graph, plan, target, weights, options).run(inputs_, nullptr);
  }

 private:
  std::string next() { return "v" + std::to_string(count_++); }
  std::string input(const std::string& name, std::uint64_t type, const Shape& shape,
                    Tensor tensor) {
    graph_.message(11, onnx_value(name, shape, type));
    inputs_.push_back(std::move(tensor));
    return name;
  }

  bool are_inputs_;
  int count_ = 0;
  Proto graph_;
  std::vector<Tensor> inputs_;
};

void check_close(const Tensor& actual, const Tensor& expected) {
  REQUIRE(actual.dtype() == expected.dtype());
  REQUIRE(actual.shape() == expected.shape());
  for (std::int64_t i = 0; i < actual.element_count(); ++i) {
    const double a = actual.value_as_double(i);
    const double b = expected.value_as_double(i);
    if (a == b || (std::isnan(a) && std::isnan(b))) continue;
    const bool is_float = expected.dtype() == DType::kFloat32;
    const float magnitude = static_cast<float>(std::abs(b));
    const double ulp =
        static_cast<double>(std::nextafter(magnitude, INFINITY)) - static_cast<double>(magnitude);
    INFO("element " << i << " is " << a << ", expected " << b);
    CHECK((is_float && std::abs(a - b) <= 2 * ulp));
    return;
  }
}

/// `build` adds nodes to a model, the same for constants and for inputs.
template <typename Build>
void check_all_ways(const Build& build) {
  Constants reference(true);
  build(reference);
  const std::vector<Tensor> expected = reference.run("host", "cpu", false);
  for (const char* device : {"", "cpu", "npu"}) {
    for (const bool folds : {true, false}) {
      CAPTURE(device, folds);
      Constants constants(false);
      build(constants);
      const std::vector<Tensor> actual = constants.run("host", device, folds);
      REQUIRE(actual.size() == expected.size());
      for (std::size_t i = 0; i < actual.size(); ++i) check_close(actual[i], expected[i]);
    }
  }
}

/// The buckets of T5's relative positions, with `half` exact ones to each side.
void add_buckets(Constants& model, std::int64_t length, float half, float most) {
  std::vector<std::int64_t> places(static_cast<std::size_t>(length));
  for (std::size_t i = 0; i < places.size(); ++i) places[i] = static_cast<std::int64_t>(i);
  const Shape shape{length, length};
  const auto number = [&](std::int64_t value) { return model.integers({}, {value}); };
  const auto real = [&](float value) { return model.floats({}, {value}); };
  const auto whole = static_cast<std::int64_t>(half);
  const std::string distance = model.node(
      "Sub", {model.integers({1, length}, places), model.integers({length, 1}, places)}, kIntegers);
  const std::string size = model.node("Abs", {distance}, kIntegers);
  const std::string is_near = model.node("Less", {size, number(whole)}, kBools);
  const std::string far = model.node("Cast", {size}, kFloats);
  const std::string part = model.node("Div", {far, real(half)}, kFloats);
  const std::string log = model.node("Log", {part}, kFloats);
  const std::string scaled = model.node("Div", {log, real(std::log(most / half))}, kFloats);
  const std::string steps = model.node("Mul", {scaled, real(half)}, kFloats);
  const std::string bucket = model.node("Cast", {steps}, kIntegers);
  const std::string behind = model.node("Add", {bucket, number(whole)}, kIntegers);
  const std::string capped = model.node("Min", {behind, number(2 * whole - 1)}, kIntegers);
  model.output(model.node("Where", {is_near, size, capped}, kIntegers));
}

/// Integers, floats and bools of one shape; what a function gives is only returned.
void add_random(Constants& model, std::uint64_t seed) {
  std::mt19937_64 engine(seed);
  const auto below = [&](std::size_t count) { return engine() % count; };
  const auto one_of = [&](const auto& values) { return values[below(std::size(values))]; };
  const Shape shape{static_cast<std::int64_t>(1 + below(33))};
  std::vector<std::int64_t> integers(static_cast<std::size_t>(shape[0]));
  std::vector<float> floats(integers.size());
  for (auto& each : integers) each = static_cast<std::int64_t>(below(41)) - 20;
  for (auto& each : floats) each = (static_cast<float>(below(641)) - 320) / 32;
  std::vector<std::string> reals{model.floats(shape, floats)};
  std::vector<std::string> wholes{model.integers(shape, integers)};
  std::vector<std::string> bools{model.node("Less", {wholes[0], wholes[0]}, kBools)};
  constexpr const char* kFunctions[] = {"Exp", "Log",  "Sqrt",    "Sin",
                                        "Cos", "Tanh", "Sigmoid", "Erf"};
  constexpr const char* kPairs[] = {"Add", "Sub", "Mul", "Max", "Min"};
  constexpr const char* kOrders[] = {"Less", "Greater", "Equal"};
  constexpr const char* kOnes[] = {"Abs", "Neg"};
  for (std::size_t left = 3 + below(6); left > 0; --left) {
    const bool is_real = below(2) == 0;
    std::vector<std::string>& same = is_real ? reals : wholes;
    const std::uint64_t type = is_real ? kFloats : kIntegers;
    const std::string a = one_of(same);
    const std::string b = one_of(same);
    const std::size_t kind = below(6);
    if (kind == 0) model.output(model.node(one_of(kFunctions), {one_of(reals)}, kFloats));
    if (kind == 1) same.push_back(model.node(one_of(kPairs), {a, b}, type));
    if (kind == 2) bools.push_back(model.node(one_of(kOrders), {a, b}, kBools));
    if (kind == 3) same.push_back(model.node("Where", {one_of(bools), a, b}, type));
    if (kind == 4) same.push_back(model.node(one_of(kOnes), {a}, type));
    if (kind == 5) reals.push_back(model.node("Cast", {one_of(wholes)}, kFloats));
  }
  const std::string floor = model.node("Floor", {reals.back()}, kFloats);
  model.output(model.node("Cast", {floor}, kIntegers));
  model.output(model.node("Where", {bools.back(), reals.back(), reals[0]}, kFloats));
  model.output(model.node("Add", {wholes.back(), wholes[0]}, kIntegers));
}

}  // namespace

TEST_CASE("buckets of relative positions are the same on every way in") {
  if (!test::use_backends()) return;
  for (const std::int64_t length : {1, 40, 130}) {
    check_all_ways([&](Constants& model) { add_buckets(model, length, 16, 128); });
    check_all_ways([&](Constants& model) { add_buckets(model, length, 8, 128); });
  }
}

TEST_CASE("graphs of constants are the same on every way in") {
  if (!test::use_backends()) return;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    CAPTURE(seed);
    check_all_ways([&](Constants& model) { add_random(model, seed); });
  }
}

}  // namespace npu
