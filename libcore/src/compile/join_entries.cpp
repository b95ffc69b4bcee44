// SPDX-License-Identifier: Apache-2.0
// One blob for what several entries of a bundle have on a device. Their sub-IRs go to the backend
// in one compile, with the weights of all of them: a tensor that has one name and other values in
// another entry, such as a constant that was folded from its size, gets a name of its own there.
// Values between partitions are row-major in such a blob, and a partition that would rather have
// another layout is compiled by itself. The cost is the backend's, and a comparison of the weights.
#include "compile/join_entries.hpp"

#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include "compile/backend_device.hpp"
#include "compile/boundary_layouts.hpp"
#include "compile/partition_report.hpp"
#include "compile/sub_ir.hpp"
#include "device/device_instance.hpp"
#include "ir/graph_editor.hpp"
#include "npu/ir/json_writer.hpp"
#include "npu/ir/subgraph.hpp"
#include "npu/support/error.hpp"
#include "npu/support/log.hpp"
#include "passes/fusion/fusion_groups.hpp"
#include "support/deadline.hpp"
#include "support/elapsed.hpp"
#include "support/json_fields.hpp"

namespace npu {
namespace {

bool has_same_values(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape() &&
         (a.data() == b.data() || std::memcmp(a.data(), b.data(), a.bytes()) == 0);
}

/// The weights of all entries, each under a name that no other one has.
class JoinedWeights {
 public:
  /// The name of a tensor that `entry` calls `name`.
  std::string add(const std::string& name, const Tensor& tensor, std::size_t entry) {
    std::string own = name;
    for (int again = 0;; ++again) {
      const auto [known, is_new] = places_.try_emplace(own, list_.size());
      if (is_new) {
        list_.push_back({own, tensor});
        return own;
      }
      if (has_same_values(list_[known->second].tensor, tensor)) return own;
      own = name + " " + std::to_string(entry) + (again == 0 ? "" : "." + std::to_string(again));
    }
  }
  const std::vector<NamedTensor>& list() const noexcept { return list_; }

 private:
  std::map<std::string, std::size_t, std::less<>> places_;
  std::vector<NamedTensor> list_;
};

/// A partition of an entry that is compiled with others.
struct JoinedPart {
  std::size_t entry;
  std::size_t partition;
  SubIr sub_ir;
};

/// What is compiled in one go for a device.
class JoinedDevice {
 public:
  JoinedDevice(const std::vector<EntryToJoin>& entries, const Device& device,
               const CompileOptions& options)
      : entries_(entries), device_(device), options_(options) {
    for (std::size_t e = 0; e < entries.size(); ++e) {
      for (std::size_t p = 0; p < entries[e].plan.partitions.size(); ++p) {
        if (entries[e].plan.partitions[p].device == device.name) add(e, p);
      }
    }
  }

  /// Whether there is anything that entries could share.
  bool is_of_several() const {
    std::set<std::size_t> entries;
    for (const JoinedPart& part : parts_) entries.insert(part.entry);
    return entries.size() > 1;
  }

  void compile(CompileCache* cache, OpenDevices& devices, std::vector<KnownPartitions>& known) {
    const auto start = Clock::now();
    const auto backend = Backend::load(device_.backend);
    const std::string device_text =
        backend_options_text(device_, options_.threads, options_.backend_options);
    auto& instance = devices[device_.name];
    if (instance == nullptr) instance = DeviceInstance::open(backend, device_text);
    const std::string options = compile_options_text(options_.precision, {});
    CompiledPartition joined;
    joined.device = device_.name;
    joined.backend = backend->name();
    joined.backend_version = backend->version();
    joined.fingerprint = backend->device(device_instance(device_)).fingerprint;
    joined.holds_weights = backend->holds_weights();
    const std::string key =
        cache != nullptr && cache->enabled() ? key_of(joined, device_text, options) : std::string();
    auto entry = key.empty() ? std::nullopt : cache->find(key);
    Json reports;
    if (entry) {
      joined.blob = std::move(entry->blob);
      joined.cache_hit = true;
      reports = std::move(entry->report);
    } else {
      CompileHooks hooks = watch_hooks();
      joined.blob = instance->compile(model_entries(), weights_.list(), options, hooks);
      reports = device_report(*instance, joined.blob);
      if (!key.empty()) cache->store(key, joined.blob, reports);
    }
    joined.compile_ms = milliseconds_since(start) / static_cast<double>(parts_.size());
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      known[parts_[i].entry].emplace(std::pair(device_.name, options + parts_[i].sub_ir.text),
                                     part_of(joined, reports, i));
    }
  }

