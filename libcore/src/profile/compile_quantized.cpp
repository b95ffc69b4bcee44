// SPDX-License-Identifier: Apache-2.0
// The operation behind npu-compile --quantize: calibrate, choose precisions, compile, compare.
//
// The comparison compiles the model in float32 as well and runs both, so that the error is that of
// the program that comes out, kernels included. Cost: one run a sample, those of the passes, two
// compiles, and two runs a compared sample; memory: the outputs of one sample.
#include "profile/compile_quantized.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "ir/restore_sizes.hpp"
#include "ir/states_section.hpp"
#include "npu/runtime/executor.hpp"
#include "profile/calibrate_model.hpp"
#include "profile/sample_files.hpp"
#include "quant/channel_extremes.hpp"
#include "runtime/entries/choose_entry.hpp"
#include "runtime/entries/sized_request.hpp"
#include "runtime/report_numbers.hpp"
#include "runtime/session/step_tensors.hpp"
#include "support/text.hpp"

namespace npu {
namespace {

/// A compiled model that runs.
class LoadedModel {
 public:
  LoadedModel(const Graph& graph, const CompileModelResult& compiled, const CompileOptions& options)
      : executor_(graph, compiled.model.plan, compiled.target, compiled.weights,
                  executor_options(options), compiled.model.partitions, compiled.model.devices) {}

  std::vector<Tensor> run(const std::vector<Tensor>& inputs) {
    return executor_.run(inputs, nullptr);
  }

 private:
  static ExecutorOptions executor_options(const CompileOptions& options) {
    ExecutorOptions execution;
    execution.threads = options.threads;
    execution.backend_options = options.backend_options;
    return execution;
  }

  Executor executor_;
};

/// The errors of one output.
class OutputError {
 public:
  void add(const Tensor& actual, const Tensor& expected) {
    const std::span<const float> found = float_values(actual, found_);
    const std::span<const float> wanted = float_values(expected, wanted_);
    for (std::size_t i = 0; i < std::min(found.size(), wanted.size()); ++i) {
      const double value = wanted[i];
      if (found[i] == wanted[i]) {
        if (std::isfinite(value)) signal_ += value * value;
        continue;
      }
      const double difference = double{found[i]} - value;
      signal_ += value * value;
      noise_ += difference * difference;
      // A NaN stays.
      if (!std::isnan(max_abs_) && !(std::abs(difference) <= max_abs_)) {
        max_abs_ = std::abs(difference);
      }
    }
    has_numbers_ = has_numbers_ || !wanted.empty();
  }

  bool has_numbers() const noexcept { return has_numbers_; }
  double max_abs() const noexcept { return max_abs_; }
  double snr_db() const {
    if (noise_ == 0) return std::numeric_limits<double>::infinity();
    return 10 * std::log10(signal_ / noise_);
  }

 private:
  double signal_ = 0;
  double noise_ = 0;
  double max_abs_ = 0;
  bool has_numbers_ = false;
  std::vector<float> found_;
  std::vector<float> wanted_;
};

/// The worse one of two, NaN being the worst.
double worse(double a, double b, bool is_greater_worse) {
  if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<double>::quiet_NaN();
  return is_greater_worse ? std::max(a, b) : std::min(a, b);
}

std::optional<FloatComparison> summary_of(const std::vector<OutputError>& outputs,
                                          std::int64_t samples) {
  std::optional<FloatComparison> summary;
  for (const OutputError& output : outputs) {
    if (!output.has_numbers()) continue;
    if (!summary) summary = {samples, output.snr_db(), output.max_abs()};
    summary->snr_db = worse(summary->snr_db, output.snr_db(), false);
    summary->max_abs = worse(summary->max_abs, output.max_abs(), true);
  }
  return summary;
}

/// What some states are behind each sample.
class StateRecorder {
 public:
  StateRecorder(const Graph& graph, const std::set<std::string>& names) {
    Diagnostics known;  // the reader has told them
    const std::vector<TensorId>& outputs = graph.graph_outputs();
    for (const State& state : read_states(graph, known)) {
      if (state.output.empty() || !names.contains(state.name)) continue;
      const auto found = std::find(outputs.begin(), outputs.end(), graph.find_tensor(state.output));
      states_.emplace_back(state.name, static_cast<std::size_t>(found - outputs.begin()));
    }
  }

