// SPDX-License-Identifier: Apache-2.0
// What documents and bundles have in common. O(tensors) besides loading.
#include "runtime/prepared_model.hpp"

#include <algorithm>
#include <exception>

#include "compile/boundary_layouts.hpp"
#include "device/backend.hpp"
#include "npu/support/log.hpp"
#include "runtime/executor/tap_places.hpp"
#include "runtime/session/step_tensors.hpp"

namespace npu {

std::unique_ptr<Executor> load_executor(const Graph& graph, PreparedModel& model,
                                        const ExecutorOptions& options) {
  const auto load = [&] {
    return std::make_unique<Executor>(graph, model.plan, model.target, model.weights, options,
                                      model.partitions, model.devices);
  };
  std::exception_ptr refusal;
  try {
    return load();
  } catch (const BackendError& error) {
    const bool has_layouts = std::any_of(model.partitions.begin(), model.partitions.end(),
                                         [](const auto& each) { return !each.layouts.empty(); });
    if (!has_layouts || !may_refuse_layouts(error)) throw;
    refusal = std::current_exception();
    log(LogModule::kRun, LogLevel::kInfo,
        [&] { return "compiled again with row-major values: " + error.message(); });
  }
  try {
    CompiledModel compiled = model.compile_again(model);
    model.partitions = std::move(compiled.partitions);
    model.devices = std::move(compiled.devices);
  } catch (const Error&) {  // that it cannot be compiled here says less
    std::rethrow_exception(refusal);
  }
  return load();
}

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
  for (const std::size_t i : plain_outputs(graph)) {
    names.push_back(graph.tensor(graph.graph_outputs()[i]).name);
  }
  names.insert(names.end(), model.taps.begin(), model.taps.end());
  return names;
}

}  // namespace npu