 private:
  void add(std::size_t e, std::size_t p) {
    const EntryToJoin& entry = entries_[e];
    const Partition& partition = entry.plan.partitions[p];
    Graph part =
        fused_part(entry.graph, partition.nodes, partition.boundary, device_patterns(device_),
                   backend_aliases(entry.graph, entry.plan, p, *Backend::load(device_.backend)));
    parts_.push_back({e, p, {write_sub_ir(part), predicted_kernels(part, all_nodes(part))}});
    GraphEditor editor(part);
    for (const TensorId id : partition.boundary.weights) {
      const std::string& name = entry.graph.tensor(id).name;
      std::string own = weights_.add(name, entry.weights[index_of(id)], e);
      if (own != name) editor.rename(part.find_tensor(name), std::move(own));
    }
    editor.commit();
    texts_.push_back(write_sub_ir(part));
  }

  std::string name_of(const JoinedPart& part) const {
    return entries_[part.entry].name + " " + std::to_string(part.partition);
  }

  std::vector<ModelEntry> model_entries() const {
    std::vector<ModelEntry> list;
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      list.push_back({.name = name_of(parts_[i]), .sub_ir = texts_[i]});
    }
    return list;
  }

  std::string key_of(const CompiledPartition& joined, const std::string& device_text,
                     const std::string& options) const {
    Json all = Json::array();
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      all.push_back({name_of(parts_[i]), texts_[i]});
    }
    return cache_key({.backend = joined.backend,
                      .backend_version = joined.backend_version,
                      .fingerprint = joined.fingerprint,
                      .device = device_text,
                      .options = "entries " + options + threads_text(),
                      .sub_ir = all.dump(),
                      .weights = &weights_.list()});
  }

  CompileHooks watch_hooks() {
    CompileHooks hooks;
    hooks.blob_folder = options_.control.blob_folder;
    hooks.deadline_ns = deadline_ns(options_.control.deadline);
    const ProgressCallback& progress = options_.control.progress;
    if (progress) {
      hooks.progress = [this, &progress](std::uint64_t done, std::uint64_t total,
                                         const char* phase) {
        const std::lock_guard lock(mutex_);
        const double share =
            total == 0 ? 0 : static_cast<double>(done) / static_cast<double>(total);
        return progress(
            share, std::string(phase != nullptr ? phase : "compiling") + " on " + device_.name);
      };
    }
    return hooks;
  }

  std::string threads_text() const {
    return options_.threads == 0 ? std::to_string(std::thread::hardware_concurrency()) : "";
  }

  /// The part of the joined blob that a partition is, with its own report.
  CompiledPartition part_of(const CompiledPartition& joined, const Json& reports,
                            std::size_t i) const {
    CompiledPartition compiled = joined;
    compiled.program = name_of(parts_[i]);
    const Json* list = member_list(reports, "entries");
    Json report =
        list != nullptr && i < list->size() && (*list)[i].is_object() ? (*list)[i] : Json::object();
    report.erase("name");
    if (const Json* memory = member_object(reports, "memory")) report["memory"] = *memory;
    const EntryToJoin& entry = entries_[parts_[i].entry];
    complete_report(report, entry.graph, entry.plan.partitions[parts_[i].partition],
                    parts_[i].sub_ir.predicted_kernels);
    compiled.report = std::move(report);
    return compiled;
  }

  const std::vector<EntryToJoin>& entries_;
  const Device& device_;
  const CompileOptions& options_;
  std::vector<JoinedPart> parts_;
  std::vector<std::string> texts_;  // sub-IRs as they are compiled, by part
  JoinedWeights weights_;
  std::mutex mutex_;  // of progress
};

}  // namespace

std::vector<KnownPartitions> join_entries(const std::vector<EntryToJoin>& entries,
                                          const Target& target, const CompileOptions& options,
                                          CompileCache* cache, OpenDevices& devices) {
  std::vector<KnownPartitions> known(entries.size());
  for (const Device& device : target.devices) {
    if (device.backend.empty() || Backend::find_file(device.backend).empty()) continue;
    if (!Backend::load(device.backend)->has_feature("entries")) continue;
    JoinedDevice joined(entries, device, options);
    if (!joined.is_of_several()) continue;
    try {
      joined.compile(cache, devices, known);
    } catch (const BackendError& error) {
      if (options.control.deadline && Clock::now() >= *options.control.deadline) {
        throw Error(ErrorCode::kInfeasible, "the deadline is over: no entry on '" + device.name +
                                                "' is compiled; allow more with --deadline");
      }
      if (error.code() != ErrorCode::kUnsupported) throw;
      log(LogModule::kCompile, LogLevel::kInfo, [&] {
        return "entries on '" + device.name + "' compile one by one: " + error.message();
      });
    }
  }
  return known;
}

}  // namespace npu
