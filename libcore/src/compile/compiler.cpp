// SPDX-License-Identifier: Apache-2.0
// Compiles the partitions of a plan on their backends, through the cache, on several threads.
//
// Input:  a verified graph, a plan for it, its weights.
// Output: one blob per partition, in the order of the plan whichever thread compiled it.
// Partitions that a backend refuses are tried on the next device: all partitions of a round are
// compiled first, then the nodes of those that failed move, the graph is partitioned again, and
// unchanged partitions keep their blobs. Nodes only ever move towards the end of the target's
// list, so there are at most nodes x devices rounds; in practice one or two. The cost is that of
// the backends plus O(bytes of weights) for the keys of the cache.
#include "npu/compile/compiler.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <semaphore>
#include <set>
#include <thread>
#include <utility>

#include "compile/compile_watch.hpp"
#include "compile/sub_ir.hpp"
#include "device/device_call.hpp"
#include "npu/compile/memory_needs.hpp"
#include "npu/device/isa_level.hpp"
#include "npu/ir/json_writer.hpp"
#include "npu/ops/op_catalogue.hpp"
#include "npu/partition/partition_graph.hpp"
#include "npu/support/elapsed.hpp"
#include "npu/support/log.hpp"
#include "npu/support/text.hpp"
#include "support/live_files.hpp"
#include "support/thread_pool.hpp"
#include "target/support_check.hpp"

namespace npu {
namespace {

const Device& device_named(const Target& target, const std::string& name) {
  const Device* device = target.find_device(name);
  if (device == nullptr) {
    throw Error(ErrorCode::kInvalidGraph,
                "device '" + name + "' is not in target '" + target.name + "'");
  }
  if (device->backend.empty()) {
    throw Error(ErrorCode::kUnsupported, "device '" + device->name + "' of target '" + target.name +
                                             "' has no backend: it is for planning only");
  }
  return *device;
}

std::vector<NamedTensor> partition_weights(const Graph& graph, const Partition& partition,
                                           const std::vector<Tensor>& weights) {
  std::vector<NamedTensor> used;
  for (const TensorId id : partition.boundary.weights) {
    used.push_back({graph.tensor(id).name, weights[index_of(id)]});
  }
  return used;
}

/// Numbers that every report has, whatever the backend says.
void complete_report(Json& report, const Graph& graph, const Partition& partition,
                     std::int64_t predicted_kernels) {
  double flops = 0;
  for (const NodeId id : partition.nodes) flops += node_flops(graph, graph.node(id));
  std::int64_t weight_bytes = 0;
  for (const TensorId id : partition.boundary.weights) {
    weight_bytes = saturating_add(weight_bytes, graph.tensor(id).bytes());
  }
  report["nodes"] = partition.nodes.size();
  // A backend that counts no kernels runs node by node, or does not tell.
  if (find_member(report, "kernels") != nullptr) report["predicted_kernels"] = predicted_kernels;
  if (find_member(report, "flops") == nullptr) report["flops"] = saturating_integer(flops);
  if (find_member(report, "weight_bytes") == nullptr) report["weight_bytes"] = weight_bytes;
}

/// What a backend reports of a blob.
Json device_report(DeviceInstance& instance, const Blob& blob) {
  Json report = instance.blob_report(blob);
  report.erase("memory");  // it has its own function
  if (const auto memory = instance.blob_memory(blob)) report["memory"] = memory_json(*memory);
  return report;
}

/// A backend's report of a compiled partition in one line, for the log.
std::string report_text(const CompiledPartition& compiled) {
  std::string text = "compiled by '" + compiled.backend + "'";
  for (const char* key : {"kernels", "reorders"}) {
    const Json* count = find_member(compiled.report, key);
    if (count != nullptr && count->is_number()) text += ", " + count->dump() + " " + key;
  }
  return text + ", " + bytes_text(static_cast<double>(compiled.blob.size));
}

/// One round: every partition of a plan, compiled or with its backend's error.
class Round {
 public:
  struct Result {
    std::optional<CompiledPartition> compiled;
    std::exception_ptr error;
    bool refused = false;  ///< the backend says that its device does not do this
  };
  using Known = std::map<std::pair<std::string, std::string>, CompiledPartition>;

