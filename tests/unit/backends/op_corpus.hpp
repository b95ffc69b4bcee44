// SPDX-License-Identifier: Apache-2.0
// The cases of testdata/ops, which scripts/op_corpus/make_op_corpus.py makes: documents, inputs,
// weights and PyTorch's results.
#pragma once

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "npu/compile/fold_constants.hpp"
#include "npu/partition/strategies.hpp"
#include "npu/runtime/compare.hpp"
#include "npu/runtime/executor.hpp"
#include "npu/runtime/weight_store.hpp"
#include "npu/support/file_io.hpp"
#include "npu/support/json.hpp"
#include "npu/target/target.hpp"
#include "npu/tensor/safetensors.hpp"

namespace npu::test {

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

inline const std::vector<OpCase>& op_cases() {
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

// By TensorId; a constant that the corpus has in the document alone comes from there.
inline std::vector<Tensor> weights_of(const OpCase& one, const Graph& graph) {
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

inline std::vector<Tensor> inputs_of(const OpCase& one, const Graph& graph) {
  std::vector<Tensor> inputs;
  for (const TensorId id : graph.graph_inputs())
    inputs.push_back(one.tensor("in/" + graph.tensor(id).name));
  return inputs;
}

inline std::vector<Tensor> run_graph(const Graph& graph, const PartitionPlan& plan,
                                     const Target& target, std::vector<Tensor> weights,
                                     const std::vector<Tensor>& inputs) {
  CompileOptions compile;
  compile.threads = 1;
  fold_constants(graph, target, compile, nullptr, weights);
  ExecutorOptions options;
  options.threads = 1;
  Executor executor = compile_and_load(graph, plan, target, weights, options);
  return executor.run(inputs, nullptr);
}

}  // namespace npu::test
