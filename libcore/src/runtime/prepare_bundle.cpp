// SPDX-License-Identifier: Apache-2.0
// Makes a bundle ready to run: nothing is placed or compiled, its sections are used where they are
// mapped, and its backends say whether what it holds is for the devices here. O(tensors) besides
// the backends.
#include "device/isa_level.hpp"
#include "npu/compile/fold_constants.hpp"
#include "npu/ir/json_reader.hpp"
#include "runtime/check_blobs.hpp"
#include "runtime/place_model.hpp"
#include "runtime/prepared_model.hpp"
#include "runtime/run_inputs.hpp"
#include "runtime/run_options.hpp"
#include "runtime/session/step_tensors.hpp"
#include "runtime/tap_tensors.hpp"
#include "runtime/whole_weights.hpp"
#include "support/elapsed.hpp"
#include "support/text.hpp"

namespace npu {
namespace {

/// A bundle is compiled, so that its programs hand out a tap, or nobody does.
void find_bundled_taps(const Graph& graph, const RunModelOptions& options, PreparedModel& model) {
  const std::vector<std::string> missing =
      take_taps(graph, model, tapped_names(graph, options.taps));
  if (!missing.empty()) {
    throw Error(ErrorCode::kUsage, "--tap: no program of the bundle hands out '" + missing.front() +
                                       "'; run the document");
  }
}

CompiledModel compile_bundled_again(const Bundle& bundle, const Graph& graph,
                                    const RunModelOptions& options, const PreparedModel& model,
                                    std::size_t entry) {
  const CompileOptions compile = compile_options(options);
  Diagnostics faults;
  std::vector<Tensor> weights = whole_weights(bundle, graph, options.weights, faults, entry);
  if (faults.has_errors()) {
    throw Error(ErrorCode::kInvalidGraph, "the bundle lacks weights", {.file = bundle.name()});
  }
  fold_constants(graph, model.target, compile, nullptr, weights);
  return compile_plan(graph, model.plan, model.target, weights, compile, nullptr, model.devices);
}

void check_precision(const Bundle& bundle, const RunModelOptions& options) {
  if (options.precision == bundle.precision()) return;
  throw Error(ErrorCode::kUsage, "--precision " + options.precision +
                                     ": the bundle is compiled for " + bundle.precision() +
                                     "; compile the model again");
}

/// Which of several documents runs is a matter of what they are for.
[[noreturn]] void refuse_documents(const Bundle& bundle) {
  std::string names;
  for (const BundleDocument& document : bundle.documents()) {
    names += (names.empty() ? "'" : ", '") + printable_text(document.name) + "'";
  }
  throw Error(
      ErrorCode::kUsage,
      "the bundle has several documents, " + names + ": run them with --generate or --score",
      {.file = bundle.name()});
}

}  // namespace

PreparedModel prepare_entry(const Bundle& bundle, std::size_t entry, Graph& graph,
                            const RunModelOptions& options, const OpenDevices& open,
                            Diagnostics& diagnostics) {
  check_precision(bundle, options);
  const auto start = Clock::now();
  PreparedModel model;
  model.devices = open;
  graph = read_graph(bundle.document(entry), bundle.name() + " (document)", diagnostics);
  if (diagnostics.has_errors()) return model;
  graph.file = bundle.name();
  if (graph.npu_member("partition") == nullptr) {
    throw Error(ErrorCode::kParse, "its document has no plan", {.file = bundle.name()});
  }
  // Backends that are not loaded yet take the bundle's level, so that it runs on a better CPU, too.
  const auto level = bundle_isa_level(bundle);
  if (level && *level < isa_level()) limit_isa_level(kIsaLevels[*level]);
  PlacedModel placed = read_placed(graph, diagnostics);
  warn_of_stated(graph, placed, options.where, diagnostics);
  model.target = std::move(placed.target);
  model.plan = std::move(placed.plan);
  if (diagnostics.has_errors()) return model;
  model.weights = bundled_weights(bundle, graph, entry);
  model.partitions = bundled_partitions(bundle, model.plan, model.target, entry);
  find_bundled_taps(graph, options, model);
  check_options(options, plain_outputs(graph).size() + model.taps.size(), model.target);
  check_bundled_blobs(model.partitions, model.target, reference_options(options), bundle.name(),
                      model.devices, diagnostics);
  model.ready_ms = bundle.open_ms() + milliseconds_since(start);
  model.bundle = {bundle.size(), bundle.open_ms(), bundle_cpu_family(bundle)};
  model.load_weights = [&bundle, &options, entry](const Graph& whole, Diagnostics& faults) {
    return whole_weights(bundle, whole, options.weights, faults, entry);
  };
  model.compile_again = [&bundle, &graph, &options, entry](const PreparedModel& of) {
    return compile_bundled_again(bundle, graph, options, of, entry);
  };
  return model;
}

PreparedModel prepare_bundle(const Bundle& bundle, Graph& graph, const RunModelOptions& options,
                             Diagnostics& diagnostics) {
  std::optional<SizedRequest> request;
  if (bundle.documents().size() > 1) refuse_documents(bundle);
  if (!bundle.template_document().empty()) {
    request = read_request(bundle, options, diagnostics);
    if (diagnostics.has_errors()) return {};
  }
  PreparedModel model =
      prepare_entry(bundle, request ? request->entry : 0, graph, options, {}, diagnostics);
  if (diagnostics.has_errors()) return model;
  model.request = std::move(request);
  model.inputs = model.request ? entry_inputs(graph, *model.request)
                               : gather_inputs(graph, options.inputs, options.random_inputs,
                                               diagnostics, options.steps);
  return model;
}

}  // namespace npu