  Round(const Graph& graph, const PartitionPlan& plan, const Target& target,
        const std::vector<Tensor>& weights, const CompileOptions& options, CompileCache* cache,
        Known& known)
      : graph_(graph),
        plan_(plan),
        target_(target),
        weights_(weights),
        options_(options),
        cache_(cache),
        known_(known),
        watch_(options.control, plan),
        results_(plan.partitions.size()) {
    const Json json = {{"precision", options.precision}};
    compile_options_ = json.dump();
    // "All cores" means something else on another machine, and a cache may be shared.
    key_options_ = compile_options_;
    if (options.threads == 0) key_options_ += std::to_string(std::thread::hardware_concurrency());
  }

  /// Opens devices that are not in `devices` yet when they are first needed, and adds them.
  std::vector<Result> run(OpenDevices& devices) {
    // Backends are loaded here, once, before other threads exist.
    for (const Partition& partition : plan_.partitions) {
      const Device& device = device_named(target_, partition.device);
      const auto backend = Backend::load(device.backend);
      const DeviceFacts& facts = backend->device(device_instance(device));
      opened_.try_emplace(partition.device, facts.concurrent_compiles);
    }
    const std::size_t cores = std::max(1U, std::thread::hardware_concurrency());
    const std::size_t wanted = options_.jobs == 0 ? cores : static_cast<std::size_t>(options_.jobs);
    const std::size_t count = std::min(wanted, results_.size());
    for (auto& [name, opened] : opened_) {
      const auto found = devices.find(name);
      if (found != devices.end()) opened.instance = found->second;
    }
    ThreadPool().run(count, [&](std::size_t) { work(); });
    for (auto& [name, opened] : opened_) {
      if (opened.instance != nullptr) devices[name] = opened.instance;
    }
    for (std::size_t i = 0; i < results_.size(); ++i) {
      if (results_[i].compiled) {
        known_.insert({{plan_.partitions[i].device, sub_irs_[i]}, *results_[i].compiled});
      }
    }
    return std::move(results_);
  }

 private:
  /// A device that all threads share. As many of them compile on it as it allows; the others take
  /// turns.
  struct Opened {
    explicit Opened(std::uint32_t compiles) : turns(static_cast<std::ptrdiff_t>(compiles)) {}
    std::counting_semaphore<> turns;
    std::mutex mutex;
    std::shared_ptr<DeviceInstance> instance;
    bool was_lost = false;
  };

  std::shared_ptr<DeviceInstance> open(Opened& opened, const std::string& device,
                                       const std::string& options) const {
    const std::lock_guard lock(opened.mutex);
    if (opened.instance == nullptr) {
      opened.instance =
          DeviceInstance::open(Backend::load(device_named(target_, device).backend), options);
    }
    return opened.instance;
  }

  /// Whether a cached blob is still what the device takes, if its backend has a say in that.
  bool fits(const std::string& device, const std::string& options, const Backend& backend,
            const Blob& blob) {
    if (backend.api().blob_check == nullptr) return true;
    std::string reason;
    try {
      const BlobVerdict verdict = open(opened_.at(device), device, options)->check_blob(blob);
      if (verdict.fit == BlobFit::kFits) return true;
      reason = verdict.reason;
    } catch (const BackendError& error) {
      reason = error.message();
    }
    log(LogModule::kCache, LogLevel::kInfo,
        [&] { return "an entry for device '" + device + "' is compiled again: " + reason; });
    return false;
  }

  /// Whether `lost` may be opened again: once in a round, for whoever comes first.
  static bool forget_lost(Opened& opened, const std::shared_ptr<DeviceInstance>& lost) {
    const std::lock_guard lock(opened.mutex);
    if (opened.instance != lost) return true;  // somebody else has opened it again
    if (std::exchange(opened.was_lost, true)) return false;
    opened.instance = nullptr;
    return true;
  }

