// SPDX-License-Identifier: Apache-2.0
// Measures the nodes of an ordinary model as they run inside partitions.
//
// Measuring a node by itself says little: in a model it is fused with others, and finds its
// operands in the caches and in the layout that its neighbours use. So whole placements are run:
// for every device the one in which it has all nodes that it runs. The rest (the time of a tensor
// from one device to another, the extra time of its readers) depends on where the borders are, so
// the best placement by the table so far is measured as well and the table is rebuilt, until that
// placement has been measured. Placements take turns in bursts of runs, each burst after an untimed
// run: a slow minute of the machine affects all of them, and none finds the caches as another left
// them.
//
// Cost: (placements * runs) runs of the model; memory: the weights of every placement, packed.
#include "profile/profile_model.hpp"

#include <algorithm>
#include <limits>
#include <memory>
#include <set>

#include "cost/measured_cost.hpp"
#include "cost/roofline.hpp"
#include "device/device_instance.hpp"
#include "npu/compile/compiler.hpp"
#include "npu/compile/fold_constants.hpp"
#include "npu/partition/partition_graph.hpp"
#include "npu/passes/tag.hpp"
#include "npu/runtime/executor.hpp"
#include "npu/support/log.hpp"
#include "ops/op_name.hpp"
#include "partition/placement/placement_problem.hpp"
#include "profile/host_fingerprint.hpp"
#include "profile/int8_times.hpp"
#include "profile/node_table_builder.hpp"
#include "profile/run_samples.hpp"
#include "runtime/random_tensor.hpp"
#include "support/elapsed.hpp"
#include "support/statistics.hpp"
#include "support/text.hpp"

namespace npu {
namespace {

constexpr std::int32_t kBurst = 5;
constexpr double kWorthwhile = 0.01;  // less than the noise of a machine

std::vector<std::string> devices_of(const Graph& graph) {
  std::vector<std::string> devices;
  for (const Node& node : graph.nodes()) devices.push_back(*node.device);
  return devices;
}

/// A placement with everything needed to run it.
struct Candidate {
  std::string name;
  std::string base_of;
  Graph graph;
  CompiledModel model;
  std::unique_ptr<Executor> executor;
  std::vector<RunSample> samples;
};

class ModelProfiler {
 public:
  ModelProfiler(const Graph& graph, const ProfileModelOptions& options,
                const ProgressCallback& progress, Diagnostics& diagnostics)
      : graph_(graph), options_(options), progress_(progress), diagnostics_(diagnostics) {}

  NodeTable run() {
    if (graph_.nodes().empty()) {
      throw Error(ErrorCode::kInvalidGraph, "the model has no nodes to measure",
                  {.file = graph_.file});
    }
    if (!tag()) return {};
    WeightSource source = options_.weights;
    if (source.file.empty() && !source.random_seed) source.file = weights_file_of(graph_);
    weights_ = load_weights(graph_, source, diagnostics_);
    if (diagnostics_.has_errors()) return {};
    fold_constants(graph_, target_, compile_options(), nullptr, weights_);
    for (const TensorId id : graph_.graph_inputs()) inputs_.push_back(random_input(graph_, id, 0));
    add_devices();
    if (!options_.only_first_device) measure_copies();
    measure_candidates();
    NodeTable table = make_table();
    for (std::int32_t i = 0; i < options_.refinements; ++i) {
      if (!add_best(table, i + 1)) break;
      measure_candidates();
      table = make_table();
    }
    return table;
  }

 private:
  bool tag() {
    const bool is_tagged = std::any_of(graph_.nodes().begin(), graph_.nodes().end(),
                                       [](const Node& node) { return node.device.has_value(); });
    if (is_tagged) {
      target_ = graph_target(graph_);
      if (!options_.target.empty() && options_.target != target_.name) {
        diagnostics_.warning({.file = graph_.file}, "--target " + options_.target +
                                                        " is ignored: the document is tagged for "
                                                        "target '" +
                                                        target_.name + "'");
      }
    } else {
      target_ = load_target(options_.target.empty() ? "host" : options_.target);
      tag_ops(graph_, target_, {}, diagnostics_);
    }
    // Measurements do not depend on the document's fusion groups.
    for (Node& node : graph_.nodes()) node.fusion_group.reset();
    for (const char* key : {"partition", "fusion"}) graph_.erase_npu_member(key);
    return !diagnostics_.has_errors();
  }

