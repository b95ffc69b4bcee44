// SPDX-License-Identifier: Apache-2.0
// Records what the tensors of a model hold when it runs on samples.
//
// All results become outputs of one partition on one device, where the whole model runs: a sample
// is one run, whose results are counted and dropped before the next one. Cost: a run and a few
// passes over the activations for each sample; memory: the activations of one sample, and a
// histogram and the extremes of the channels for each tensor.
#include "profile/calibrate_model.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <set>
#include <utility>

#include "cost/node_table.hpp"
#include "npu/compile/fold_constants.hpp"
#include "npu/runtime/executor.hpp"
#include "npu/support/ids.hpp"
#include "ops/op_catalogue.hpp"
#include "profile/op_errors.hpp"
#include "profile/product_ranges.hpp"
#include "profile/sample_files.hpp"
#include "quant/channel_extremes.hpp"
#include "quant/choose_range.hpp"
#include "quant/weight_operand.hpp"
#include "runtime/tap_tensors.hpp"
#include "support/text.hpp"
#include "target/support_check.hpp"

namespace npu {
namespace {

constexpr double kNewShare = 0.01;
constexpr std::int64_t kMostChannels = 65536;

/// The last device of the target that runs the whole graph.
const Device& device_for_all(const Graph& graph, const Target& target) {
  for (std::size_t d = target.devices.size(); d-- > 0;) {
    const Device& device = target.devices[d];
    const auto ids = ids_of<NodeId>(graph.nodes());
    if (!device.backend.empty() && runs_all(graph, ids, device)) return device;
  }
  throw Error(ErrorCode::kUnsupported,
              "no device of target '" + target.name + "' that has a backend runs the whole model");
}

/// The results with floating-point numbers, which have no place among the outputs yet.
std::vector<TensorId> hidden_results(const Graph& graph) {
  std::set<TensorId> outputs(graph.graph_outputs().begin(), graph.graph_outputs().end());
  std::vector<TensorId> hidden;
  for (const Node& node : graph.nodes()) {
    for (const TensorId id : node.outputs) {
      if (is_floating_point(graph.tensor(id).dtype) && outputs.insert(id).second) {
        hidden.push_back(id);
      }
    }
  }
  return hidden;
}

/// Where the channels of a tensor are: at the end for matrix products; else behind the batch in
/// convolutional models, and at the end in others.
std::int32_t channel_axis(const Graph& graph, TensorId id) {
  const TensorInfo& tensor = graph.tensor(id);
  const auto rank = static_cast<std::int32_t>(tensor.shape.size());
  const auto is_convolution = [&](NodeId node) {
    return fusion_role(graph.node(node).op_type) == FusionRole::kConv;
  };
  if (is_read_by_matrix_product(graph, id)) {
    return rank >= 1 && tensor.shape[index_of(rank - 1)] <= kMostChannels ? rank - 1 : -1;
  }
  const bool is_image =
      rank >= 4 || (rank == 3 && (std::any_of(tensor.consumers.begin(), tensor.consumers.end(),
                                              is_convolution) ||
                                  (tensor.producer.valid() && is_convolution(tensor.producer))));
  const std::int32_t axis = is_image ? 1 : rank - 1;
  return axis >= 0 && tensor.shape[index_of(axis)] <= kMostChannels ? axis : -1;
}

class Calibrator {
 public:
  Calibrator(const Graph& graph, const CalibrateOptions& options, const ProgressCallback& progress,
             Diagnostics& diagnostics)
      : graph_(graph), options_(options), progress_(progress), diagnostics_(diagnostics) {}

