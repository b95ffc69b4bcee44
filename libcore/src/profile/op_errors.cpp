// SPDX-License-Identifier: Apache-2.0
// Runs a model with one op after the other in int8.
//
// The error of an op is the mean over the outputs of |y' - y|^2 / |y|^2, with sums over all
// samples: relative, so that outputs of different sizes count the same. Where y is not finite
// nothing is compared; where only y' is not, the error is the greatest one. O(ops * samples) runs;
// memory: the inputs of the samples, and their outputs in float and with one op in int8.
#include "profile/op_errors.hpp"

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <utility>

#include "npu/runtime/weight_store.hpp"
#include "npu/support/ids.hpp"
#include "passes/quantize/precision_problem.hpp"
#include "passes/quantize/precision_rewrite.hpp"
#include "target/quantization_rules.hpp"
#include "target/support_check.hpp"

namespace npu {
namespace {

using quantize::Allowed;
using quantize::PrecisionProblem;
using Outputs = std::vector<Tensor>;

class OpErrorMeter {
 public:
  OpErrorMeter(const OpErrorRuns& runs, const TensorRanges& ranges, Diagnostics& diagnostics)
      : runs_(runs),
        ranges_(ranges),
        diagnostics_(diagnostics),
        problem_(quantize::build_precision_problem(*runs.graph, ranges)),
        rules_(target_rules(*runs.target)),
        devices_(runs.devices) {
    for (const TensorInfo& tensor : runs.graph->tensors()) {
      if (tensor.kind != TensorKind::kWeight) continue;
      const TensorId id = runs.graph->find_tensor(tensor.name);
      by_name_.emplace(tensor.name, (*runs.weights)[index_of(id)]);
    }
  }

  std::vector<OpError> run(const std::function<void(std::int64_t, std::int64_t)>& tell) {
    std::vector<std::size_t> units;
    for (std::size_t u = 0; u < problem_.units.size(); ++u) {
      if (problem_.units[u].allowed != Allowed::kFloat) units.push_back(u);
    }
    std::vector<OpError> errors;
    if (units.empty() || !find_reference()) return errors;
    for (std::size_t i = 0; i < units.size(); ++i) {
      tell(static_cast<std::int64_t>(i), static_cast<std::int64_t>(units.size()));
      const Graph graph = with_int8(units[i]);
      if (!runs_all(graph)) return {};
      const NodeId first = problem_.units[units[i]].members.front();
      errors.push_back({runs_.graph->node(first).name, error_of(run_samples(graph))});
    }
    return errors;
  }

 private:
  /// False if no output has numbers to compare.
  bool find_reference() {
    for (std::int64_t sample = 0; sample < runs_.count; ++sample) {
      inputs_.push_back(runs_.samples->read(sample));
    }
    reference_ = run_samples(*runs_.graph);
    power_.assign(runs_.graph->graph_outputs().size(), 0);
    for (const Outputs& outputs : reference_) {
      for (std::size_t o = 0; o < outputs.size(); ++o) {
        if (!is_floating_point(outputs[o].dtype())) continue;
        for (std::int64_t i = 0; i < outputs[o].element_count(); ++i) {
          const double value = outputs[o].value_as_double(i);
          if (std::isfinite(value)) power_[o] += value * value;
        }
      }
    }
    return std::any_of(power_.begin(), power_.end(), [](double power) { return power > 0; });
  }

  Graph with_int8(std::size_t unit) const {
    quantize::PrecisionChoice choice;
    choice.int8.assign(problem_.units.size(), 0);
    choice.int8[unit] = 1;
    // Where an op in front takes the factors in, a multiplication has the same error.
    choice.smoothing = plan_smoothing(*runs_.graph, problem_, choice.int8, ranges_, 0);
    Graph graph = *runs_.graph;
    insert_conversions(graph, problem_, choice,
                       choose_params(graph, problem_, choice, ranges_, {}, rules_), ranges_,
                       rules_);
    return graph;
  }

  bool runs_all(const Graph& graph) {
    const Device& device = *runs_.target->find_device(runs_.device);
    for (const NodeId id : ids_of<NodeId>(graph.nodes())) {
      if (check_support(graph, id, device).supported) continue;
      diagnostics_.warning({.file = graph.file}, "errors of ops are not recorded: device '" +
                                                     runs_.device + "' does not run " +
                                                     graph.node(id).op_type);
      return false;
    }
    return true;
  }

  std::vector<Outputs> run_samples(const Graph& graph) {
    std::vector<Tensor> weights(graph.tensors().size());
    for (std::size_t t = 0; t < weights.size(); ++t) {
      const TensorInfo& tensor = graph.tensors()[t];
      if (tensor.kind != TensorKind::kWeight) continue;
      const auto known = by_name_.find(tensor.name);
      weights[t] = known != by_name_.end() ? known->second : constant_tensor(graph, tensor);
    }
    const PartitionPlan plan = single_partition_plan(graph, runs_.device);
    Executor executor =
        compile_and_load(graph, plan, *runs_.target, weights, runs_.execution, devices_);
    devices_ = executor.devices();
    std::vector<Outputs> all;
    for (const std::vector<Tensor>& inputs : inputs_) {
      all.push_back(executor.run(inputs, nullptr));
    }
    return all;
  }

  double error_of(const std::vector<Outputs>& found) const {
    double sum = 0;
    double outputs = 0;
    for (std::size_t o = 0; o < power_.size(); ++o) {
      if (power_[o] <= 0) continue;
      double error = 0;
      for (std::size_t s = 0; s < found.size(); ++s) {
        for (std::int64_t i = 0; i < found[s][o].element_count(); ++i) {
          const double expected = reference_[s][o].value_as_double(i);
          const double difference = found[s][o].value_as_double(i) - expected;
          if (std::isfinite(expected)) error += difference * difference;
        }
      }
      sum += error / power_[o];
      ++outputs;
    }
    // NaN is no error that a document can state either.
    const double mean = sum / outputs;
    return mean <= OpError::kMostPower ? mean : OpError::kMostPower;
  }

  const OpErrorRuns& runs_;
  const TensorRanges& ranges_;
  Diagnostics& diagnostics_;
  PrecisionProblem problem_;
  QuantizationRules rules_;
  std::unordered_map<std::string, Tensor> by_name_;
  OpenDevices devices_;
  std::vector<std::vector<Tensor>> inputs_;  // by sample
  std::vector<Outputs> reference_;           // by sample
  std::vector<double> power_;                // by output
};

}  // namespace

std::vector<OpError> measure_op_errors(const OpErrorRuns& runs, const TensorRanges& ranges,
                                       const std::function<void(std::int64_t, std::int64_t)>& tell,
                                       Diagnostics& diagnostics) {
  return OpErrorMeter(runs, ranges, diagnostics).run(tell);
}

}  // namespace npu