  void add(std::int64_t samples, const std::vector<Tensor>& outputs) {
    std::vector<Tensor> values;
    for (const auto& [name, place] : states_) values.push_back(outputs[place]);
    if (!stack_) stack_.emplace(samples);
    stack_->add(values);
  }

  std::vector<NamedTensor> take() {
    std::vector<NamedTensor> named;
    if (!stack_) return named;
    std::vector<Tensor> values = stack_->take();
    for (std::size_t i = 0; i < states_.size(); ++i) {
      named.push_back({states_[i].first, std::move(values[i])});
    }
    return named;
  }

 private:
  std::vector<std::pair<std::string, std::size_t>> states_;  // with places among the outputs
  std::optional<OutputStack> stack_;
};

class QuantizedCompiler {
 public:
  QuantizedCompiler(Graph& graph, const CompileQuantizedOptions& options, Diagnostics& diagnostics)
      : graph_(graph), options_(options), diagnostics_(diagnostics) {}

  CompileQuantizedResult run() {
    const Graph original = graph_;
    if (!quantize()) return std::move(result_);
    return compile(original);
  }

  /// For the graph of a document, bound to `sizes`.
  QuantizedDocument run(DocumentToCompile document, const SizeBindings& sizes) {
    const Graph original = graph_;
    QuantizedDocument quantized{std::move(document), {}};
    if (!quantize()) return quantized;
    std::optional<Template>& model = quantized.document.model;
    if (model) {
      model = restored_template(*model, graph_, sizes, diagnostics_);
    } else {
      quantized.document.graph = graph_;
    }
    if (!diagnostics_.has_errors()) quantized.sample = compile(original);
    return quantized;
  }

 private:
  CompileQuantizedResult compile(const Graph& original) {
    result_.model = compile_model(graph_, options_.model, diagnostics_);
    if (diagnostics_.has_errors()) return std::move(result_);
    compare(original);
    return std::move(result_);
  }

  /// False if there are errors.
  bool quantize() {
    const ProgressCallback& tell = options_.model.compile.control.progress;
    CalibrateOptions calibrate;
    calibrate.samples = options_.samples;
    calibrate.states = options_.states;
    calibrate.factors = options_.factors;
    calibrate.target = options_.model.where.target;
    calibrate.weights = options_.model.weights;
    calibrate.threads = options_.model.compile.threads;
    // Only a budget of errors asks for those of each op.
    if (!options_.precision.max_error) calibrate.error_samples = 0;
    StateRecorder recorder(graph_, options_.wanted_states);
    calibrate.outputs = [&](std::int64_t samples, const std::vector<Tensor>& outputs) {
      recorder.add(samples, outputs);
    };
    const TensorRanges ranges = calibrate_model(
        graph_, calibrate,
        [&](double done, const std::string& what) {
          return !tell || tell(done, "calibration, " + what);
        },
        diagnostics_);
    if (diagnostics_.has_errors()) return false;
    result_.states = recorder.take();
    result_.factors = weight_factors(graph_, ranges);
    QuantizeOptions precision = options_.precision;
    precision.target = options_.model.where.target;
    // Unlike a document, a bundle is for this machine.
    if (precision.target.empty()) precision.target = "host";
    result_.precision = quantize_model(graph_, ranges, precision, diagnostics_);
    return !diagnostics_.has_errors();
  }

