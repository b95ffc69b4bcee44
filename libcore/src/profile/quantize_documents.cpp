// SPDX-License-Identifier: Apache-2.0
// The precisions of several documents of one model, such as an encoder and a decoder.
//
// Each document is calibrated by itself, in an order in which what only writes states, an encoder,
// comes before what reads them, so that a decoder sees the keys and values of its sample's source.
// A weight of several documents is once in a bundle if it is quantized alike in all. Its scales
// follow from its own values and from the factors by which channels are smoothed, which the first
// document chooses for all. Cost: that of the documents, and memory for what
// documents read of each other in all samples.
#include "profile/quantize_documents.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "ir/bind_sizes.hpp"
#include "ir/states_section.hpp"
#include "npu/runtime/compare.hpp"
#include "npu/runtime/weight_store.hpp"
#include "npu/tensor/safetensors.hpp"
#include "quant/weight_operand.hpp"
#include "runtime/entries/sized_request.hpp"
#include "tensor/onnx_tensor.hpp"

namespace npu {
namespace {

std::set<std::string> inputs_of(const DocumentToCompile& document) {
  if (document.model) {
    const std::vector<std::string> names = template_inputs(*document.model);
    return {names.begin(), names.end()};
  }
  std::set<std::string> names;
  for (const TensorId id : document.graph.graph_inputs()) {
    names.insert(document.graph.tensor(id).name);
  }
  return names;
}

/// Hands files of samples to documents.
class SampleRouter {
 public:
  explicit SampleRouter(const std::vector<DocumentToCompile>& documents)
      : samples_(documents.size()) {
    for (const DocumentToCompile& document : documents) {
      names_.push_back(document.name);
      inputs_.push_back(inputs_of(document));
    }
  }

  void add(const InputFile& file, Diagnostics& diagnostics) {
    const bool is_pb = file.path.ends_with(".pb");
    if (!is_pb && !file.path.ends_with(".npy")) return add_all(file.path, diagnostics);
    std::string input = file.input.value_or("");
    if (!file.input && is_pb) read_onnx_tensor(file.path, &input);
    if (give(input, file.path, {})) return;
    for (std::size_t d = 0; d < names_.size(); ++d) {
      const std::string prefix = names_[d] + ":";
      if (input.starts_with(prefix) && give(input.substr(prefix.size()), file.path, d)) return;
    }
    throw Error(ErrorCode::kUsage,
                "--calibrate " + file.path + ": " +
                    (input.empty() ? "" : "'" + input + "' is no input of a document; ") +
                    "say which as INPUT=FILE, or ENTRY:INPUT=FILE for one document of --entry");
  }

  std::vector<std::vector<InputFile>> take() { return std::move(samples_); }

 private:
  void add_all(const std::string& text, Diagnostics& diagnostics) {
    std::string path = text;
    std::optional<std::size_t> document;
    for (std::size_t d = 0; d < names_.size(); ++d) {
      if (!text.starts_with(names_[d] + "=")) continue;
      document = d;
      path = text.substr(names_[d].size() + 1);
    }
    const SafetensorsFile tensors(path);
    for (const SafetensorsEntry& entry : tensors.entries()) {
      if (give(entry.name, path, document)) continue;
      diagnostics.warning({.file = path}, "tensor '" + entry.name +
                                              "' is no input of a document of --entry; ignored");
    }
  }

  /// True if a document has the input: `only` that one.
  bool give(const std::string& input, const std::string& path, std::optional<std::size_t> only) {
    bool is_given = false;
    for (std::size_t d = 0; d < samples_.size(); ++d) {
      if ((only && d != *only) || !inputs_[d].contains(input)) continue;
      samples_[d].push_back({.input = input, .path = path});
      is_given = true;
    }
    return is_given;
  }

  std::vector<std::string> names_;
  std::vector<std::set<std::string>> inputs_;
  std::vector<std::vector<InputFile>> samples_;  // by document
};

/// The names of states.
struct StateNames {
  std::set<std::string> read;
  std::set<std::string> written;

