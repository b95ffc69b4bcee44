// SPDX-License-Identifier: Apache-2.0
// Random nodes of every op in the host target's npu table, in float32, bfloat16 and float16, on the
// npu device against the cpu device: random_nodes.hpp draws them within what the table states, so
// npu-tag has to take each one and the two devices have to agree. Next to them stand nodes just
// outside the table, which npu-tag has to refuse.
//
// NPU_DIFFERENTIAL_CASES sets the number of cases an op and dtype get, NPU_DIFFERENTIAL_SEED the
// seed.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <set>
#include <string>
#include <vector>

#include "backends/random_nodes.hpp"
#include "catch.hpp"
#include "graph_builder.hpp"
#include "npu/partition/partition_plan.hpp"
#include "npu/runtime/executor.hpp"
#include "npu/target/target.hpp"
#include "target/support_check.hpp"
#include "test_paths.hpp"

namespace npu {
namespace {

using test::GraphBuilder;
using test::Random;
using test::RandomNode;

/// Cases of an op and dtype.
constexpr std::int64_t kCases = 6;

/// Runs the whole graph on one device.
std::vector<Tensor> run_on(Graph& graph, const std::string& device, const Target& target,
                           const std::vector<Tensor>& weights, const std::vector<Tensor>& inputs) {
  for (Node& node : graph.nodes()) node.device = device;
  const PartitionPlan plan = single_partition_plan(graph, device);
  ExecutorOptions options;
  options.threads = 1;
  return Executor(graph, plan, target, weights, options).run(inputs, nullptr);
}

bool is_narrow(DType dtype) { return dtype == DType::kBFloat16 || dtype == DType::kFloat16; }

/// What the cpu device computes from the same values. libtorch's own 16-bit arithmetic rounds in
/// between and lacks some ops, so arithmetic is done in float32 there; what moves or
/// converts elements is compared in its own dtypes.
std::vector<Tensor> reference(Graph& graph, const std::string& op, std::string document,
                              const Target& target, const std::vector<Tensor>& weights,
                              const std::vector<Tensor>& inputs) {
  const bool converts = op.find(".to.") != std::string::npos ||
                        op.find("_to_copy") != std::string::npos ||
                        op.find("type_as") != std::string::npos;
  const DType narrow =
      document.find("bfloat16") != std::string::npos ? DType::kBFloat16 : DType::kFloat16;
  const std::string_view name = dtype_name(narrow);
  if (converts || document.find(name) == std::string::npos) {
    return run_on(graph, "cpu", target, weights, inputs);
  }
  for (std::size_t at = 0; (at = document.find(name, at)) != std::string::npos;) {
    document.replace(at, name.size(), "float32");
  }
  Graph wide = read_valid_graph(document, "reference");
  const auto widened = [](std::vector<Tensor> tensors) {
    for (Tensor& tensor : tensors) {
      if (!is_narrow(tensor.dtype())) continue;
      Tensor copy(DType::kFloat32, tensor.shape());
      for (std::int64_t i = 0; i < tensor.element_count(); ++i) {
        copy.as_mutable<float>()[i] = static_cast<float>(tensor.value_as_double(i));
      }
      tensor = copy;
    }
    return tensors;
  };
  std::vector<Tensor> results = run_on(wide, "cpu", target, widened(weights), widened(inputs));
  for (Tensor& tensor : results) {
    if (tensor.dtype() != DType::kFloat32) continue;
    Tensor copy(narrow, tensor.shape());
    const auto rounded = narrow == DType::kBFloat16 ? float_to_bfloat16 : float_to_float16;
    for (std::int64_t i = 0; i < tensor.element_count(); ++i) {
      copy.as_mutable<std::uint16_t>()[i] = rounded(tensor.as<float>()[i]);
    }
    tensor = copy;
  }
  return results;
}

/// Empty, or how the first element that is out of tolerance differs. 16-bit results differ by
/// roundings of sums, so their tolerance is relative to the tensor's largest value.
std::string difference(const Tensor& actual, const Tensor& expected) {
  if (actual.dtype() != expected.dtype() || actual.shape() != expected.shape()) {
    return "dtype or shape differs";
  }
  double largest = 0;
  for (std::int64_t i = 0; i < expected.element_count(); ++i) {
    const double value = std::abs(expected.value_as_double(i));
    if (std::isfinite(value)) largest = std::max(largest, value);
  }
  const bool narrow = is_narrow(expected.dtype());
  const double step = expected.dtype() == DType::kFloat16 ? 2e-3 : 2e-2;
  const bool exact = !narrow && expected.dtype() != DType::kFloat32;
  for (std::int64_t i = 0; i < expected.element_count(); ++i) {
    const double a = actual.value_as_double(i);
    const double b = expected.value_as_double(i);
    if (std::isnan(a) && std::isnan(b)) continue;
    if (std::isinf(b) && a == b) continue;
    double limit = narrow ? step + step * std::max(1.0, largest) : 1e-4 + 1e-3 * std::abs(b);
    if (exact) limit = 0;
    if (!(std::abs(a - b) <= limit)) {
      return "element " + std::to_string(i) + " is " + std::to_string(a) + ", expected " +
             std::to_string(b);
    }
  }
  return {};
}

const Device& npu_device_of(const Target& target) { return *target.find_device("npu"); }

std::vector<std::string> table_ops(const Device& device) {
  std::vector<std::string> result;
  for (const auto& [type, rules] : device.rules_by_type) result.push_back(type);
  std::sort(result.begin(), result.end());
  return result;
}

std::int64_t setting(const char* name, std::int64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoll(text, nullptr, 10);
}

/// Draws a node of `op`, runs it on both devices; empty, or how they differ. `document` is what was
/// run.
std::string fault_of(const std::string& op, const std::string& dtype, Random& random,
                     const Target& target, std::string& document) {
  try {
    RandomNode one(random, dtype);
    draw_node(one, op);
    document = one.graph.text();
    Graph graph = one.graph.build();
    const SupportResult support = check_support(graph, NodeId{0}, npu_device_of(target));
    if (!support.supported) return "npu-tag refuses it: " + support.reason;
    std::vector<Tensor> weights(graph.tensors().size());
    std::vector<Tensor> inputs;
    for (std::size_t t = 0; t < weights.size(); ++t) {
      const TensorInfo& info = graph.tensors()[t];
      if (info.kind != TensorKind::kWeight) continue;
      weights[t] = random_values(info, one.values.at(info.name), random);
    }
    for (const TensorId id : graph.graph_inputs()) {
      inputs.push_back(
          random_values(graph.tensor(id), one.values.at(graph.tensor(id).name), random));
    }
    const auto expected = reference(graph, op, document, target, weights, inputs);
    const auto actual = run_on(graph, "npu", target, weights, inputs);
    for (std::size_t o = 0; o < expected.size(); ++o) {
      if (std::string fault = difference(actual[o], expected[o]); !fault.empty()) return fault;
    }
    return {};
  } catch (const Error& error) {
    return error.what();
  }
}

}  // namespace

TEST_CASE("random nodes of every op in the npu table agree with the cpu device", "[differential]") {
  ::setenv("NPU_BACKEND_PATH", npu::test::backend_dir(), 1);
  const Target target = load_target("host");
  const std::vector<std::string> ops = table_ops(npu_device_of(target));
  CHECK(ops.size() >= 70);
  const std::int64_t rounds = setting("NPU_DIFFERENTIAL_CASES", kCases);
  const auto seed = static_cast<std::uint64_t>(setting("NPU_DIFFERENTIAL_SEED", 1));
  std::set<std::string> failed;
  for (std::int64_t round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < ops.size(); ++i) {
      std::uint64_t number = 0;
      for (const std::string dtype : {"float32", "bfloat16", "float16"}) {
        Random random(seed * 1000003 + static_cast<std::uint64_t>(round) * 4093 + i * 2 + number++);
        std::string document;
        const std::string fault = fault_of(ops[i], dtype, random, target, document);
        if (fault.empty() || !failed.insert(ops[i]).second) continue;
        INFO(document);
        CHECK(fault == "");
      }
    }
  }
  CHECK(failed.empty());
}