  TensorRanges run() {
    ranges_.model = graph_.model_name();
    ranges_.model_digest = model_digest(graph_);
    const SampleFiles samples(graph_, options_.samples, options_.states, diagnostics_);
    const bool has_target = graph_.npu_member("target") != nullptr;
    const Target target = has_target && options_.target.empty()
                              ? graph_target(graph_)
                              : load_target(options_.target.empty() ? "host" : options_.target);
    WeightSource source = options_.weights;
    if (source.file.empty() && !source.random_seed) source.file = weights_file_of(graph_);
    std::vector<Tensor> weights = load_weights(graph_, source, diagnostics_);
    if (diagnostics_.has_errors()) return {};
    for (Node& node : graph_.nodes()) node.fusion_group.reset();
    for (const char* key : {"partition", "fusion", "layout"}) graph_.erase_npu_member(key);
    CompileOptions compile;
    compile.threads = options_.threads;
    devices_ = fold_constants(graph_, target, compile, nullptr, weights).devices;
    const Graph original = graph_;
    add_outputs(graph_, hidden_results(graph_));
    ranges_.samples = samples.count();
    run_samples(samples, target, by_name(original, weights));
    ranges_.index();
    if (options_.error_samples > 0) measure_errors(original, samples, target, weights);
    return std::move(ranges_);
  }

 private:
  /// The weights of the same model under the ids of the graph with more outputs.
  std::vector<Tensor> by_name(const Graph& original, const std::vector<Tensor>& weights) const {
    std::vector<Tensor> result(graph_.tensors().size());
    for (std::size_t t = 0; t < result.size(); ++t) {
      result[t] = weights[index_of(original.find_tensor(graph_.tensors()[t].name))];
    }
    return result;
  }

  void run_samples(const SampleFiles& samples, const Target& target,
                   const std::vector<Tensor>& weights) {
    add_weights(weights);
    const PartitionPlan plan = single_partition_plan(graph_, device_for_all(graph_, target).name);
    ExecutorOptions execution;
    execution.threads = options_.threads;
    Executor executor = compile_and_load(graph_, plan, target, weights, execution, devices_);
    devices_ = executor.devices();
    list_tensors();
    for (std::int64_t sample = 0; sample < samples.count(); ++sample) {
      tell("samples", sample, samples.count());
      const std::vector<Tensor> inputs = samples.read(sample);
      const std::vector<Tensor> outputs = executor.run(inputs, nullptr);
      if (options_.outputs) options_.outputs(samples.count(), outputs);
      for (std::size_t i = 0; i < places_.size(); ++i) {
        const auto [is_input, place] = places_[i];
        record(i, (is_input ? inputs : outputs)[place], sample == 0);
      }
    }
    check_finite();
    add_products(graph_, weights, moments_, options_.factors, ranges_);
  }

  /// A tensor that held no number in any sample has no range. One that was infinite throughout may
  /// be meant so, such as a mask; not if it is an input.
  void check_finite() const {
    for (std::size_t i = 0; i < ranges_.tensors.size(); ++i) {
      const TensorRange& range = ranges_.tensors[i];
      const bool is_suspect = places_[i].first || has_nan_[i] != 0;
      if (range.histogram.count() > 0 || range.histogram.non_finite() == 0 || !is_suspect) continue;
      throw Error(ErrorCode::kInvalidGraph,
                  "tensor '" + range.name + "' has no range: no number of it was finite in " +
                      std::to_string(ranges_.samples) +
                      (ranges_.samples == 1 ? " sample" : " samples"),
                  {.file = options_.samples.front().path});
    }
  }

  void measure_errors(const Graph& graph, const SampleFiles& samples, const Target& target,
                      const std::vector<Tensor>& weights) {
    OpErrorRuns runs{.graph = &graph,
                     .weights = &weights,
                     .target = &target,
                     .device = device_for_all(graph, target).name,
                     .execution = {},
                     .devices = devices_,
                     .samples = &samples,
                     .count = std::min(options_.error_samples, samples.count())};
    runs.execution.threads = options_.threads;
    ranges_.errors = measure_op_errors(
        runs, ranges_,
        [&](std::int64_t done, std::int64_t total) { tell("errors of ops", done, total); },
        diagnostics_);
  }

  void list_tensors() {
    std::set<TensorId> listed;
    for (const bool is_input : {true, false}) {
      const auto& list = is_input ? graph_.graph_inputs() : graph_.graph_outputs();
      for (std::size_t i = 0; i < list.size(); ++i) {
        const TensorInfo& tensor = graph_.tensor(list[i]);
        const bool is_new = listed.insert(list[i]).second;
        if (!is_new || !is_floating_point(tensor.dtype) || tensor.kind == TensorKind::kWeight) {
          continue;
        }
        places_.emplace_back(is_input, i);
        TensorRange range;
        range.name = tensor.name;
        range.shape = tensor.shape;
        range.channels.axis = channel_axis(graph_, list[i]);
        ranges_.tensors.push_back(std::move(range));
        const bool is_factor =
            ranges_.tensors.back().channels.axis >= 0 && is_read_by_product(graph_, list[i]);
        takes_moments_.push_back(is_factor ? 1 : 0);
      }
    }
    moments_.resize(ranges_.tensors.size());
    has_nan_.resize(ranges_.tensors.size());
  }