  bool needs_others() const {
    return !std::includes(written.begin(), written.end(), read.begin(), read.end());
  }
};

StateNames state_names(const Graph& graph) {
  Diagnostics known;  // compile_entries tells them
  StateNames names;
  for (const State& state : read_states(graph, known)) {
    if (!state.input.empty()) names.read.insert(state.name);
    if (!state.output.empty()) names.written.insert(state.name);
  }
  return names;
}

/// The weights that products of several documents read.
std::set<std::string> shared_weights(const std::vector<Graph>& graphs, const WeightSource& source,
                                     Diagnostics& diagnostics) {
  std::set<std::string> shared;
  std::multimap<std::string, std::pair<std::size_t, Tensor>> known;  // with the document
  for (std::size_t g = 0; g < graphs.size(); ++g) {
    const Graph& graph = graphs[g];
    WeightSource own = source;
    if (own.file.empty() && !own.random_seed) own.file = weights_file_of(graph);
    const std::vector<Tensor> weights = load_weights(graph, own, diagnostics);
    if (diagnostics.has_errors()) return shared;
    for (const Node& node : graph.nodes()) {
      const auto operand = weight_operand(graph, node);
      if (!operand) continue;
      const std::string& name = graph.tensor(operand->tensor).name;
      const Tensor& weight = weights[index_of(operand->tensor)];
      const auto [begin, end] = known.equal_range(name);
      const bool is_shared = std::any_of(begin, end, [&](const auto& each) {
        const auto& [other, tensor] = each.second;
        return other != g && tensor.shape() == weight.shape() && same_bits({tensor}, {weight});
      });
      if (is_shared) shared.insert(name);
      known.emplace(name, std::pair(g, weight));
    }
  }
  return shared;
}

}  // namespace

std::vector<CompileQuantizedResult> quantize_documents(std::vector<DocumentToCompile>& documents,
                                                       const CompileQuantizedOptions& options,
                                                       Diagnostics& diagnostics) {
  SampleRouter router(documents);
  for (const InputFile& file : options.samples) router.add(file, diagnostics);
  const std::vector<std::vector<InputFile>> samples = router.take();
  std::vector<Graph> graphs;
  std::vector<StateNames> states;
  for (std::size_t d = 0; d < documents.size(); ++d) {
    const std::optional<Template>& model = documents[d].model;
    graphs.push_back(model ? bind_sizes(*model, sample_sizes(*model, samples[d]), diagnostics)
                           : documents[d].graph);
    if (diagnostics.has_errors()) return {};
    states.push_back(state_names(graphs.back()));
  }
  const std::set<std::string> shared = shared_weights(graphs, options.model.weights, diagnostics);
  if (diagnostics.has_errors()) return {};
  std::vector<std::size_t> order(documents.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_partition(order.begin(), order.end(),
                        [&](std::size_t d) { return !states[d].needs_others(); });
  CompileQuantizedOptions own = options;
  std::vector<CompileQuantizedResult> results(documents.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    const std::size_t d = order[i];
    own.samples = samples[d];
    own.wanted_states.clear();
    for (std::size_t later = i + 1; later < order.size(); ++later) {
      const std::set<std::string>& read = states[order[later]].read;
      own.wanted_states.insert(read.begin(), read.end());
    }
    QuantizedDocument made = quantize_document(std::move(documents[d]), own, diagnostics);
    if (diagnostics.has_errors()) return {};
    documents[d] = std::move(made.document);
    results[d] = std::move(made.sample);
    for (NamedTensor& state : results[d].states) {
      std::erase_if(own.states, [&](const NamedTensor& old) { return old.name == state.name; });
      own.states.push_back(std::move(state));
    }
    results[d].states.clear();
    for (auto& [weight, factors] : results[d].factors) {
      if (shared.contains(weight)) own.factors.try_emplace(weight, std::move(factors));
    }
    results[d].factors.clear();
  }
  return results;
}

std::map<std::string, double> quantized_documents_metrics(
    const std::vector<CompileQuantizedResult>& results) {
  std::map<std::string, double> all;
  for (const CompileQuantizedResult& result : results) {
    for (const auto& [name, value] : compile_quantized_metrics(result)) {
      const auto [known, is_first] = all.emplace(name, value);
      if (is_first) continue;
      double& total = known->second;
      if (name == "snr_db" || name == "max_abs_error" || name == "gap" ||
          name == "predicted_error") {
        const bool is_worse = name == "snr_db" ? value < total : value > total;
        if (std::isnan(value) || is_worse) total = value;
      } else {
        total += value;
      }
    }
  }
  return all;
}

}  // namespace npu
