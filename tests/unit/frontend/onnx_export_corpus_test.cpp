// SPDX-License-Identifier: Apache-2.0
// Every case of testdata/ops that has a form in ONNX: the file, read back by the frontend, gives
// what the document gives, also where inputs hold NaN, infinities and numbers of any size.
//
// With NPU_EXPORT_CASES the files, inputs and what the document gives stay in that folder, for
// scripts/check/onnx_export.js, which runs them with ONNX Runtime.
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "backends/op_corpus.hpp"
#include "catch.hpp"
#include "export/export_onnx.hpp"
#include "frontend/onnx_imported.hpp"
#include "graph_builder.hpp"
#include "ops/op_name.hpp"
#include "support/temporary_folder.hpp"
#include "test_paths.hpp"

namespace npu::test {
namespace {

std::vector<Tensor> run_on_cpu(Graph graph, std::vector<Tensor> weights,
                               const std::vector<Tensor>& inputs) {
  for (Node& node : graph.nodes()) node.device = "cpu";
  return run_graph(graph, single_partition_plan(graph, "cpu"), load_target("host"),
                   std::move(weights), inputs);
}

/// The graph with its weights in a file, as documents have them.
Graph with_weights_file(Graph graph, const std::vector<Tensor>& weights, const std::string& file) {
  std::vector<std::pair<std::string, Tensor>> named;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const TensorInfo& tensor = graph.tensors()[i];
    if (tensor.kind == TensorKind::kWeight && !tensor.is_constant) {
      named.emplace_back(tensor.weight_key, weights[i]);
    }
  }
  write_safetensors(file, named);
  graph.set_npu_member("weights_file", file);
  return graph;
}

/// Empty if the file was written; else why not.
std::string export_fault(const Graph& graph, const std::string& file) {
  ExportOnnxOptions options;
  options.output = file;
  options.producer = "test";
  options.target = "host";
  Diagnostics diagnostics;
  export_onnx(graph, options, diagnostics);
  return diagnostics.has_errors() ? diagnostics.entries().front().text : "";
}

std::vector<Tensor> run_file(const std::string& file, const std::vector<Tensor>& inputs) {
  const Imported model = import_bytes(read_file(file), {}, file);
  if (!model.errors.empty()) throw Error(ErrorCode::kInvalidGraph, model.errors);
  Diagnostics diagnostics;
  WeightSource source;
  source.file = weights_file_of(model.graph);
  std::vector<Tensor> weights = load_weights(model.graph, source, diagnostics);
  REQUIRE_FALSE(diagnostics.has_errors());
  return run_on_cpu(model.graph, std::move(weights), inputs);
}

/// A fifth of the floats are large or small numbers, or none; squares of large ones do not
/// overflow.
std::vector<Tensor> with_special_values(const std::vector<Tensor>& inputs, std::uint32_t seed) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr float kValues[] = {NAN, kInfinity, -kInfinity, 0.0F, -0.0F, 1e-18F, 1e18F, -90.0F};
  std::mt19937 random(seed);
  std::vector<Tensor> changed;
  for (const Tensor& input : inputs) {
    Tensor& copy = changed.emplace_back(input);
    if (input.dtype() != DType::kFloat32) continue;
    copy = Tensor(input.dtype(), input.shape());
    for (std::int64_t i = 0; i < input.element_count(); ++i) {
      const bool is_special = random() % 5 == 0;
      copy.as_mutable<float>()[i] =
          is_special ? kValues[random() % std::size(kValues)] : input.as<float>()[i];
    }
  }
  return changed;
}

/// ONNX's resampling may multiply a NaN by 0, and a mean of infinities beside a variance depends on
/// the order in which libtorch adds up.
bool has_special_results(const Graph& graph) {
  return std::none_of(graph.nodes().begin(), graph.nodes().end(), [](const Node& node) {
    const std::string_view name = base_name(node.op_type);
    return name.starts_with("upsample") || name.starts_with("_upsample") || name == "var_mean";
  });
}

