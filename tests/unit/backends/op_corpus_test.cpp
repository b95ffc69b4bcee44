// SPDX-License-Identifier: Apache-2.0
// Every case of testdata/ops, made by scripts/make_op_corpus.py, against PyTorch's results: as a
// whole on the cpu device, and once more with the nodes that the npu device claims on npu.
//
// On the cpu device the tolerance is the case's own. The npu device computes float32 in another
// order and bfloat16 with other roundings in between, so there it is npu-run's default.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "catch.hpp"
#include "npu/compile/fold_constants.hpp"
#include "npu/ir/json_reader.hpp"
#include "npu/partition/strategies.hpp"
#include "npu/passes/tag.hpp"
#include "npu/runtime/compare.hpp"
#include "npu/runtime/executor.hpp"
#include "npu/runtime/weight_store.hpp"
#include "npu/support/file_io.hpp"
#include "npu/support/json.hpp"
#include "npu/target/target.hpp"
#include "npu/tensor/safetensors.hpp"
#include "test_paths.hpp"

namespace npu {
namespace {

constexpr std::size_t kLeastCases = 250;

struct OpCase {
  std::string name;    // category/case
  std::string prefix;  // of its tensors' names
  Tolerance tolerance;
  bool exact = false;
  std::string ir;
  std::shared_ptr<const SafetensorsFile> tensors;

  Tensor tensor(const std::string& key) const {
    const SafetensorsEntry* entry = tensors->find(prefix + key);
    if (entry == nullptr)
      throw Error(ErrorCode::kIo, "the corpus has no tensor '" + prefix + key + "'");
    return tensors->tensor(*entry);
  }
};

const std::vector<OpCase>& op_cases() {
  static const std::vector<OpCase> all = [] {
    std::vector<std::filesystem::path> files;
    for (const auto& entry :
         std::filesystem::directory_iterator(std::string(NPU_TEST_DATA_DIR) + "/ops")) {
      if (entry.path().extension() == ".json") files.push_back(entry.path());
    }
    std::sort(files.begin(), files.end());
    std::vector<OpCase> cases;
    for (std::filesystem::path file : files) {
      const Json category = parse_json(read_file(file.string()), file.string());
      const auto tensors =
          std::make_shared<const SafetensorsFile>(file.replace_extension(".safetensors").string());
      for (const Json& json : category.at("cases")) {
        OpCase& one = cases.emplace_back();
        const auto name = json.at("name").get<std::string>();
        one.name = category.at("category").get<std::string>() + "/" + name;
        one.prefix = name + "/";
        one.tolerance = {json.at("rtol").get<double>(), json.at("atol").get<double>()};
        one.exact = json.value("exact", false);
        one.ir = json.at("ir").dump();
        one.tensors = tensors;
      }
    }
    return cases;
  }();
  return all;
}

void find_backends() { ::setenv("NPU_BACKEND_PATH", npu::test::backend_dir(), 1); }

// By TensorId; a constant that the corpus has in the document alone comes from there.
std::vector<Tensor> weights_of(const OpCase& one, const Graph& graph) {
  std::vector<Tensor> weights(graph.tensors().size());
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const TensorInfo& tensor = graph.tensors()[i];
    if (tensor.kind != TensorKind::kWeight || tensor.is_folded()) continue;
    const SafetensorsEntry* entry = one.tensors->find(one.prefix + "weight/" + tensor.weight_key);
    if (entry == nullptr && tensor.is_constant) {
      weights[i] = constant_tensor(graph, tensor);
    } else {
      weights[i] = one.tensor("weight/" + tensor.weight_key);
    }
  }
  return weights;
}

std::vector<Tensor> run_case(const OpCase& one, const Graph& graph, const PartitionPlan& plan,
                             const Target& target) {
  std::vector<Tensor> inputs;
  for (const TensorId id : graph.graph_inputs())
    inputs.push_back(one.tensor("in/" + graph.tensor(id).name));
  std::vector<Tensor> weights = weights_of(one, graph);
  CompileOptions compile;
  compile.threads = 1;
  fold_constants(graph, target, compile, nullptr, weights);
  ExecutorOptions options;
  options.threads = 1;
  Executor executor(graph, plan, target, weights, options);
  return executor.run(inputs, nullptr);
}

// A NaN stands for every NaN: which bits a conversion gives one depends on the CPU's instructions.
std::string bit_difference(const Tensor& actual, const Tensor& expected) {
  const std::size_t size = dtype_size(actual.dtype());
  for (std::int64_t i = 0; i < actual.element_count(); ++i) {
    const std::size_t offset = static_cast<std::size_t>(i) * size;
    if (std::memcmp(actual.data() + offset, expected.data() + offset, size) == 0) continue;
    const double found = actual.value_as_double(i);
    const double wanted = expected.value_as_double(i);
    if (std::isnan(found) && std::isnan(wanted)) continue;
    return "element " + std::to_string(i) + " is " + std::to_string(found) +
           ", bit for bit expected " + std::to_string(wanted);
  }
  return {};
}

// libtorch computes bfloat16 with oneDNN's kernels on CPUs that have AVX-512 and with its own
// elsewhere. Results that come from a cancellation near 1 (gelu's 1 + erf) differ by up to a unit
// of bfloat16 there, 2^-8, from those of the CPU that the corpus was made on.
Tolerance cpu_tolerance(const OpCase& one, DType dtype) {
  const bool is_narrow = dtype == DType::kBFloat16 && !one.exact;
  return {one.tolerance.rtol, std::max(one.tolerance.atol, is_narrow ? 1.0 / 256 : 0.0)};
}

// npu-run's defaults, or the case's own where that is wider.
Tolerance npu_tolerance(const OpCase& one, DType dtype) {
  Tolerance least{0, 0};
  if (dtype == DType::kFloat32) least = {1e-3, 1e-4};
  if (dtype == DType::kBFloat16 || dtype == DType::kFloat16) least = {2e-2, 2e-2};
  return {std::max(one.tolerance.rtol, least.rtol), std::max(one.tolerance.atol, least.atol)};
}

// Empty if every output agrees.
std::string difference(const OpCase& one, const Graph& graph, const std::vector<Tensor>& outputs,
                       bool on_npu) {
  std::string text;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const std::string& name = graph.tensor(graph.graph_outputs()[i]).name;
    const Tensor expected = one.tensor("out/" + name);
    const Tolerance tolerance =
        on_npu ? npu_tolerance(one, expected.dtype()) : cpu_tolerance(one, expected.dtype());
    const Comparison comparison = compare_tensors(outputs[i], expected, tolerance);
    std::string fault = comparison.mismatch;
    if (fault.empty() && !comparison.ok) {
      fault = "element " + std::to_string(comparison.worst_index) + " is " +
              std::to_string(comparison.worst_actual) + ", expected " +
              std::to_string(comparison.worst_expected) + "; " +
              std::to_string(comparison.out_of_tolerance) + " of " +
              std::to_string(comparison.elements) + " differ, by up to " +
              std::to_string(comparison.max_abs);
    }
    if (fault.empty() && one.exact) fault = bit_difference(outputs[i], expected);
    if (!fault.empty()) text += (text.empty() ? "" : "; ") + ("output '" + name + "': " + fault);
  }
  return text;
}

}  // namespace

