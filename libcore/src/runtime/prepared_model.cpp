// SPDX-License-Identifier: Apache-2.0
// What documents and bundles have in common. O(tensors).
#include "runtime/prepared_model.hpp"

#include "runtime/executor/tap_places.hpp"

namespace npu {

std::vector<std::string> take_taps(const Graph& graph, PreparedModel& model,
                                   const std::vector<std::string>& names) {
  const auto places = find_taps(graph, model.plan, model.partitions, names);
  std::vector<std::string> missing;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (!places[i]) {
      missing.push_back(names[i]);
      continue;
    }
    model.taps.push_back(names[i]);
    model.tap_rows.push_back(
        {names[i], places[i]->index ? TapSummary::From::kProgram : TapSummary::From::kBoundary});
  }
  return missing;
}

std::vector<std::string> output_names(const Graph& graph, const PreparedModel& model) {
  std::vector<std::string> names;
  for (const TensorId id : graph.graph_outputs()) names.push_back(graph.tensor(id).name);
  names.insert(names.end(), model.taps.begin(), model.taps.end());
  return names;
}

}  // namespace npu