  /// Compiles on a device in turn; on one that is lost, once more when it is open again.
  void compile_on(const std::string& device, const std::string& options, const std::string& sub_ir,
                  const std::vector<NamedTensor>& weights, const CompileHooks& hooks,
                  CompiledPartition& compiled) {
    Opened& opened = opened_.at(device);
    opened.turns.acquire();
    const std::unique_ptr<Opened, void (*)(Opened*)> turn(
        &opened, [](Opened* taken) { taken->turns.release(); });
    watch_.check();  // others may have taken long
    for (;;) {
      const auto instance = open(opened, device, options);
      try {
        compiled.blob = instance->compile(sub_ir, weights, compile_options_, hooks);
        compiled.report = device_report(*instance, compiled.blob);
        return;
      } catch (const BackendError& error) {
        if (error.status() == NPU4_CANCELLED) {
          watch_.check();  // says why
          break_contract(instance->backend(), "nobody asked it to stop: " + error.message());
        }
        if (error.status() != NPU4_DEVICE_LOST || !forget_lost(opened, instance)) throw;
        log(LogModule::kCompile, LogLevel::kInfo,
            [&] { return "device '" + device + "' is opened again: " + error.message(); });
      }
    }
  }

  void work() {
    for (std::size_t i = next_++; i < results_.size(); i = next_++) {
      try {
        watch_.check();
        results_[i].compiled = compile(i);
        watch_.finish(i);
      } catch (const Error& error) {
        results_[i].error = std::current_exception();
        results_[i].refused = error.code() == ErrorCode::kUnsupported;
      } catch (...) {
        results_[i].error = std::current_exception();
      }
    }
  }

  CompiledPartition compile(std::size_t index) {
    const auto start = Clock::now();
    const Partition& partition = plan_.partitions[index];
    std::string& sub_ir = sub_irs_[index];
    const Device& device = device_named(target_, partition.device);
    SubIr made = make_sub_ir(graph_, partition.nodes, partition.boundary, device_patterns(device));
    sub_ir = std::move(made.text);
    // Only read while there are threads.
    if (const auto found = known_.find({partition.device, sub_ir}); found != known_.end()) {
      log(LogModule::kCompile, LogLevel::kDebug, [&] {
        return partition_text(index) + ": the same as before the nodes moved, taken over";
      });
      return found->second;
    }
    const auto backend = Backend::load(device.backend);
    const std::string device_text =
        backend_options_text(device, options_.threads, options_.backend_options);
    const std::vector<NamedTensor> weights = partition_weights(graph_, partition, weights_);
    CompiledPartition compiled;
    compiled.device = partition.device;
    compiled.backend = backend->name();
    compiled.backend_version = backend->version();
    compiled.fingerprint = backend->device(device_instance(device)).fingerprint;
    compiled.holds_weights = backend->holds_weights();
    std::string key;
    if (cache_ != nullptr && cache_->enabled()) {
      key = cache_key({.backend = compiled.backend,
                       .backend_version = compiled.backend_version,
                       .fingerprint = compiled.fingerprint,
                       .device = device_text,
                       .options = key_options_,
                       .sub_ir = sub_ir,
                       .weights = &weights});
      auto entry = cache_->find(key);
      if (entry && fits(partition.device, device_text, *backend, entry->blob)) {
        compiled.blob = std::move(entry->blob);
        compiled.report = std::move(entry->report);
        compiled.cache_hit = true;
        if (!options_.control.blob_folder.empty()) release_mapped_files();  // read for the key
      }
    }
    if (!compiled.cache_hit) {
      const LogTimer timer(LogModule::kCompile);
      compile_on(partition.device, device_text, sub_ir, weights, watch_.hooks(index), compiled);
      if (!options_.control.blob_folder.empty()) release_mapped_files();  // then the blob is read
      complete_report(compiled.report, graph_, partition, made.predicted_kernels);
      timer.done([&] { return partition_text(index) + ": " + report_text(compiled); });
      // What was measured is no function of the key: the next compile, whose key has it, is kept.
      const bool is_measured = find_member(compiled.report, "tuned") != nullptr;
      if (!key.empty() && !is_measured) cache_->store(key, compiled.blob, compiled.report);
    }
    compiled.compile_ms = milliseconds_since(start);
    return compiled;
  }