TEST_CASE("npu-tag refuses nodes just outside the npu table", "[differential]") {
  const Target target = load_target("host");
  const Device& npu = npu_device_of(target);
  const auto takes = [&](GraphBuilder& graph) {
    return check_support(graph.build(), NodeId{0}, npu).supported;
  };
  std::set<std::string> any_dtype;
  for (const auto& [type, rules] : npu.rules_by_type) {
    for (const std::size_t index : rules) {
      const OpRule& rule = npu.rules[index];
      const auto& dtypes = rule.dtypes.any.empty() && rule.dtypes.by_argument.empty()
                               ? std::vector<DType>{}
                               : rule.dtypes.any;
      if (dtypes.empty() ||
          std::find(dtypes.begin(), dtypes.end(), DType::kFloat64) != dtypes.end()) {
        any_dtype.insert(type);
      }
    }
  }
  std::int64_t refused = 0;
  for (const std::string& op : table_ops(npu)) {
    if (any_dtype.contains(op) || op.find("arange") != std::string::npos) continue;
    INFO(op);
    Random random(7);
    RandomNode wide(random, "float64");
    draw_node(wide, op);
    if (wide.graph.text().find("float64") == std::string::npos) continue;  // takes no floats
    CHECK_FALSE(takes(wide.graph));
    ++refused;
  }
  CHECK(refused > 60);

  const auto refuses = [&](const std::string& op, const std::vector<Shape>& operands,
                           const Shape& result, const Json& attrs) {
    GraphBuilder graph;
    std::vector<std::string> names;
    for (std::size_t i = 0; i < operands.size(); ++i) {
      names.push_back("x" + std::to_string(i));
      graph.input(names.back(), operands[i]);
    }
    graph.node("y", op, names, result, attrs).output("y");
    INFO(op << " " << attrs.dump());
    CHECK_FALSE(takes(graph));
  };
  refuses("aten.conv2d.default", {{3, 8, 8}, {4, 3, 3, 3}}, {4, 6, 6}, Json::object());
  refuses("aten.conv3d.default", {{3, 5, 8, 8}, {4, 3, 3, 3, 3}}, {4, 3, 6, 6}, Json::object());
  refuses("aten.conv_transpose2d.input", {{3, 8, 8}, {3, 4, 3, 3}}, {4, 10, 10}, Json::object());
  refuses("aten.batch_norm.default", {{2, 3, 4}, {3}, {3}, {3}, {3}}, {2, 3, 4},
          {{"training", true}, {"momentum", 0.1}, {"eps", 1e-5}, {"cudnn_enabled", true}});
  refuses("aten.batch_norm.default", {{3}, {3}, {3}, {3}, {3}}, {3},
          {{"training", false}, {"momentum", 0.1}, {"eps", 1e-5}, {"cudnn_enabled", true}});
  refuses("aten.max_pool1d.default", {{1, 2, 3, 8}}, {1, 2, 3, 4}, {{"kernel_size", {2}}});
  refuses("aten.avg_pool3d.default", {{2, 3, 8}}, {2, 3, 4}, {{"kernel_size", {2, 2, 2}}});
  refuses("aten.group_norm.default", {{4}}, {4}, {{"num_groups", 2}});
  refuses("aten.hardtanh.default", {{4}}, {4}, {{"min_val", 2.0}, {"max_val", 1.0}});
  refuses("aten.elu.default", {{4}}, {4}, {{"scale", 2.0}});
  refuses("aten.celu.default", {{4}}, {4}, {{"alpha", -1.0}});
  refuses("aten.softplus.default", {{4}}, {4}, {{"beta", 2.0}});
  refuses("aten.pad.default", {{4, 4}}, {4, 6}, {{"pad", {1, 1}}, {"mode", "reflect"}});
  refuses("aten.dropout.default", {{4}}, {4}, {{"p", 0.5}, {"train", true}});
  refuses("aten.scaled_dot_product_attention.default", {{1, 4, 2}, {1, 4, 2}, {1, 4, 2}}, {1, 4, 2},
          {{"dropout_p", 0.5}});
  refuses("aten.relu.default", {{0, 4}}, {0, 4}, Json::object());
  refuses("aten._softmax.default", {{4}}, {4}, {{"dim", 0}, {"half_to_float", true}});
}

}  // namespace npu