  void compare(const Graph& original) {
    Graph graph = original;
    CompileModelOptions options = options_.model;
    options.compile.precision = "f32";
    options.measure_precision = false;
    Diagnostics ignored;  // the same as those of the model itself
    const CompileModelResult exact = compile_model(graph, options, ignored);
    const SampleFiles samples(graph, options_.samples, options_.states, ignored);
    LoadedModel reference(graph, exact, options.compile);
    LoadedModel model(graph_, result_.model, options_.model.compile);
    const std::int64_t count = std::min(samples.count(), options_.compared_samples);
    std::vector<OutputError> errors(graph.graph_outputs().size());
    for (std::int64_t sample = 0; sample < count; ++sample) {
      const std::vector<Tensor> inputs = samples.read(sample);
      const std::vector<Tensor> found = model.run(inputs);
      const std::vector<Tensor> expected = reference.run(inputs);
      for (std::size_t o = 0; o < errors.size(); ++o) errors[o].add(found[o], expected[o]);
    }
    result_.error = summary_of(errors, count);
  }

  Graph& graph_;
  const CompileQuantizedOptions& options_;
  Diagnostics& diagnostics_;
  CompileQuantizedResult result_;
};

}  // namespace

CompileQuantizedResult compile_quantized(Graph& graph, const CompileQuantizedOptions& options,
                                         Diagnostics& diagnostics) {
  return QuantizedCompiler(graph, options, diagnostics).run();
}

SizeBindings sample_sizes(const Template& model, const std::vector<InputFile>& samples) {
  auto shapes = shapes_in(samples, model);
  for (auto& [name, shape] : shapes) {
    const SizeShape* stated = model.shape(name);
    // The samples of a file lie one behind the other.
    if (stated != nullptr && shape.size() == stated->size() + 1) shape.erase(shape.begin());
  }
  SizeBindings sizes;
  for (const auto& [name, asked] : asked_sizes(model, shapes, {})) sizes[name] = asked.value;
  if (const std::string unbound = model.symbols().unbound_text(sizes); !unbound.empty()) {
    throw Error(ErrorCode::kUsage, "--calibrate: no sample says all sizes: " + unbound,
                {.file = model.file()});
  }
  if (const auto fault = model.symbols().fault(sizes)) {
    throw Error(ErrorCode::kUsage, "--calibrate: " + *fault, {.file = model.file()});
  }
  return sizes;
}

QuantizedDocument quantize_document(DocumentToCompile document,
                                    const CompileQuantizedOptions& options,
                                    Diagnostics& diagnostics) {
  SizeBindings sizes;
  if (document.model) {
    sizes = sample_sizes(*document.model, options.samples);
    document.graph = bind_sizes(*document.model, sizes, diagnostics);
    if (diagnostics.has_errors()) return {std::move(document), {}};
  }
  Graph graph = std::exchange(document.graph, {});
  return QuantizedCompiler(graph, options, diagnostics).run(std::move(document), sizes);
}

std::string quantized_summary(const CompileQuantizedResult& result) {
  const double share = compile_metrics(result.model.report).at("int8_macs");
  std::string text = "int8: " + fixed_text(100 * share, 1) + " % of the multiply-adds";
  if (!result.precision.weights_reason.empty()) text += "; " + result.precision.weights_reason;
  if (!result.error) return text;
  const bool is_equal = std::isinf(result.error->snr_db) && result.error->snr_db > 0;
  return text + "; against float on " + std::to_string(result.error->samples) +
         (result.error->samples == 1 ? " sample" : " samples") + ": SNR " +
         (is_equal ? "infinite" : fixed_text(result.error->snr_db, 1) + " dB") +
         ", largest error " + scientific_text(result.error->max_abs);
}

std::map<std::string, double> compile_quantized_metrics(const CompileQuantizedResult& result) {
  std::map<std::string, double> metrics = compile_metrics(result.model.report);
  metrics.merge(quantize_metrics(result.precision));
  if (result.error) {
    metrics["snr_db"] = result.error->snr_db;
    metrics["max_abs_error"] = result.error->max_abs;
  }
  return metrics;
}

}  // namespace npu