  /// The name of a partition in messages.
  std::string partition_text(std::size_t index) const {
    const Partition& partition = plan_.partitions[index];
    return "partition " + std::to_string(index) + " on " + partition.device + " (" +
           std::to_string(partition.nodes.size()) + " nodes)";
  }

  const Graph& graph_;
  const PartitionPlan& plan_;
  const Target& target_;
  const std::vector<Tensor>& weights_;
  const CompileOptions& options_;
  CompileCache* cache_;
  Known& known_;
  CompileWatch watch_;
  std::string compile_options_;
  std::string key_options_;
  std::vector<Result> results_;
  std::vector<std::string> sub_irs_ = std::vector<std::string>(results_.size());
  std::map<std::string, Opened> opened_;
  std::atomic<std::size_t> next_{0};
};

/// The first device after `from` that runs all of `nodes`; null if there is none.
const Device* next_device(const Graph& graph, const std::vector<NodeId>& nodes,
                          const Target& target, const std::string& from) {
  bool behind = false;
  for (const Device& device : target.devices) {
    if (behind && !device.backend.empty() && runs_all(graph, nodes, device)) return &device;
    behind = behind || device.name == from;
  }
  return nullptr;
}

/// Moves the nodes of a refused partition; false if some node has nowhere to go.
bool move_nodes(Graph& graph, const Partition& partition, const Target& target,
                const std::string& reason, std::string& to) {
  const Device* whole = next_device(graph, partition.nodes, target, partition.device);
  std::vector<const Device*> places;
  for (const NodeId id : partition.nodes) {
    places.push_back(whole != nullptr ? whole : next_device(graph, {id}, target, partition.device));
    if (places.back() == nullptr) return false;
  }
  std::set<std::string> names;
  for (std::size_t i = 0; i < places.size(); ++i) {
    Node& node = graph.node(partition.nodes[i]);
    node.device = places[i]->name;
    node.device_reason = reason;
    if (whole == nullptr) node.fusion_group.reset();  // its members may be on different devices
    names.insert(places[i]->name);
  }
  for (const std::string& name : names) to += (to.empty() ? "" : ", ") + name;
  return true;
}

}  // namespace

std::string device_instance(const Device& device) {
  const Json* instance = device.backend_options.is_object()
                             ? find_member(device.backend_options, "instance")
                             : nullptr;
  return instance != nullptr && instance->is_string() ? instance->get<std::string>() : "";
}

std::string backend_options_text(const Device& device, std::int32_t threads, const Json& extra) {
  Json json = device.backend_options.is_object() ? device.backend_options : Json::object();
  json["threads"] = threads;
  for (const auto& [key, value] : extra.items()) json[key] = value;
  return json.dump();
}

namespace {

/// Takes over the results of a round; `model` then has every partition of its plan.
void finish(CompiledModel& model, std::vector<Round::Result> results, Clock::time_point start) {
  for (Round::Result& result : results) {
    model.partitions.push_back(*std::move(result.compiled));
    ++(model.partitions.back().cache_hit ? model.cache_hits : model.cache_misses);
  }
  model.compile_ms = milliseconds_since(start);
}

/// An error of a backend with the partition that it was about. What a backend calls invalid has the
/// name of its node already.
Error named(const Error& error, const Graph& graph, const Partition& partition, std::size_t index) {
  if (error.code() != ErrorCode::kFailed && error.code() != ErrorCode::kInfeasible) return error;
  return {error.code(),
          error.message() + " (compiling partition " + std::to_string(index) + " of " +
              std::to_string(partition.nodes.size()) + " nodes from '" +
              graph.node(partition.nodes.front()).name + "' on, for device '" + partition.device +
              "')",
          error.location()};
}

/// Moves the nodes of every refused partition to later devices. True if there was one.
bool fall_back(Graph& graph, const Target& target, const std::vector<Round::Result>& results,
               CompiledModel& model) {
  bool moved = false;
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (results[i].error == nullptr) continue;
    const Partition& partition = model.plan.partitions[i];
    try {
      std::rethrow_exception(results[i].error);
    } catch (const Error& error) {
      // Elsewhere the nodes would run, but nobody would learn that the device had no memory, was
      // lost or lied; and the next time, it might have had some.
      if (!results[i].refused) throw named(error, graph, partition, i);
      Refusal refusal{.device = partition.device,
                      .to = {},
                      .nodes = static_cast<std::int64_t>(partition.nodes.size()),
                      .first_node = graph.node(partition.nodes.front()).name,
                      .reason = error.message()};
      if (!move_nodes(graph, partition, target, refusal.reason, refusal.to)) {
        throw Error(error.code(),
                    error.message() + " (partition " + std::to_string(i) + " of " +
                        std::to_string(partition.nodes.size()) + " nodes; no device behind '" +
                        partition.device + "' runs all of them)",
                    error.location());
      }
      log(LogModule::kCompile, LogLevel::kInfo, [&] {
        return "partition " + std::to_string(i) + ": " + refusal.device + " refuses it, so " +
               std::to_string(refusal.nodes) + " nodes go to " + refusal.to + ": " + refusal.reason;
      });
      model.refusals.push_back(std::move(refusal));
      moved = true;
    }
  }
  return moved;
}

}  // namespace

