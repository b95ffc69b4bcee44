// SPDX-License-Identifier: Apache-2.0
// Measures the rates of a target's devices on this machine, for the roofline model.
//
// All probes (machine_probes.hpp) are compiled first and then run in turns, round by round, until
// the time is up: a slow moment of the machine affects all of them. Other load can only add time,
// so the least time of a model counts; the spread of the rounds is reported. Rates follow from
// differences, in an order in which each needs only known ones: nodes, then launches and latencies,
// then arithmetic and memory, then copies.
//
// Cost: the time asked for, or three rounds if that is longer; some 200 MB of tensors. Leaves out
// how rates fall when both devices work at the same time.
#include "profile/profile_machine.hpp"

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <memory>
#include <tuple>

#include "device/device_instance.hpp"
#include "npu/compile/compiler.hpp"
#include "npu/partition/partition_graph.hpp"
#include "npu/runtime/executor.hpp"
#include "npu/support/log.hpp"
#include "npu/target/target.hpp"
#include "profile/host_fingerprint.hpp"
#include "profile/machine_probes.hpp"
#include "profile/machine_rates.hpp"
#include "profile/machine_watch.hpp"
#include "runtime/random_tensor.hpp"
#include "support/elapsed.hpp"
#include "support/statistics.hpp"
#include "support/text.hpp"

namespace npu {
namespace {

constexpr std::int32_t kMinRounds = 3;
constexpr std::int32_t kTurns = 40;      // small additions that change device
constexpr std::int32_t kLargeTurns = 4;  // layers that do

/// A model that is ready to run, and the times of its runs.
struct Subject {
  std::string name;
  Graph graph;
  CompiledModel model;
  std::vector<Tensor> weights;
  std::vector<Tensor> inputs;
  std::unique_ptr<Executor> executor;
  std::vector<double> us;
  /// For models with several partitions, by device: the least median of its steps.
  std::map<std::string, double> launch_us;
  std::map<std::string, double> copy_us;
};

/// A probe on a device. Null subjects: the device refuses it.
struct Pair {
  MachineProbe probe;
  Subject* longer = nullptr;
  Subject* shorter = nullptr;

  bool runs() const { return longer != nullptr && shorter != nullptr; }
  ProbeTime time() const {
    const ProbeWork work = work_of(probe);
    return {
        .longer_us = least(longer->us),
        .shorter_us = least(shorter->us),
        .spread = median_absolute_deviation(longer->us, median(longer->us)) / median(longer->us),
        .nodes = work.nodes,
        .flops = work.flops,
        .bytes = work.bytes};
  }
  static double least(const std::vector<double>& us) {
    return *std::min_element(us.begin(), us.end());
  }
};

class MachineProfiler {
 public:
  MachineProfiler(const ProfileMachineOptions& options, const ProgressCallback& progress)
      : options_(options), progress_(progress), target_(load_target(options.target)) {}

  MachineProfile run() {
    for (const Device& device : target_.devices) {
      if (device.backend.empty()) {
        throw Error(ErrorCode::kUnsupported, "device '" + device.name + "' of target '" +
                                                 target_.name +
                                                 "' has no backend: there is nothing to measure");
      }
      Backend::load(device.backend);
    }
    for (const Device& device : target_.devices) prepare_device(device);
    for (const Link& link : target_.links) prepare_link(link);
    MachineProfile profile;
    double round_s = 0;
    const MachineWatch watch;
    while (profile.rounds < kMinRounds || seconds_since(start_) + round_s < options_.seconds) {
      const double before = seconds_since(start_);
      for (Subject& subject : subjects_) measure(subject);
      round_s = seconds_since(start_) - before;
      ++profile.rounds;
    }
    profile.disturbed = is_disturbed(watch.load());
    profile.target = *target_.json;
    profile.target["description"] =
        description() + (profile.disturbed ? ", beside other work: uncertain" : "");
    for (Json& json : profile.target["devices"]) rate_device(json, profile.rates);
    if (const auto links = profile.target.find("links"); links != profile.target.end()) {
      for (Json& json : *links) rate_link(json, profile.rates);
    }
    return profile;
  }

 private:
  struct DeviceProbes {
    std::map<std::string, Pair> convolutions;  // by dtype
    Pair products;                             // of float32
    Pair narrow_products;                      // of bfloat16
    Pair memory;
    Pair node;
    std::vector<Pair> kinds;
  };
  struct LinkSubjects {
    Subject* turns = nullptr;
    Subject* both = nullptr;
    Subject* convolutions = nullptr;
    Subject* additions = nullptr;
  };

