// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "npu/compile/compiler.hpp"
#include "npu/device/blob.hpp"
#include "npu/ir/graph.hpp"
#include "npu/partition/partition_plan.hpp"
#include "npu/support/json.hpp"
#include "npu/target/target.hpp"

namespace npu {

/// What a plan needs of a device's memory, and what there is.
struct DeviceMemoryNeed {
  std::string device;
  MemoryBytes bytes;       ///< of all its partitions, with one program each
  std::uint64_t host = 0;  ///< of the host's memory, if that is not the device's
  bool is_exact = true;
  bool is_bound = true;  ///< it needs no more; neither: an estimate
  std::optional<std::uint64_t> there;
  std::string limit;         ///< what says how much is there: "--memory-limit"
  std::string largest_part;  ///< "weights of partition 3"
  std::uint64_t largest_bytes = 0;

  std::uint64_t needed() const noexcept;
  bool fits() const noexcept { return !there || needed() <= *there; }
};

/// The members of a compile report's "memory": what a blob takes, summed over the memories.
Json memory_json(const MemoryReport& report);
/// What a compiled partition takes by its report; an estimate from the graph if that has no
/// "memory", which makes no difference between what a backend does not say and 0.
MemoryReport reported_memory(const Graph& graph, const Partition& partition, const Json& report);

/// Sums up what the partitions of a plan take, by device in the order of the target. Boundary
/// tensors count once for each device, and so do weights that its partitions share there.
/// `by_partition` follows the plan; `compiled`, too.
std::vector<DeviceMemoryNeed> memory_needs(const Graph& graph, const PartitionPlan& plan,
                                           const Target& target,
                                           const std::vector<CompiledPartition>& compiled,
                                           const std::vector<MemoryReport>& by_partition);

/// Adds what further runs at the same time take, each with buffers and a program of its own: `need`
/// is that of one.
void need_for_runs(DeviceMemoryNeed& need, std::int32_t runs);

/// Fills in what there is: the least of `limit` (that of --memory-limit; nothing for none), the
/// target's memory_bytes, and what the devices that are open say.
void add_memory_limits(std::vector<DeviceMemoryNeed>& needs, const Target& target,
                       std::optional<std::uint64_t> limit, const OpenDevices& devices);

/// The member "memory_limit" of options that devices are opened with.
std::optional<std::uint64_t> memory_limit_of(const Json& backend_options);

/// Throws DetailedError kInfeasible, about `file` and with a table, if a device has too little.
void check_memory(const std::vector<DeviceMemoryNeed>& needs, const std::string& file);

/// Of all devices.
std::uint64_t needed_bytes(const std::vector<DeviceMemoryNeed>& needs) noexcept;

/// For reports: an array with an object for each device, and a table.
Json memory_needs_json(const std::vector<DeviceMemoryNeed>& needs);
std::string format_memory_needs(const std::vector<DeviceMemoryNeed>& needs);

}  // namespace npu
