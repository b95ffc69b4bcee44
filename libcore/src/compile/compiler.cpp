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
#include <numeric>
#include <optional>
#include <semaphore>
#include <set>
#include <thread>
#include <utility>

#include "compile/backend_device.hpp"
#include "compile/boundary_layouts.hpp"
#include "compile/compile_watch.hpp"
#include "compile/partition_report.hpp"
#include "compile/pieces.hpp"
#include "compile/refused_partition.hpp"
#include "compile/state_aliases.hpp"
#include "compile/sub_ir.hpp"
#include "device/device_call.hpp"
#include "device/device_instance.hpp"
#include "device/isa_level.hpp"
#include "npu/compile/memory_needs.hpp"
#include "npu/ir/json_writer.hpp"
#include "npu/partition/partition_graph.hpp"
#include "npu/support/log.hpp"
#include "ops/op_catalogue.hpp"
#include "support/checked.hpp"
#include "support/elapsed.hpp"
#include "support/live_files.hpp"
#include "support/text.hpp"
#include "support/thread_pool.hpp"

namespace npu {

const Device& backend_device(const Target& target, const std::string& name) {
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

namespace {

std::vector<NamedTensor> partition_weights(const Graph& graph, const Partition& partition,
                                           const std::vector<Tensor>& weights) {
  std::vector<NamedTensor> used;
  for (const TensorId id : partition.boundary.weights) {
    used.push_back({graph.tensor(id).name, weights[index_of(id)]});
  }
  return used;
}

/// A backend's report of a compiled partition in one line, for the log.
std::string report_text(const CompiledPartition& compiled) {
  std::string text = "compiled by '" + compiled.backend + "'";
  for (const char* key : {"kernels", "reorders"}) {
    const Json* count = find_member(*compiled.report, key);
    if (count != nullptr && count->is_number()) text += ", " + count->dump() + " " + key;
  }
  return text + ", " + bytes_text(static_cast<double>(compiled.blob.size));
}

/// In place of a blob, beside an answer: an entry has one.
const Blob kAnswerBlob{std::make_shared<std::byte>(std::byte{'-'}), 1};

std::vector<TensorId> boundary_tensors(const Partition& partition) {
  std::vector<TensorId> ids = partition.boundary.inputs;
  ids.insert(ids.end(), partition.boundary.outputs.begin(), partition.boundary.outputs.end());
  return ids;
}

std::string error_text(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const Error& thrown) {
    return thrown.message();
  }
}

/// One round: every partition of a plan, compiled or with its backend's error.
class Round {
 public:
  struct Result {
    std::optional<CompiledPartition> compiled;
    std::exception_ptr error;
    bool refused = false;         ///< the backend says that its device does not do this
    bool may_be_layouts = false;  ///< the error is one that a layout can be the cause of
  };
  Round(const Graph& graph, const PartitionPlan& plan, const Target& target,
        const std::vector<Tensor>& weights, const CompileOptions& options, CompileCache* cache,
        Pieces& pieces, KnownPartitions& known)
      : graph_(graph),
        plan_(plan),
        target_(target),
        weights_(weights),
        options_(options),
        cache_(cache),
        pieces_(pieces),
        known_(known),
        watch_(options.control, plan),
        results_(plan.partitions.size()) {}

  /// Opens devices that are not in `devices` yet when they are first needed, and adds them.
  std::vector<Result> run(OpenDevices& devices) {
    // Backends are loaded here, once, before other threads exist.
    for (const Partition& partition : plan_.partitions) {
      const Device& device = backend_device(target_, partition.device);
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
    if (options_.layouts) agree_on_layouts();
    todo_.resize(results_.size());
    std::iota(todo_.begin(), todo_.end(), std::size_t{0});
    while (!todo_.empty()) {
      next_ = 0;
      ThreadPool().run(std::min(count, todo_.size()), [&](std::size_t) { work(); });
      todo_ = give_up_layouts();
    }
    for (auto& [name, opened] : opened_) {
      if (opened.instance != nullptr) devices[name] = opened.instance;
    }
    for (std::size_t i = 0; i < results_.size(); ++i) {
      if (results_[i].compiled) {
        known_.insert({known_key(i), *results_[i].compiled});
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
          DeviceInstance::open(Backend::load(backend_device(target_, device).backend), options);
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

  using Turn = std::unique_ptr<Opened, void (*)(Opened*)>;
  static Turn take_turn(Opened& opened) {
    opened.turns.acquire();
    return {&opened, [](Opened* taken) { taken->turns.release(); }};
  }

  /// Compiles on a device in turn; on one that is lost, once more when it is open again.
  /// Returns the device's report of the blob.
  Json compile_on(std::size_t index, const std::string& options,
                  const std::vector<NamedTensor>& weights, CompiledPartition& compiled) {
    const std::string& device = compiled.device;
    CompileHooks hooks = watch_.hooks(index);
    Opened& opened = opened_.at(device);
    const Turn turn = take_turn(opened);
    watch_.check();  // others may have taken long
    for (;;) {
      const auto instance = open(opened, device, options);
      pieces_.serve(hooks, instance->backend(), compiled.fingerprint);
      try {
        compiled.blob =
            instance->compile(sub_irs_[index].text, weights, options_text(index), hooks);
        return device_report(*instance, compiled.blob);
      } catch (const BackendError& error) {
        if (error.status() == NPU_CANCELLED) {
          watch_.check();  // says why
          break_contract(instance->backend(), "cancel",
                         "nobody asked it to stop: " + error.message());
        }
        if (error.status() != NPU_DEVICE_LOST || !forget_lost(opened, instance)) throw;
        log(LogModule::kCompile, LogLevel::kInfo,
            [&] { return "device '" + device + "' is opened again: " + error.message(); });
      }
    }
  }

  void work() {
    for (std::size_t place = next_++; place < todo_.size(); place = next_++) {
      const std::size_t i = todo_[place];
      try {
        watch_.check();
        results_[i].compiled = compile(i);
        watch_.finish(i);
      } catch (const BackendError& error) {
        results_[i].error = std::current_exception();
        results_[i].refused = error.code() == ErrorCode::kUnsupported;
        results_[i].may_be_layouts = may_refuse_layouts(error);
      } catch (const Error& error) {
        results_[i].error = std::current_exception();
        results_[i].refused = error.code() == ErrorCode::kUnsupported;
      } catch (...) {
        results_[i].error = std::current_exception();
      }
    }
  }

  const SubIr& sub_ir_of(std::size_t index) {
    SubIr& made = sub_irs_[index];
    if (!made.text.empty()) return made;
    const Partition& partition = plan_.partitions[index];
    const Device& device = backend_device(target_, partition.device);
    made = make_sub_ir(graph_, partition.nodes, partition.boundary, device_patterns(device),
                       backend_aliases(graph_, plan_, index, *Backend::load(device.backend)));
    return made;
  }

  /// The options of its compile.
  std::string options_text(std::size_t index) const {
    return compile_options_text(options_.precision,
                                layouts_of(graph_, plan_.partitions[index], layouts_));
  }

  KnownPartitions::key_type known_key(std::size_t index) const {
    return {plan_.partitions[index].device, options_text(index) + sub_irs_[index].text};
  }

  /// What a key of the cache has for options.
  std::string key_options(std::string options) const {
    // "All cores" means something else on another machine, and a cache may be shared.
    if (options_.threads == 0) options += std::to_string(std::thread::hardware_concurrency());
    return options;
  }

  void agree_on_layouts() {
    layouts_ = agree_layouts(
        graph_, plan_,
        [&](const std::string& device) {
          return Backend::load(backend_device(target_, device).backend)->has_feature("layouts");
        },
        [&](std::size_t partition, const LayoutNames& inputs) {
          return ask_layouts(partition, inputs);
        });
    if (layouts_.empty()) return;
    log(LogModule::kCompile, LogLevel::kInfo, [&] {
      return "values between partitions in layouts of their backend: " +
             std::to_string(layouts_.size());
    });
  }

  /// Takes the layouts away from what a backend did not compile with them, whatever it had said,
  /// and returns the partitions that are to be compiled again: those, and whose values they share.
  std::vector<std::size_t> give_up_layouts() {
    std::set<TensorId> given_up;
    for (std::size_t i = 0; i < results_.size(); ++i) {
      if (results_[i].error == nullptr || !results_[i].may_be_layouts) continue;
      const std::size_t before = given_up.size();
      for (const TensorId id : boundary_tensors(plan_.partitions[i])) {
        if (layouts_.contains(id)) given_up.insert(id);
      }
      if (given_up.size() == before) continue;
      log(LogModule::kCompile, LogLevel::kInfo, [&] {
        return partition_text(i) +
               ": compiled again with row-major values: " + error_text(results_[i].error);
      });
    }
    std::vector<std::size_t> again;
    for (std::size_t i = 0; i < results_.size() && !given_up.empty(); ++i) {
      const std::vector<TensorId> ids = boundary_tensors(plan_.partitions[i]);
      const bool has_one =
          std::any_of(ids.begin(), ids.end(), [&](TensorId id) { return given_up.contains(id); });
      if (!has_one) continue;
      results_[i] = {};
      again.push_back(i);
    }
    for (const TensorId id : given_up) layouts_.erase(id);
    return again;
  }

  /// The cache keeps answers, too, so that what is compiled already is not asked about.
  LayoutOffers ask_layouts(std::size_t index, const LayoutNames& inputs) {
    watch_.check();
    const Partition& partition = plan_.partitions[index];
    const Device& device = backend_device(target_, partition.device);
    const auto backend = Backend::load(device.backend);
    const std::string device_text =
        backend_options_text(device, options_.threads, options_.backend_options);
    const std::string options = compile_options_text(options_.precision, inputs);
    const SubIr& sub_ir = sub_ir_of(index);
    const std::vector<NamedTensor> no_weights;
    std::string key;
    if (cache_ != nullptr && cache_->enabled()) {
      key = cache_key({.backend = backend->name(),
                       .backend_version = backend->version(),
                       .fingerprint = backend->device(device_instance(device)).fingerprint,
                       .device = device_text,
                       .options = "layouts of " + key_options(options),
                       .sub_ir = sub_ir.text,
                       .weights = &no_weights});
      const auto entry = cache_->find(key);
      const auto known = entry ? read_offers_json(entry->report) : std::nullopt;
      if (known) return *known;
    }
    LayoutOffers offers;
    try {
      Opened& opened = opened_.at(partition.device);
      const Turn turn = take_turn(opened);
      offers = open(opened, partition.device, device_text)
                   ->check(sub_ir.text, partition.nodes.size(), options)
                   .layouts;
    } catch (const BackendError& error) {
      // Row-major is always right. Whatever is wrong, the compile meets it, too, unless it is this.
      if (error.status() == NPU_INTERNAL) throw;
      log(LogModule::kCompile, LogLevel::kInfo,
          [&] { return partition_text(index) + ": no answer about layouts: " + error.message(); });
      return offers;
    }
    if (!key.empty()) cache_->store(key, kAnswerBlob, offers_json(offers));
    return offers;
  }

  CompiledPartition compile(std::size_t index) {
    const auto start = Clock::now();
    const Partition& partition = plan_.partitions[index];
    const Device& device = backend_device(target_, partition.device);
    const SubIr& made = sub_ir_of(index);
    // Only read while there are threads.
    if (const auto found = known_.find(known_key(index)); found != known_.end()) {
      log(LogModule::kCompile, LogLevel::kDebug,
          [&] { return partition_text(index) + ": the same was compiled before, taken over"; });
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
    compiled.layouts = layouts_of(graph_, partition, layouts_);
    std::string key;
    if (cache_ != nullptr && cache_->enabled()) {
      key = cache_key({.backend = compiled.backend,
                       .backend_version = compiled.backend_version,
                       .fingerprint = compiled.fingerprint,
                       .device = device_text,
                       .options = key_options(options_text(index)),
                       .sub_ir = made.text,
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
      Json report = compile_on(index, device_text, weights, compiled);
      if (!options_.control.blob_folder.empty()) release_mapped_files();  // then the blob is read
      complete_report(report, graph_, partition, made.predicted_kernels);
      compiled.report = std::move(report);
      timer.done([&] { return partition_text(index) + ": " + report_text(compiled); });
      // What was measured is no function of the key: the next compile, whose key has it, is kept.
      const bool is_measured = find_member(*compiled.report, "tuned") != nullptr;
      if (!key.empty() && !is_measured) cache_->store(key, compiled.blob, *compiled.report);
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
  Pieces& pieces_;
  KnownPartitions& known_;
  CompileWatch watch_;
  BoundaryLayouts layouts_;
  std::vector<Result> results_;
  std::vector<SubIr> sub_irs_ = std::vector<SubIr>(results_.size());
  std::map<std::string, Opened> opened_;
  std::vector<std::size_t> todo_;     // partitions that are compiled next
  std::atomic<std::size_t> next_{0};  // of those
};

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
void finish(CompiledModel& model, std::vector<Round::Result> results, const Pieces& pieces,
            Clock::time_point start) {
  for (Round::Result& result : results) {
    model.partitions.push_back(*std::move(result.compiled));
    ++(model.partitions.back().cache_hit ? model.cache_hits : model.cache_misses);
  }
  model.programs_built = pieces.built();
  model.programs_found = pieces.found();
  model.compile_ms = milliseconds_since(start);
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
      if (!results[i].refused) throw partition_error(error, graph, partition, i);
      Refusal refusal{.device = partition.device,
                      .to = {},
                      .nodes = static_cast<std::int64_t>(partition.nodes.size()),
                      .first_node = graph.node(partition.nodes.front()).name,
                      .reason = error.message()};
      if (!move_refused_nodes(graph, partition, target, refusal.reason, refusal.to)) {
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
                           CompileCache* cache, const OpenDevices& devices, KnownPartitions known) {
  const auto start = Clock::now();
  CompiledModel model;
  model.plan = plan;
  model.devices = devices;
  Pieces pieces(cache);
  std::vector<Round::Result> results =
      Round(graph, plan, target, weights, options, cache, pieces, known).run(model.devices);
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (results[i].error == nullptr) continue;
    try {
      std::rethrow_exception(results[i].error);
    } catch (const Error& error) {
      throw results[i].refused ? error : partition_error(error, graph, plan.partitions[i], i);
    }
  }
  finish(model, std::move(results), pieces, start);
  return model;
}

CompiledModel compile_graph(Graph& graph, const PartitionPlan& plan, const Target& target,
                            const std::vector<Tensor>& weights, const CompileOptions& options,
                            CompileCache* cache, const OpenDevices& devices,
                            KnownPartitions known) {
  if (!options.fallback) {
    return compile_plan(graph, plan, target, weights, options, cache, devices, std::move(known));
  }
  const auto start = Clock::now();
  CompiledModel model;
  model.plan = plan;
  model.devices = devices;
  Pieces pieces(cache);
  for (;;) {
    std::vector<Round::Result> results =
        Round(graph, model.plan, target, weights, options, cache, pieces, known).run(model.devices);
    if (!fall_back(graph, target, results, model)) {
      finish(model, std::move(results), pieces, start);
      return model;
    }
    if (graph.npu_member("target") == nullptr) graph.set_npu_member("target", *target.json);
    PartitionOptions again;
    again.strategy =
        model.plan.strategy == "contiguous" ? Strategy::kContiguous : Strategy::kConvex;
    Diagnostics notes;  // of a strategy that was not asked for
    model.plan = partition_graph(graph, again, notes).plan;
  }
}

}  // namespace npu