  void prepare_device(const Device& device) {
    DeviceProbes& probes = devices_[device.name];
    probes.node = pair(device.name, node_probe(target_));
    probes.memory = pair(device.name, memory_probe(target_));
    probes.convolutions["float32"] = pair(device.name, convolution_probe(target_, DType::kFloat32));
    for (const auto& [dtype, rate] : device.peak_flops) {
      const std::string name(dtype_name(dtype));
      if (name == "float32") continue;
      probes.convolutions[name] = pair(device.name, convolution_probe(target_, dtype));
    }
    if (takes_bfloat16_rate(device)) {
      probes.products = pair(device.name, product_probe(target_, DType::kFloat32));
      probes.narrow_products = pair(device.name, product_probe(target_, DType::kBFloat16));
    }
    for (MachineProbe& probe : kind_probes(target_)) {
      probes.kinds.push_back(pair(device.name, std::move(probe)));
    }
  }

  static bool takes_bfloat16_rate(const Device& device) {
    const auto& keys = Backend::load(device.backend)->option_keys();
    return keys && std::find(keys->begin(), keys->end(), kBFloat16RateOption) != keys->end();
  }

  Pair pair(const std::string& device, MachineProbe probe) {
    Pair result;
    result.longer = prepare(device + ": " + probe.name, probe.longer, device);
    if (result.longer != nullptr) {
      result.shorter = prepare(device + ": " + probe.name, probe.shorter, device);
    }
    result.probe = std::move(probe);
    return result;
  }

  void prepare_link(const Link& link) {
    const auto key = std::minmax(link.from, link.to);
    if (links_.contains(key)) return;  // a link of the other direction
    LinkSubjects& subjects = links_[key];
    const std::string name = link.from + " -> " + link.to + ": ";
    const auto& [first, second] = key;
    subjects.turns =
        prepare(name + "latency", turns_of_additions(target_, first, second, kTurns), {});
    subjects.both =
        prepare(name + "copies", turns_of_layers(target_, first, second, kLargeTurns), {});
    subjects.convolutions =
        prepare(name + "copies", turns_of_layers(target_, first, {}, kLargeTurns), {});
    subjects.additions =
        prepare(name + "copies", turns_of_layers(target_, {}, second, kLargeTurns), {});
  }

  /// Null if the device (or, without a name, a device of one of the nodes) refuses it.
  Subject* prepare(const std::string& name, const Graph& graph, const std::string& device) {
    Subject& subject = subjects_.emplace_back();
    subject.name = name;
    subject.graph = graph;
    try {
      tell(name);
      for (Node& node : subject.graph.nodes()) {
        if (!device.empty()) node.device = device;
      }
      PartitionOptions partition;
      partition.strategy = Strategy::kContiguous;
      const PartitionPlan plan = partition_graph(subject.graph, partition).plan;
      subject.weights = weights_of(subject.graph);
      CompileOptions compile;
      compile.threads = options_.threads;
      compile.layouts = true;
      subject.model = compile_plan(subject.graph, plan, target_, subject.weights, compile, nullptr);
      ExecutorOptions run;
      run.threads = options_.threads;
      open_.insert(subject.model.devices.begin(), subject.model.devices.end());
      subject.executor =
          std::make_unique<Executor>(subject.graph, subject.model.plan, target_, subject.weights,
                                     run, subject.model.partitions, open_);
      for (const TensorId id : subject.graph.graph_inputs()) {
        subject.inputs.push_back(random_input(subject.graph, id, 0));
      }
      subject.executor->run(subject.inputs, nullptr);  // touches memory first; and may be refused
      return &subject;
    } catch (const Error& error) {
      // All backends are loaded; a model that one of them refuses does not stop the rest.
      const bool refused = error.code() == ErrorCode::kUnsupported ||
                           error.code() == ErrorCode::kInvalidGraph ||
                           error.code() == ErrorCode::kFailed;
      if (!refused) throw;
      log(LogModule::kProfile, LogLevel::kDebug,
          [&] { return name + ": refused: " + error.what(); });
      subjects_.pop_back();
      return nullptr;
    }
  }

  /// Random ones, shared by all models that have weights of the same name and type.
  std::vector<Tensor> weights_of(const Graph& graph) {
    std::vector<Tensor> weights(graph.tensors().size());
    for (std::size_t i = 0; i < weights.size(); ++i) {
      const TensorInfo& tensor = graph.tensors()[i];
      if (tensor.kind != TensorKind::kWeight) continue;
      const auto [place, is_new] =
          weights_.try_emplace(std::make_tuple(tensor.weight_key, tensor.dtype, tensor.shape));
      if (is_new) place->second = random_weight(tensor.dtype, tensor.shape, tensor.weight_key, 0);
      weights[i] = place->second;
    }
    return weights;
  }

  void measure(Subject& subject) {
    tell(subject.name);
    RunRecord record;
    subject.executor->run(subject.inputs, &record);
    subject.us.push_back(record.total_us);
    if (subject.model.partitions.size() < 2) return;
    std::map<std::string, std::vector<double>> launches;
    std::map<std::string, std::vector<double>> copies;
    for (const StepRecord& step : record.steps) {
      const double us = step.end_us - step.start_us;
      if (step.kind == StepRecord::Kind::kPartition) launches[step.device].push_back(us);
      if (step.kind == StepRecord::Kind::kTransfer) copies[step.device].push_back(us);
    }
    keep_least(launches, subject.launch_us);
    keep_least(copies, subject.copy_us);
  }

