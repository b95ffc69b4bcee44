// SPDX-License-Identifier: Apache-2.0
// Makes a document ready to run: places it, finds its weights and compiles it, through the cache. A
// result that is to be kept, and that no program hands out so, becomes an output, and all of it is
// done again: at most once for each result. The cost is that of the backends.
#include <algorithm>
#include <memory>
#include <utility>

#include "npu/compile/cache.hpp"
#include "npu/compile/fold_constants.hpp"
#include "npu/runtime/weight_store.hpp"
#include "npu/support/log.hpp"
#include "runtime/executor/tap_places.hpp"
#include "runtime/place_model.hpp"
#include "runtime/prepared_model.hpp"
#include "runtime/run_inputs.hpp"
#include "runtime/run_options.hpp"
#include "runtime/session/step_tensors.hpp"
#include "runtime/tap_tensors.hpp"

namespace npu {
namespace {

void add_all(const Diagnostics& from, Diagnostics& to) {
  for (const Diagnostic& entry : from.entries()) {
    switch (entry.level) {
      case Level::kError:
        to.error(entry.location, entry.text);
        break;
      case Level::kWarning:
        to.warning(entry.location, entry.text);
        break;
      case Level::kNote:
        to.note(entry.location, entry.text);
        break;
    }
  }
}

/// A document on its way to a run.
class DocumentPreparation {
 public:
  DocumentPreparation(Graph& graph, const RunModelOptions& options, WithInputs with_inputs)
      : graph_(graph),
        options_(options),
        with_inputs_(with_inputs),
        weights_(options.weights),
        cache_(std::make_shared<CompileCache>(options.cache)),
        taps_(tapped_names(graph, options.taps)) {
    // A seed asks for random weights; the file that the document names is then not needed.
    if (weights_.file.empty() && !weights_.random_seed) weights_.file = weights_file_of(graph);
  }

  PreparedModel run(Diagnostics& diagnostics) {
    Graph stated = taps_.empty() ? Graph() : graph_;
    for (;;) {
      const std::vector<std::string> missing = prepare(diagnostics);
      if (missing.empty()) break;
      // Its programs and weights would stay beside those of the next round.
      const double ready_ms = model_.ready_ms;
      model_ = {};
      model_.ready_ms = ready_ms;
      add_outputs(stated, missing);
      graph_ = stated;
      std::erase_if(taps_, [&](const std::string& name) {
        return std::find(missing.begin(), missing.end(), name) != missing.end();
      });
      for (const std::string& name : missing) {
        output_rows_.push_back({name, TapSummary::From::kOutput});
      }
    }
    model_.tap_rows.insert(model_.tap_rows.begin(), output_rows_.begin(), output_rows_.end());
    if (inputs_) model_.inputs = std::move(*inputs_);
    model_.load_weights = [source = weights_](const Graph& graph, Diagnostics& faults) {
      return load_weights(graph, source, faults);
    };
    model_.compile_again = [&graph = graph_, &options = options_,
                            cache = cache_](const PreparedModel& model) {
      return compile_plan(graph, model.plan, model.target, model.weights, compile_options(options),
                          cache.get(), model.devices);
    };
    return std::move(model_);
  }

 private:
  /// A round; returns the taps that nothing hands out so.
  std::vector<std::string> prepare(Diagnostics& diagnostics) {
    Diagnostics found;  // what holds of a round that another one follows holds of that, too
    const auto tell_of_cache = [&] {
      for (const std::string& warning : cache_->take_warnings()) diagnostics.warning({}, warning);
    };
    std::vector<std::string> missing;
    try {
      missing = place_and_compile(found);
    } catch (...) {
      tell_of_cache();
      add_all(found, diagnostics);
      throw;
    }
    tell_of_cache();
    if (missing.empty()) add_all(found, diagnostics);
    return missing;
  }

  /// If the plan alone shows that a tap is missing, nothing is compiled.
  std::vector<std::string> place_and_compile(Diagnostics& diagnostics) {
    PlacedModel placed = place_model(graph_, options_.where, options_.load_ops, diagnostics);
    if (diagnostics.has_errors()) return {};
    std::vector<std::string> missing = untapped_names(graph_, placed.plan, placed.target, taps_);
    if (!missing.empty()) return missing;
    compile(std::move(placed), diagnostics);
    if (diagnostics.has_errors()) return {};
    missing = take_taps(graph_, model_, taps_);
    if (!missing.empty()) {
      log(LogModule::kRun, LogLevel::kInfo, [&] {
        return "compiled again for results that no program hands out: " +
               std::to_string(missing.size());
      });
    }
    return missing;
  }

  /// Nothing is compiled if there is a fault.
  void compile(PlacedModel placed, Diagnostics& diagnostics) {
    model_.target = std::move(placed.target);
    check_options(options_, plain_outputs(graph_).size() + taps_.size(), model_.target);
    if (!inputs_ && with_inputs_ == WithInputs::kYes) {
      inputs_ = gather_inputs(graph_, options_.inputs, options_.random_inputs, of_inputs_,
                              options_.steps);
    }
    add_all(of_inputs_, diagnostics);
    model_.weights = load_weights(graph_, weights_, diagnostics);
    if (diagnostics.has_errors()) return;
    CompileOptions compile = compile_options(options_);
    compile.layouts = true;
    FoldedConstants folded =
        fold_constants(graph_, model_.target, compile, cache_.get(), model_.weights);
    // A plan that was asked for is not changed.
    CompiledModel compiled = placed.by_cost()
                                 ? compile_graph(graph_, placed.plan, model_.target, model_.weights,
                                                 compile, cache_.get(), folded.devices)
                                 : compile_plan(graph_, placed.plan, model_.target, model_.weights,
                                                compile, cache_.get(), folded.devices);
    folded.devices.clear();  // one that is lost must have no other owner when it is opened again
    warn_of_refusals(graph_, compiled, diagnostics);
    model_.plan = std::move(compiled.plan);
    model_.partitions = std::move(compiled.partitions);
    model_.devices = std::move(compiled.devices);
    model_.ready_ms += folded.ms + compiled.compile_ms;
    model_.compile = {.ms = compiled.compile_ms,
                      .cache_enabled = cache_->enabled(),
                      .cache_hits = compiled.cache_hits,
                      .cache_misses = compiled.cache_misses};
    model_.note = std::move(placed.note);
  }

  Graph& graph_;
  const RunModelOptions& options_;
  const WithInputs with_inputs_;
  WeightSource weights_;
  std::shared_ptr<CompileCache> cache_;
  std::optional<std::vector<Tensor>> inputs_;
  Diagnostics of_inputs_;
  std::vector<std::string> taps_;        // that programs are to hand out
  std::vector<TapSummary> output_rows_;  // of those that are outputs
  PreparedModel model_;
};

}  // namespace

PreparedModel prepare_document(Graph& graph, const RunModelOptions& options,
                               Diagnostics& diagnostics, WithInputs with_inputs) {
  return DocumentPreparation(graph, options, with_inputs).run(diagnostics);
}

}  // namespace npu