CompiledModel compile_plan(const Graph& graph, const PartitionPlan& plan, const Target& target,
                           const std::vector<Tensor>& weights, const CompileOptions& options,
                           CompileCache* cache, const OpenDevices& devices) {
  const auto start = Clock::now();
  CompiledModel model;
  model.plan = plan;
  model.devices = devices;
  Round::Known known;
  std::vector<Round::Result> results =
      Round(graph, plan, target, weights, options, cache, known).run(model.devices);
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (results[i].error == nullptr) continue;
    try {
      std::rethrow_exception(results[i].error);
    } catch (const Error& error) {
      throw results[i].refused ? error : named(error, graph, plan.partitions[i], i);
    }
  }
  finish(model, std::move(results), start);
  return model;
}

CompiledModel compile_graph(Graph& graph, const PartitionPlan& plan, const Target& target,
                            const std::vector<Tensor>& weights, const CompileOptions& options,
                            CompileCache* cache, const OpenDevices& devices) {
  if (!options.fallback) return compile_plan(graph, plan, target, weights, options, cache, devices);
  const auto start = Clock::now();
  CompiledModel model;
  model.plan = plan;
  model.devices = devices;
  Round::Known known;
  for (;;) {
    std::vector<Round::Result> results =
        Round(graph, model.plan, target, weights, options, cache, known).run(model.devices);
    if (!fall_back(graph, target, results, model)) {
      finish(model, std::move(results), start);
      return model;
    }
    if (graph.npu_member("target") == nullptr) graph.set_npu_member("target", target.json);
    PartitionOptions again;
    again.strategy =
        model.plan.strategy == "contiguous" ? Strategy::kContiguous : Strategy::kConvex;
    Diagnostics notes;  // of a strategy that was not asked for
    model.plan = partition_graph(graph, again, notes).plan;
  }
}

Json partition_report(DeviceInstance& instance, const Blob& blob, const Graph& graph,
                      const Partition& partition, std::int64_t predicted_kernels) {
  Json report = device_report(instance, blob);
  complete_report(report, graph, partition, predicted_kernels);
  return report;
}

BundleContent bundle_content(const Graph& graph, const CompiledModel& model, const Target& target,
                             const std::vector<Tensor>& weights, const CompileOptions& options) {
  BundleContent content;
  content.target = target.name;
  content.precision = options.precision;
  content.provenance["model"] = graph.model_name();
  content.provenance["isa"] = kIsaLevels[isa_level()];
  std::set<TensorId> kept;
  for (std::size_t i = 0; i < model.partitions.size(); ++i) {
    const CompiledPartition& partition = model.partitions[i];
    content.partitions.push_back({{.device = partition.device,
                                   .backend = partition.backend,
                                   .backend_version = partition.backend_version,
                                   .fingerprint = partition.fingerprint,
                                   .holds_weights = partition.holds_weights,
                                   .report = partition.report},
                                  partition.blob.data,
                                  partition.blob.size});
    if (partition.holds_weights) continue;
    const auto& used = model.plan.partitions[i].boundary.weights;
    kept.insert(used.begin(), used.end());
  }
  for (const TensorId id : graph.graph_outputs()) {
    if (graph.tensor(id).kind == TensorKind::kWeight) kept.insert(id);
  }
  for (const TensorId id : kept) {
    content.weights.emplace_back(graph.tensor(id).name, weights[index_of(id)]);
  }
  // The bundle holds the weights that it needs, so that it can be moved anywhere by itself.
  Graph document = graph;
  document.erase_npu_member("weights_file");
  document.erase_npu_member("weights_map");
  content.document = write_graph(document);
  return content;
}

