// SPDX-License-Identifier: Apache-2.0
// Compares what a plan computes with what it should. References are compiled without the cache and
// run one after another, on devices that are open already. The cost is that of the backends.
#include "runtime/reference_runs.hpp"

#include "ir/folded_nodes.hpp"
#include "npu/compile/fold_constants.hpp"
#include "npu/runtime/compile_model.hpp"
#include "npu/runtime/executor.hpp"
#include "passes/tag/decompose_ops.hpp"
#include "runtime/groups/compare_groups.hpp"
#include "runtime/run_options.hpp"
#include "runtime/session/step_runs.hpp"
#include "runtime/session/step_tensors.hpp"
#include "runtime/tap_tensors.hpp"

namespace npu {
namespace {

/// What padding has added is not there at the sizes of the inputs.
void check_taps(const Graph& exact, const std::vector<std::string>& taps) {
  for (const std::string& tap : taps) {
    if (exact.find_tensor(tap).valid()) continue;
    throw Error(ErrorCode::kUsage,
                "--tap: '" + tap + "' belongs to the padding, and --verify has nothing like it");
  }
}

/// What a device has no op for it may run as others, as in the model that is compared.
void decompose_for(const Device* device, const Target& target, Graph& graph) {
  if (device == nullptr) return;
  decompose_ops(graph, target, [device](NodeId) { return NodeWish{.device = device}; });
}

}  // namespace

ReferenceRuns::ReferenceRuns(const Graph& graph, const PreparedModel& model,
                             const RunModelOptions& options, Diagnostics& diagnostics)
    : graph_(graph),
      model_(model),
      options_(options),
      names_(output_names(graph, model)),
      tolerance_{.rtol = options.rtol,
                 .atol = options.atol,
                 .is_narrow = is_narrow_precision(options.precision)} {
  measures_precision_ = measures_precision(options) && graph.npu_member("states") == nullptr;
  if (measures_precision_ || options.groups.wanted()) {
    weights_ = model.load_weights(graph, diagnostics);
    if (diagnostics.has_errors()) return;
    fold_constants(graph, model.target, compile_options(options), nullptr, weights_);
  }
  if (options.verify_device.empty()) return;
  if (model.request) {
    exact_ = model.request->exact;
    check_taps(exact_, model.taps);
    add_outputs(exact_, model.taps);
    unfold_nodes(exact_);
    decompose_for(model.target.find_device(options.verify_device), model.target, exact_);
    exact_weights_ = model.load_weights(exact_, diagnostics);
  }
  // Groups are those of the graph that runs, padding included.
  if (model.request && !options.groups.wanted()) return;
  whole_ = graph;
  add_outputs(whole_, model.taps);
  unfold_nodes(whole_);
  whole_weights_ = model.load_weights(whole_, diagnostics);
}

void ReferenceRuns::compare(const std::vector<Tensor>& outputs, const OpenDevices& open,
                            RunReport& report) const {
  if (!options_.expect.empty()) {
    report.expect =
        compare_outputs(names_, outputs, expected_outputs(names_, options_.expect), tolerance_);
  }
  if (measures_precision_) report.worst_relative_error = precision_error(outputs, open);
  if (!options_.verify_device.empty()) report.verify = verify(outputs, open);
  if (options_.groups.wanted()) report.groups = compare_by_group(open);
}

double ReferenceRuns::precision_error(const std::vector<Tensor>& outputs,
                                      const OpenDevices& open) const {
  Executor reference = compile_and_load(graph_, model_.plan, model_.target, weights_,
                                        reference_options(options_), open);
  const auto end = outputs.begin() + static_cast<std::ptrdiff_t>(graph_.graph_outputs().size());
  std::vector<Tensor> expected = reference.run(model_.inputs, nullptr);
  if (model_.request) cut_outputs(*model_.request, names_, expected);
  return worst_relative_error({outputs.begin(), end}, expected);
}

ComparisonReport ReferenceRuns::verify(const std::vector<Tensor>& outputs,
                                       const OpenDevices& open) const {
  const Graph& graph = model_.request ? exact_ : whole_;
  const PartitionPlan plan = single_partition_plan(graph, options_.verify_device);
  Executor reference =
      compile_and_load(graph, plan, model_.target, model_.request ? exact_weights_ : whole_weights_,
                       reference_options(options_), open);
  RunRecord record;
  const std::vector<Tensor>& inputs = model_.request ? model_.request->inputs : model_.inputs;
  const std::vector<Tensor> expected =
      graph.npu_member("states") == nullptr
          ? reference.run(inputs, &record)
          : run_steps_on_host(reference, graph, inputs, states_before(options_).values,
                              options_.steps, record);
  ComparisonReport report =
      compare_outputs(names_, outputs, {expected.begin(), expected.end()}, tolerance_);
  report.device = options_.verify_device;
  report.ms = record.total_us / 1000;
  return report;
}

/// Compares the plan with the whole graph on one device.
GroupReport ReferenceRuns::compare_by_group(const OpenDevices& open) const {
  CompileOptions compile = compile_options(options_);
  compile.control = {};  // the deadline is for the run, which was in time
  const ExecutorOptions devices = reference_options(options_);
  GroupSides sides;
  sides.graph = &graph_;
  sides.plan = &model_.plan;
  sides.compiled = &model_.partitions;
  sides.runner = {&model_.target, compile, devices, weights_by_name(graph_, weights_), open};
  sides.reference = &whole_;
  sides.reference_device = options_.verify_device;
  sides.reference_runner = {&model_.target, compile, devices,
                            weights_by_name(whole_, whole_weights_), open};
  sides.reference_runner.compile.precision = "f32";
  sides.inputs = model_.inputs;
  sides.tolerance = tolerance_;
  return compare_groups(sides, options_.groups);
}

}  // namespace npu
