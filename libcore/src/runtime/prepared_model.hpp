// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "npu/compile/bundle.hpp"
#include "npu/compile/compiler.hpp"
#include "npu/ir/graph.hpp"
#include "npu/partition/partition_plan.hpp"
#include "npu/runtime/executor.hpp"
#include "npu/runtime/run_model.hpp"
#include "npu/runtime/run_report.hpp"
#include "npu/support/error.hpp"
#include "npu/target/target.hpp"
#include "npu/tensor/tensor.hpp"
#include "runtime/entries/sized_request.hpp"

namespace npu {

/// A model that is ready to run, with its inputs; it came from a document or a bundle.
struct PreparedModel {
  Target target;
  PartitionPlan plan;
  std::vector<Tensor> weights;  ///< those that its programs or its outputs need, by TensorId
  std::vector<CompiledPartition> partitions;
  OpenDevices devices;
  std::vector<Tensor> inputs;
  std::vector<std::string> taps;     ///< results that its programs hand out in a run
  std::vector<TapSummary> tap_rows;  ///< of all results that were asked for
  double ready_ms = 0;               ///< reading or compiling it
  std::optional<CompileSource> compile;
  std::optional<BundleSource> bundle;
  std::string note;  ///< how it was placed, if the document said nothing
  /// Of a bundle with a template: the sizes of the run. `inputs` are padded.
  std::optional<SizedRequest> request;

  /// Every weight of a graph with the same names, but for folded results, which stay empty.
  /// Collects faults.
  std::function<std::vector<Tensor>(const Graph&, Diagnostics&)> load_weights;
  /// Compiles it again with row-major values between its partitions.
  std::function<CompiledModel(const PreparedModel&)> compile_again;
};

/// Whether a model gets the inputs of a run when it is made ready.
enum class WithInputs : std::uint8_t { kNo, kYes };

/// Places and compiles a document so that every tap is there: what no program hands out becomes an
/// output, and the document is compiled again. `graph` is left as it runs; it and the options have
/// to outlive the result. Collects faults; the result is meaningful only if there are none.
PreparedModel prepare_document(Graph& graph, const RunModelOptions& options,
                               Diagnostics& diagnostics, WithInputs with_inputs = WithInputs::kYes);

/// Maps what a bundle holds. `graph` becomes its document; all three have to outlive the result.
/// Throws Error kUsage for options that do not go with it. Collects faults.
PreparedModel prepare_bundle(const Bundle& bundle, Graph& graph, const RunModelOptions& options,
                             Diagnostics& diagnostics);

/// The same of one of its entries, without inputs. `open` are devices that are open already.
PreparedModel prepare_entry(const Bundle& bundle, std::size_t entry, Graph& graph,
                            const RunModelOptions& options, const OpenDevices& open,
                            Diagnostics& diagnostics);

/// Loads a model; with row-major values between its partitions if a backend does not load what it
/// has compiled for others. Both have to outlive the result.
std::unique_ptr<Executor> load_executor(const Graph& graph, PreparedModel& model,
                                        const ExecutorOptions& options);

/// Keeps those of `names` that the programs hand out as taps of a model; returns the others.
std::vector<std::string> take_taps(const Graph& graph, PreparedModel& model,
                                   const std::vector<std::string>& names);

/// What a run gives, by name: the graph's outputs that are no states, and behind them the taps.
std::vector<std::string> output_names(const Graph& graph, const PreparedModel& model);

}  // namespace npu
