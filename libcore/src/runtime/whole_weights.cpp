// SPDX-License-Identifier: Apache-2.0
// The weights of the graph behind a bundle. O(tensors), and the bytes that are read.
#include "runtime/whole_weights.hpp"

#include "npu/ir/json_reader.hpp"
#include "npu/support/ids.hpp"

namespace npu {

std::vector<Tensor> whole_weights(const Bundle& bundle, const Graph& graph,
                                  const WeightSource& given, Diagnostics& diagnostics,
                                  std::size_t entry) {
  std::vector<Tensor> weights(graph.tensors().size());
  for (const std::size_t place : bundle.entries()[entry].weights) {
    const BundleWeight& stored = bundle.weights()[place];
    const TensorId id = graph.find_tensor(stored.name);
    if (id.valid()) weights[index_of(id)] = bundle.weight(stored);
  }
  bool complete = true;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const TensorInfo& tensor = graph.tensors()[i];
    complete = complete && (tensor.kind != TensorKind::kWeight || tensor.is_folded() ||
                            (weights[i].dtype() == tensor.dtype &&
                             weights[i].shape() == tensor.shape && weights[i].data() != nullptr));
  }
  if (complete) return weights;
  WeightSource source = given;
  const Json* seed = find_member(bundle.manifest(), "random_weights");
  if (source.file.empty() && !source.random_seed && seed != nullptr && seed->is_number_unsigned()) {
    source.random_seed = seed->get<std::uint64_t>();
  }
  return load_weights(graph, source, diagnostics);
}

}  // namespace npu