  void add_devices() {
    for (const Device& device : target_.devices) {
      if (device.backend.empty()) {
        throw Error(ErrorCode::kUnsupported, "device '" + device.name + "' of target '" +
                                                 target_.name +
                                                 "' has no backend: it is for planning only");
      }
      devices_.push_back({device.name, device.backend, 0});
    }
    const PlacementProblem problem = build_placement_problem(graph_, target_, roofline_cost());
    // The last device first: it runs what others do not, and is the baseline for them.
    for (std::size_t d = target_.devices.size(); d-- > 0;) {
      if (d > 0 && options_.only_first_device) continue;
      const std::string& name = target_.devices[d].name;
      Graph placed = graph_;
      for (std::size_t n = 0; n < placed.nodes().size(); ++n) {
        Node& node = placed.nodes()[n];
        if ((problem.node_devices[n] >> d & 1U) != 0) node.device = name;
        if (node.op_type != kGetitem || node.inputs.empty()) continue;
        const NodeId producer = placed.tensor(node.inputs.front()).producer;
        if (producer.valid()) node.device = placed.node(producer).device;
      }
      add_candidate("all on " + name, name, std::move(placed), Strategy::kConvex, roofline_cost());
    }
  }

  CompileOptions compile_options() const {
    CompileOptions compile;
    compile.precision = options_.precision;
    compile.threads = options_.threads;
    compile.jobs = 0;
    compile.layouts = true;  // as npu-run and npu-compile do, whose times these are to be
    return compile;
  }

  /// False if the placement is a candidate already.
  bool add_candidate(std::string name, const std::string& base_of, Graph graph, Strategy strategy,
                     const CostModel& cost) {
    PartitionOptions partition;
    partition.strategy = strategy;
    partition.cost = &cost;
    auto candidate = std::make_unique<Candidate>();
    candidate->name = std::move(name);
    candidate->base_of = base_of;
    candidate->graph = std::move(graph);
    Diagnostics notes;
    const PartitionPlan plan = partition_graph(candidate->graph, partition, notes).plan;
    const std::vector<std::string> asked = devices_of(candidate->graph);
    if (!placements_.insert(asked).second) return false;
    candidate->model =
        compile_graph(candidate->graph, plan, target_, weights_, compile_options(), nullptr);
    for (const Refusal& refusal : candidate->model.refusals) {
      diagnostics_.warning({.file = graph_.file}, std::to_string(refusal.nodes) + " nodes from '" +
                                                      refusal.first_node + "' on go to " +
                                                      refusal.to + ", since " + refusal.device +
                                                      " refuses them: " + refusal.reason);
    }
    placements_.insert(devices_of(candidate->graph));
    ExecutorOptions run;
    run.times = true;
    run.threads = options_.threads;
    for (const auto& [device, instance] : candidate->model.devices) {
      open_.emplace(device, instance);
    }
    candidate->executor =
        std::make_unique<Executor>(candidate->graph, candidate->model.plan, target_, weights_, run,
                                   candidate->model.partitions, open_);
    candidates_.push_back(std::move(candidate));
    return true;
  }

  /// Adds the best placement by the table; false if it has been measured, or promises next to no
  /// gain over those that have been.
  bool add_best(const NodeTable& table, std::int32_t number) {
    const MeasuredCost cost(table, graph_, target_);
    PartitionOptions partition;
    partition.strategy = Strategy::kMinCut;
    partition.cost = &cost;
    Graph placed = graph_;
    const double predicted = partition_graph(placed, partition).metrics.predicted_us;
    double best = std::numeric_limits<double>::infinity();
    for (const PlacementTime& placement : table.placements) {
      best = std::min(best, placement.predicted_us);
    }
    if (predicted > (1 - kWorthwhile) * best) return false;
    return add_candidate("mincut " + std::to_string(number), "", graph_, Strategy::kMinCut, cost);
  }