  static void keep_least(std::map<std::string, std::vector<double>>& found,
                         std::map<std::string, double>& least) {
    for (auto& [device, times] : found) {
      const double us = median(std::move(times));
      const auto [place, is_new] = least.emplace(device, us);
      if (!is_new) place->second = std::min(place->second, us);
    }
  }

  void tell(const std::string& what) {
    report_progress(progress_, std::min(0.99, seconds_since(start_) / options_.seconds), what);
  }

  std::string description() const {
    const Json fingerprint = host_fingerprint(options_.threads);
    const auto text = [&](const char* key) {
      const Json* value = find_member(fingerprint, key);
      if (value == nullptr) return std::string("?");
      return value->is_string() ? value->get<std::string>() : value->dump();
    };
    return target_.description + "; rates measured on " + text("cpu") + " with " + text("threads") +
           " threads";
  }

  double least_launch_us(const std::string& device) const {
    double us = 0;
    for (const auto& [key, link] : links_) {
      if (link.turns == nullptr) continue;
      const auto found = link.turns->launch_us.find(device);
      if (found != link.turns->launch_us.end())
        us = us == 0 ? found->second : std::min(us, found->second);
    }
    return us;
  }

  void rate_device(Json& json, std::vector<MachineRate>& rates) {
    const std::string name = json["name"].get<std::string>();
    const Device& device = *target_.find_device(name);
    DeviceProbes& probes = devices_[name];
    RateWriter writer(name, json, rates);
    if (probes.node.runs()) {
      writer.node_overhead(probes.node.time(), device.node_overhead_us);
    }
    if (const double us = least_launch_us(name); us > 0) {
      writer.launch_overhead(us, device.launch_overhead_us);
    }
    if (probes.memory.runs()) writer.memory(probes.memory.time(), device.memory_bandwidth);
    writer.peak_flops(device, [&](const std::string& dtype) -> std::optional<ProbeTime> {
      const Pair& probe = probes.convolutions[dtype];
      if (!probe.runs()) return std::nullopt;
      return probe.time();
    });
    if (probes.products.runs() && probes.narrow_products.runs()) {
      writer.bfloat16_rate(probes.products.time(), probes.narrow_products.time());
    }
    Json op_rates = Json::array();
    for (const Pair& kind : probes.kinds) {
      if (kind.runs()) op_rates.push_back(writer.op_rate(kind.probe, kind.time()));
    }
    json["op_rates"] = std::move(op_rates);
  }

  void rate_link(Json& json, std::vector<MachineRate>& rates) {
    const std::string from = json["from"].get<std::string>();
    const std::string to = json["to"].get<std::string>();
    const auto found = links_.find(std::minmax(from, to));
    if (found == links_.end() || found->second.turns == nullptr) return;
    const LinkSubjects& link = found->second;
    const Link& before = *target_.find_link(from, to);
    const auto copy = link.turns->copy_us.find(to);
    const double latency = copy == link.turns->copy_us.end() ? 0 : copy->second;
    const std::string name = from + " -> " + to;
    json["latency_us"] = rounded(latency);
    rates.push_back({name, "latency", "us", before.latency_us, rounded(latency), 0});
    if (link.both == nullptr || link.convolutions == nullptr || link.additions == nullptr) return;
    // Each turn goes to the other device and back; only the sum of both directions is measurable.
    const double crossing = (Pair::least(link.both->us) - Pair::least(link.convolutions->us) -
                             Pair::least(link.additions->us)) /
                            (2.0 * kLargeTurns);
    const double bandwidth = rounded(1e6 * kTurnBytes / std::max(crossing - latency, 1.0));
    json["bandwidth"] = bandwidth;
    rates.push_back({name, "bandwidth", "B/s", before.bandwidth, bandwidth, 0});
  }

  const ProfileMachineOptions& options_;
  const ProgressCallback& progress_;
  Target target_;
  Clock::time_point start_ = Clock::now();
  std::deque<Subject> subjects_;  // executors keep references to what lies in them
  std::map<std::string, DeviceProbes> devices_;
  std::map<std::pair<std::string, std::string>, LinkSubjects> links_;
  std::map<std::string, std::shared_ptr<DeviceInstance>> open_;
  std::map<std::tuple<std::string, DType, Shape>, Tensor> weights_;  // by name and type
};

}  // namespace

MachineProfile profile_machine(const ProfileMachineOptions& options,
                               const ProgressCallback& progress, Diagnostics& diagnostics) {
  MachineProfile profile = MachineProfiler(options, progress).run();
  if (profile.disturbed) {
    diagnostics.warning({},
                        "other work on the machine disturbed the measurement, so that its rates "
                        "are uncertain; measure again on a quiet machine");
  }
  return profile;
}

}  // namespace npu
