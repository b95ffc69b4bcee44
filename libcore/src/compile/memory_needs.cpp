// SPDX-License-Identifier: Apache-2.0
// Adds up what the partitions of a plan take of each device's memory, before the first one is
// loaded, so that a model that does not fit is refused with numbers and not in the middle.
//
// Backends say what a blob takes; where one does not, the sizes of tensors are an estimate. Buffers
// at the boundary are the host's own: each tensor counts once for each device that it is on, as if
// all of them were alive at once. O(partitions + their boundaries).
#include "npu/compile/memory_needs.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "device/device_instance.hpp"
#include "support/detailed_error.hpp"
#include "support/text.hpp"
#include "target/device_facts.hpp"

namespace npu {
namespace {

constexpr std::uint64_t kMost = std::uint64_t{1} << 48;  // sums of all partitions do not overflow

/// At most kMost, since shapes come from a file.
std::uint64_t tensor_bytes(const Graph& graph, const std::vector<TensorId>& ids) {
  std::uint64_t sum = 0;
  for (const TensorId id : ids) {
    sum += std::min(static_cast<std::uint64_t>(graph.tensor(id).bytes()), kMost - sum);
  }
  return sum;
}

MemoryBytes sum_of(const std::vector<MemoryBytes>& memories) {
  MemoryBytes sum;
  for (const MemoryBytes& each : memories) {
    sum.weights += each.weights;
    sum.scratch += each.scratch;
    sum.boundary += each.boundary;
    sum.other += each.other;
  }
  return sum;
}

/// A number of bytes in a report, which may come from a file.
std::uint64_t bytes_in(const Json& json, const char* key) {
  const Json* value = find_member(json, key);
  return value != nullptr && value->is_number_unsigned()
             ? std::min(value->get<std::uint64_t>(), kMost)
             : 0;
}

const char* accuracy_text(bool is_exact, bool is_bound) {
  return is_exact ? "exact" : is_bound ? "bound" : "estimate";
}

void add_members(Json& json, const MemoryBytes& bytes, std::uint64_t host, const char* accuracy) {
  set_member(json, "weights_bytes", bytes.weights);
  set_member(json, "scratch_bytes", bytes.scratch);
  set_member(json, "boundary_bytes", bytes.boundary);
  set_member(json, "other_bytes", bytes.other);
  set_member(json, "host_bytes", host);
  set_member(json, "accuracy", accuracy);
}

/// Sums for one device.
class DeviceSum {
 public:
  DeviceSum(const Graph& graph, const std::string& device) : graph_(graph) {
    need_.device = device;
  }

  void add(std::size_t index, const Partition& partition, const CompiledPartition& compiled,
           const MemoryReport& report) {
    MemoryBytes bytes = sum_of(report.memories);
    // Programs of one blob are one model.
    if (!compiled.program.empty() && !blobs_.insert(compiled.blob.data.get()).second) {
      bytes.weights = bytes.other = 0;
    }
    std::uint64_t weights = bytes.weights;
    if (!compiled.holds_weights && shares_weights(compiled.backend)) {
      for (const TensorId id : partition.boundary.weights) {
        const auto size = static_cast<std::uint64_t>(graph_.tensor(id).bytes());
        if (!shared_.insert(id).second) weights -= std::min(weights, size);
      }
    }
    need_.bytes.weights += weights;
    if (shares_scratch(compiled.backend)) {
      need_.bytes.scratch = std::max(need_.bytes.scratch, bytes.scratch);
    } else {
      need_.bytes.scratch += bytes.scratch;
    }
    need_.bytes.other += bytes.other;
    need_.host += report.host;
    need_.is_exact = need_.is_exact && report.is_exact;
    need_.is_bound = need_.is_bound && report.is_bound;
    const std::string of = " of partition " + std::to_string(index);
    look(weights, "weights" + of);
    look(bytes.scratch, "scratch" + of);
    look(bytes.other, "code and tables" + of);
    for (const auto* list : {&partition.boundary.inputs, &partition.boundary.outputs}) {
      boundary_.insert(list->begin(), list->end());
    }
  }

  DeviceMemoryNeed finish() {
    need_.bytes.boundary = tensor_bytes(graph_, {boundary_.begin(), boundary_.end()});
    look(need_.bytes.boundary, "inputs and outputs");
    return std::move(need_);
  }

 private:
  /// Programs of a device run one after another.
  static bool shares_scratch(const std::string& backend) {
    return Backend::load(backend)->has_feature("scratch");
  }

  static bool shares_weights(const std::string& backend) {
    return Backend::load(backend)->api().weights_load != nullptr;
  }

  void look(std::uint64_t bytes, const std::string& part) {
    if (bytes <= need_.largest_bytes) return;
    need_.largest_bytes = bytes;
    need_.largest_part = part;
  }