  void measure_candidates() {
    const auto rounds = (options_.runs + kBurst - 1) / kBurst;
    for (std::int32_t round = 0; round < rounds; ++round) {
      for (const auto& candidate : candidates_) {
        if (static_cast<std::int32_t>(candidate->samples.size()) >= options_.runs * 2) {
          continue;  // it has taken turns with enough others
        }
        tell(*candidate, rounds - round);
        burst(*candidate, std::min(kBurst, options_.runs - round * kBurst));
      }
    }
  }

  void burst(Candidate& candidate, std::int32_t runs) {
    const LogTimer timer(LogModule::kProfile);
    RunRecord record;
    for (std::int32_t run = candidate.samples.empty() ? -2 : -1; run < runs; ++run) {
      candidate.executor->run(inputs_, &record, true, true);
      if (run < 0) continue;
      candidate.samples.push_back(
          take_apart(candidate.graph, candidate.model.plan, candidate.model.partitions, record));
    }
    timer.done([&] { return candidate.name + ": " + std::to_string(runs) + " timed runs"; });
    ++done_;
  }

  void tell(const Candidate& candidate, std::int32_t rounds_left) {
    const std::int32_t total = done_ + rounds_left * static_cast<std::int32_t>(candidates_.size());
    report_progress(
        progress_, static_cast<double>(done_) / total,
        std::to_string(done_) + " of " + std::to_string(total) + " points, " + candidate.name);
  }

  /// Copies of tensors of several sizes to each device: for links that no placement uses.
  void measure_copies() {
    for (const auto& [name, instance] : open_) {
      for (std::int64_t bytes = 4096; bytes <= (std::int64_t{16} << 20); bytes *= 16) {
        const Tensor tensor(DType::kFloat32, {bytes / 4});
        std::vector<double> times;
        for (int run = 0; run < 7; ++run) {
          const auto start = Clock::now();
          const auto buffer = instance->import_tensor(tensor);
          times.push_back(microseconds_since(start));
        }
        const double time = median(std::move(times));
        for (const NodeTableDevice& from : devices_) {
          if (from.name == name) continue;
          copies_.push_back({from.name, name, static_cast<double>(bytes), time});
        }
      }
    }
  }

  NodeTable make_table() const {
    NodeTable table;
    table.model = graph_.model_name();
    table.model_digest = model_digest(graph_);
    table.target = target_.name;
    table.precision = options_.precision;
    table.threads = options_.threads;
    table.fingerprint = host_fingerprint(options_.threads);
    table.devices = devices_;
    std::vector<MeasuredPlacement> placements;
    for (const auto& candidate : candidates_) {
      placements.push_back({.name = candidate->name,
                            .graph = &candidate->graph,
                            .plan = &candidate->model.plan,
                            .partitions = &candidate->model.partitions,
                            .base_of = candidate->base_of,
                            .summary = summarize(candidate->samples)});
    }
    build_node_table(placements, copies_, target_, table);
    return table;
  }

  Graph graph_;
  const ProfileModelOptions& options_;
  const ProgressCallback& progress_;
  Diagnostics& diagnostics_;
  Target target_;
  std::vector<Tensor> weights_;
  std::vector<Tensor> inputs_;
  std::vector<NodeTableDevice> devices_;
  std::map<std::string, std::shared_ptr<DeviceInstance>> open_;
  std::vector<std::unique_ptr<Candidate>> candidates_;
  std::set<std::vector<std::string>> placements_;  // device of each node
  std::vector<CopySample> copies_;
  std::int32_t done_ = 0;
};

}  // namespace

NodeTable profile_model(const Graph& graph, const ProfileModelOptions& options,
                        const ProgressCallback& progress, Diagnostics& diagnostics) {
  std::optional<Graph> int8;  // first: ranges of another model are refused before minutes pass
  if (options.ranges) int8 = quantized_copy(graph, options, diagnostics);
  if (diagnostics.has_errors()) return {};
  NodeTable table = ModelProfiler(graph, options, progress, diagnostics).run();
  if (int8 && !diagnostics.has_errors()) {
    add_int8_times(graph, *int8, options, progress, diagnostics, table);
  }
  return table;
}

}  // namespace npu