namespace {

/// For a bundle of a level that there is not here, ", or ..".
std::string advice_for_level(const Bundle& bundle) {
  const auto level = bundle_isa_level(bundle);
  if (!level || *level <= isa_level()) return "";
  return ", or on another one with --isa " + std::string(kIsaLevels[isa_level()]);
}

}  // namespace

std::vector<CompiledPartition> bundled_partitions(const Bundle& bundle, const PartitionPlan& plan,
                                                  const Target& target) {
  if (bundle.partitions().size() != plan.partitions.size()) {
    throw Error(ErrorCode::kParse,
                "holds " + std::to_string(bundle.partitions().size()) +
                    " compiled partitions, its document has " +
                    std::to_string(plan.partitions.size()),
                {.file = bundle.name()});
  }
  std::vector<CompiledPartition> compiled;
  for (std::size_t i = 0; i < plan.partitions.size(); ++i) {
    const BundlePartition& entry = bundle.partitions()[i];
    const Device& device = device_named(target, plan.partitions[i].device);
    const std::string which = "partition " + std::to_string(i);
    if (entry.device != device.name || entry.backend != device.backend) {
      throw Error(ErrorCode::kParse,
                  which + " was compiled for device '" + entry.device + "' and backend '" +
                      entry.backend + "', its document has '" + device.name + "' and '" +
                      device.backend + "'",
                  {.file = bundle.name()});
    }
    const auto backend = Backend::load(device.backend);
    const std::string& fingerprint = backend->device(device_instance(device)).fingerprint;
    // A backend that looks at blobs says itself, once its device is open, whether this one fits.
    const bool fits = entry.fingerprint == fingerprint || backend->api().blob_check != nullptr;
    if (!fits || entry.holds_weights != backend->holds_weights()) {
      throw Error(ErrorCode::kUnsupported,
                  which + " was compiled for another device or another version of backend '" +
                      entry.backend + "' ('" + printable_text(entry.fingerprint) +
                      "'; here it is '" + fingerprint +
                      "'); compile the model again with npu-compile on this machine" +
                      advice_for_level(bundle),
                  {.file = bundle.name()});
    }
    const BundleSection& section = bundle.sections()[entry.section];
    compiled.push_back({.device = device.name,
                        .backend = entry.backend,
                        .backend_version = entry.backend_version,
                        .fingerprint = entry.fingerprint,
                        .holds_weights = entry.holds_weights,
                        .blob = {bundle.section(entry.section), section.size},
                        .check_blob = [shared = bundle.shared_from_this(),
                                       index = entry.section] { shared->check_section(index); },
                        .report = entry.report,
                        .cache_hit = false,
                        .compile_ms = 0});
  }
  return compiled;
}

std::vector<Tensor> bundled_weights(const Bundle& bundle, const Graph& graph) {
  std::vector<Tensor> weights(graph.tensors().size());
  for (const BundleWeight& entry : bundle.weights()) {
    const TensorId id = graph.find_tensor(entry.name);
    const TensorInfo* tensor = id.valid() ? &graph.tensor(id) : nullptr;
    if (tensor == nullptr || tensor->kind != TensorKind::kWeight || tensor->dtype != entry.dtype ||
        tensor->shape != entry.shape) {
      throw Error(ErrorCode::kParse,
                  "weight '" + printable_text(entry.name) + "' (" +
                      std::string(dtype_name(entry.dtype)) + " " + shape_text(entry.shape) +
                      ") is no weight of its document",
                  {.file = bundle.name()});
    }
    weights[index_of(id)] = bundle.weight(entry);
  }
  return weights;
}

}  // namespace npu