TEST_CASE("the cpu device runs the op corpus as PyTorch does", "[corpus]") {
  find_backends();
  const Target target = load_target("host");
  CHECK(op_cases().size() >= kLeastCases);
  for (const OpCase& one : op_cases()) {
    INFO(one.name);
    std::string fault;
    try {
      Graph graph = read_valid_graph(one.ir, one.name);
      for (Node& node : graph.nodes()) node.device = "cpu";
      const PartitionPlan plan = single_partition_plan(graph, "cpu");
      fault = difference(one, graph, run_case(one, graph, plan, target), false);
    } catch (const Error& error) {
      fault = error.what();
    }
    CHECK(fault == "");
  }
}

// oneDNN's relu, clip and max pooling drop NaN, as npu(7) says of the npu device.
const std::set<std::string> kDropsNan{"activation/relu_nan", "elementwise/clamp_infinite",
                                      "pooling/max_pool2d_nan"};

TEST_CASE("the npu device agrees with PyTorch on what it claims of the op corpus", "[corpus]") {
  find_backends();
  const Target target = load_target("host");
  std::map<std::string, std::int64_t> nodes;
  for (const OpCase& one : op_cases()) {
    INFO(one.name);
    if (kDropsNan.contains(one.name)) continue;
    std::string fault;
    try {
      Graph graph = read_valid_graph(one.ir, one.name);
      Diagnostics diagnostics;
      tag_ops(graph, target, {}, diagnostics);
      for (const Diagnostic& entry : diagnostics.entries())
        fault += format_diagnostic(entry) + "\n";
      bool on_npu = false;
      for (const Node& node : graph.nodes()) {
        if (node.device) ++nodes[*node.device];
        on_npu = on_npu || node.device == "npu";
      }
      // Without the npu device it would be the other test again.
      if (fault.empty() && on_npu) {
        const PartitionPlan plan = partition_convex(graph);
        fault = difference(one, graph, run_case(one, graph, plan, target), true);
      }
    } catch (const Error& error) {
      fault = error.what();
    }
    CHECK(fault == "");
  }
  CHECK(nodes["npu"] > 100);
}

}  // namespace npu