std::string difference(const std::vector<Tensor>& found, const std::vector<Tensor>& expected,
                       const Tolerance& tolerance) {
  if (found.size() != expected.size()) return "other outputs";
  for (std::size_t i = 0; i < found.size(); ++i) {
    const Comparison comparison = compare_tensors(found[i], expected[i], tolerance);
    if (!comparison.mismatch.empty()) return comparison.mismatch;
    if (comparison.ok) continue;
    return "output " + std::to_string(i) + ", element " + std::to_string(comparison.worst_index) +
           ": " + std::to_string(comparison.worst_actual) + ", expected " +
           std::to_string(comparison.worst_expected);
  }
  return {};
}

/// Where cases are kept: a folder that the environment names, or one that is gone afterwards.
class Cases {
 public:
  Cases() : kept_(std::getenv("NPU_EXPORT_CASES")) {
    if (kept_ != nullptr) std::filesystem::create_directories(kept_);
  }
  std::string file(const std::string& name) const {
    return kept_ == nullptr ? folder_ / name : std::string(kept_) + "/" + name;
  }
  void keep(const Graph& graph, const std::string& name, const std::vector<Tensor>& inputs,
            const std::vector<Tensor>& expected) const {
    if (kept_ == nullptr) return;
    const auto write = [&](const char* end, const auto& ids, const std::vector<Tensor>& tensors) {
      std::vector<std::pair<std::string, Tensor>> named;
      for (std::size_t i = 0; i < tensors.size(); ++i) {
        named.emplace_back(graph.tensor(ids[i]).name, tensors[i]);
      }
      write_safetensors(file(name + end), named);
    };
    write(".inputs.safetensors", graph.graph_inputs(), inputs);
    write(".outputs.safetensors", graph.graph_outputs(), expected);
  }

 private:
  TemporaryFolder folder_;
  const char* kept_;
};

}  // namespace

TEST_CASE("export onnx: each op of the corpus is read back as it was", "[frontend][export]") {
  if (!use_backends()) return;
  const Cases cases;
  std::set<std::string> written;
  std::uint32_t number = 0;
  for (const OpCase& one : op_cases()) {
    INFO(one.name);
    ++number;
    Graph graph = read_valid_graph(one.ir, one.name);
    const std::vector<Tensor> weights = weights_of(one, graph);
    std::string name = one.name;
    std::replace(name.begin(), name.end(), '/', '.');
    graph = with_weights_file(std::move(graph), weights, cases.file(name + ".weights.safetensors"));
    const std::string file = cases.file(name + ".onnx");
    if (const std::string fault = export_fault(graph, file); !fault.empty()) {
      CHECK_THAT(fault, Catch::Contains(" has no form in ONNX: "));
      continue;
    }
    for (const Node& node : graph.nodes()) written.insert(node.op_type);
    const std::vector<Tensor> plain = inputs_of(one, graph);
    for (const bool is_special : {false, true}) {
      if (is_special && !has_special_results(graph)) continue;
      CAPTURE(is_special);
      const std::vector<Tensor> inputs = is_special ? with_special_values(plain, number) : plain;
      const std::vector<Tensor> expected = run_on_cpu(graph, weights, inputs);
      if (is_special)
        std::filesystem::copy(file, cases.file(name + ".special.onnx"),
                              std::filesystem::copy_options::overwrite_existing);
      cases.keep(graph, is_special ? name + ".special" : name, inputs, expected);
      std::string fault;
      try {
        fault = difference(run_file(file, inputs), expected, one.tolerance);
      } catch (const Error& error) {
        fault = error.what();
      }
      CHECK(fault == "");
    }
  }
  CHECK(written.size() > 150);
  CHECK(written.contains("aten.diff.default"));  // without a rule: by its decomposition
}

}  // namespace npu::test