  const Graph& graph_;
  DeviceMemoryNeed need_;
  std::set<TensorId> shared_;
  std::set<TensorId> boundary_;
  std::set<const std::byte*> blobs_;  // of several programs
};

std::string cell(std::uint64_t bytes) { return bytes_text(static_cast<double>(bytes)); }

}  // namespace

std::uint64_t DeviceMemoryNeed::needed() const noexcept {
  return bytes.weights + bytes.scratch + bytes.boundary + bytes.other;
}

void need_for_runs(DeviceMemoryNeed& need, std::int32_t runs) {
  const auto times = static_cast<std::uint64_t>(std::max(runs, 1));
  for (std::uint64_t* bytes : {&need.bytes.scratch, &need.bytes.boundary}) {
    *bytes = *bytes > kMost / times ? std::max(*bytes, kMost) : *bytes * times;
  }
}

std::uint64_t needed_bytes(const std::vector<DeviceMemoryNeed>& needs) noexcept {
  std::uint64_t sum = 0;
  for (const DeviceMemoryNeed& need : needs) sum += need.needed();
  return sum;
}

Json memory_json(const MemoryReport& report) {
  Json json = Json::object();
  add_members(json, sum_of(report.memories), report.host,
              accuracy_text(report.is_exact, report.is_bound));
  return json;
}

MemoryReport reported_memory(const Graph& graph, const Partition& partition, const Json& report) {
  MemoryReport read;
  const Json* memory = find_member(report, "memory");
  if (memory == nullptr || !memory->is_object()) {
    read.memories.push_back({.weights = tensor_bytes(graph, partition.boundary.weights),
                             .scratch = bytes_in(report, "arena_bytes"),
                             .boundary = tensor_bytes(graph, partition.boundary.inputs) +
                                         tensor_bytes(graph, partition.boundary.outputs)});
    return read;
  }
  read.memories.push_back({.weights = bytes_in(*memory, "weights_bytes"),
                           .scratch = bytes_in(*memory, "scratch_bytes"),
                           .boundary = bytes_in(*memory, "boundary_bytes"),
                           .other = bytes_in(*memory, "other_bytes")});
  read.host = bytes_in(*memory, "host_bytes");
  const Json* accuracy = find_member(*memory, "accuracy");
  read.is_exact = accuracy != nullptr && *accuracy == "exact";
  read.is_bound = read.is_exact || (accuracy != nullptr && *accuracy == "bound");
  return read;
}

std::vector<DeviceMemoryNeed> memory_needs(const Graph& graph, const PartitionPlan& plan,
                                           const Target& target,
                                           const std::vector<CompiledPartition>& compiled,
                                           const std::vector<MemoryReport>& by_partition) {
  std::map<std::string, DeviceSum> sums;
  for (std::size_t i = 0; i < plan.partitions.size(); ++i) {
    const Partition& partition = plan.partitions[i];
    const auto found = sums.try_emplace(partition.device, graph, partition.device).first;
    found->second.add(i, partition, compiled[i], by_partition[i]);
  }
  std::vector<DeviceMemoryNeed> needs;
  for (const Device& device : target.devices) {
    const auto found = sums.find(device.name);
    if (found != sums.end()) needs.push_back(found->second.finish());
  }
  return needs;
}

void add_memory_limits(std::vector<DeviceMemoryNeed>& needs, const Target& target,
                       std::optional<std::uint64_t> limit, const OpenDevices& devices) {
  for (DeviceMemoryNeed& need : needs) {
    const auto consider = [&](std::uint64_t bytes, const char* source) {
      if (need.there && *need.there <= bytes) return;
      need.there = bytes;
      need.limit = source;
    };
    if (limit) consider(*limit, "--memory-limit");
    const std::int64_t stated = device_memory_bytes(target, need.device);
    if (stated > 0) consider(static_cast<std::uint64_t>(stated), "memory_bytes of the target");
    const auto open = devices.find(need.device);
    if (open == devices.end() || open->second == nullptr) continue;
    const DeviceInstance& device = *open->second;
    const auto& memories = device.facts().memories;
    if (!memories.empty() && memories.front().total_bytes) {
      consider(*memories.front().total_bytes, "the device");
    }
    const auto state = device.memory_state();
    if (!state || !state->limit) continue;
    const std::uint64_t in_use = state->in_use.value_or(0);
    consider(*state->limit - std::min(*state->limit, in_use), "what is free on the device");
  }
}

std::optional<std::uint64_t> memory_limit_of(const Json& backend_options) {
  const Json* limit = find_member(backend_options, "memory_limit");
  if (limit == nullptr || !limit->is_number_unsigned()) return std::nullopt;
  return limit->get<std::uint64_t>();
}

void check_memory(const std::vector<DeviceMemoryNeed>& needs, const std::string& file) {
  const auto short_of = std::find_if(needs.begin(), needs.end(),
                                     [](const DeviceMemoryNeed& need) { return !need.fits(); });
  if (short_of == needs.end()) return;
  throw DetailedError(ErrorCode::kInfeasible,
                      "device '" + short_of->device + "' needs " + cell(short_of->needed()) +
                          " of memory, there are " + cell(*short_of->there) + " (" +
                          short_of->limit + "); the largest part is " + short_of->largest_part +
                          ", " + cell(short_of->largest_bytes),
                      {.file = file}, format_memory_needs(needs));
}

Json memory_needs_json(const std::vector<DeviceMemoryNeed>& needs) {
  Json list = Json::array();
  for (const DeviceMemoryNeed& need : needs) {
    Json row = {{"device", need.device}, {"needed_bytes", need.needed()}};
    add_members(row, need.bytes, need.host, accuracy_text(need.is_exact, need.is_bound));
    if (need.there) {
      row["there_bytes"] = *need.there;
      row["limit"] = need.limit;
    }
    list.push_back(std::move(row));
  }
  return list;
}

std::string format_memory_needs(const std::vector<DeviceMemoryNeed>& needs) {
  std::vector<std::vector<std::string>> rows{{"memory", ">needed", ">there", ">weights", ">scratch",
                                              ">in and out", ">other", "accuracy", "largest part"}};
  for (const DeviceMemoryNeed& need : needs) {
    rows.push_back({"memory of " + need.device, cell(need.needed()),
                    need.there ? cell(*need.there) : "-", cell(need.bytes.weights),
                    cell(need.bytes.scratch), cell(need.bytes.boundary), cell(need.bytes.other),
                    accuracy_text(need.is_exact, need.is_bound), need.largest_part});
  }
  return table_text(rows);
}

}  // namespace npu