  void record(std::size_t place, const Tensor& tensor, bool is_first) {
    TensorRange& range = ranges_.tensors[place];
    const std::span<const float> values = float_values(tensor, buffer_);
    const auto [low, high] = range.histogram.add(values);
    if (range.histogram.count() == 0 && has_nan_[place] == 0) {
      has_nan_[place] =
          std::any_of(values.begin(), values.end(), [](float value) { return std::isnan(value); });
    }
    if (range.channels.axis >= 0) add_extremes(values, range.shape, range.channels);
    if (takes_moments_[place] != 0) {
      add_moments(values, range.shape, range.channels.axis, moments_[place]);
    }
    const double share = is_first ? 1 : kNewShare;
    range.average_low += share * (double{low} - range.average_low);
    range.average_high += share * (double{high} - range.average_high);
  }

  void add_weights(const std::vector<Tensor>& weights) {
    std::set<std::pair<TensorId, std::int32_t>> done;
    for (const Node& node : graph_.nodes()) {
      const auto operand = weight_operand(graph_, node);
      if (!operand || !done.emplace(operand->tensor, operand->axis).second) continue;
      WeightRange range{.name = graph_.tensor(operand->tensor).name, .channels = {}};
      range.channels.axis = operand->axis;
      const Tensor& weight = weights[index_of(operand->tensor)];
      add_extremes(float_values(weight, buffer_), weight.shape(), range.channels);
      ranges_.weights.push_back(std::move(range));
    }
  }

  void tell(const char* what, std::int64_t done, std::int64_t total) const {
    report_progress(progress_, static_cast<double>(done) / static_cast<double>(total),
                    std::to_string(done) + " of " + std::to_string(total) + " points, " + what);
  }

  Graph graph_;
  const CalibrateOptions& options_;
  const ProgressCallback& progress_;
  Diagnostics& diagnostics_;
  TensorRanges ranges_;
  std::vector<std::pair<bool, std::size_t>> places_;  // by tensor: input or output, and which
  std::vector<char> takes_moments_;                   // by tensor
  std::vector<ChannelMoments> moments_;               // likewise
  std::vector<char> has_nan_;                         // likewise, where nothing was finite
  std::vector<float> buffer_;
  OpenDevices devices_;
};

std::string range_text(const NumberRange& range) {
  return fixed_text(range.low, 4) + " " + fixed_text(range.high, 4);
}

}  // namespace

TensorRanges calibrate_model(const Graph& graph, const CalibrateOptions& options,
                             const ProgressCallback& progress, Diagnostics& diagnostics) {
  return Calibrator(graph, options, progress, diagnostics).run();
}

std::string format_tensor_ranges(const TensorRanges& ranges) {
  std::vector<std::vector<std::string>> rows{
      {"tensor", ">minmax", ">average", ">percentile", ">entropy", ">mse"}};
  for (const TensorRange& tensor : ranges.tensors) {
    std::vector<std::string> row{tensor.name};
    for (const char* method : {"minmax", "average", "percentile", "entropy", "mse"}) {
      row.push_back(range_text(choose_range(tensor, CalibrationMethod::parse(method), {})));
    }
    rows.push_back(std::move(row));
  }
  std::string text = "samples: " + std::to_string(ranges.samples) + "\n" + table_text(rows);
  if (ranges.errors.empty()) return text;
  rows = {{"op alone in int8", ">error power", ">SNR dB"}};
  for (const OpError& error : ranges.errors) {
    char power[32];
    std::snprintf(power, sizeof power, "%.3e", error.power);
    rows.push_back({error.node, power,
                    error.power > 0 ? fixed_text(-10 * std::log10(error.power), 1) : "inf"});
  }
  return text + table_text(rows);
}

}  // namespace npu
