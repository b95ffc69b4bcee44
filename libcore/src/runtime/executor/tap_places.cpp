// SPDX-License-Identifier: Apache-2.0
// A program whose backend has the feature "taps" hands out the results that its report lists, in
// the run itself. O(nodes + tensors).
#include "runtime/executor/tap_places.hpp"

#include <algorithm>
#include <iterator>
#include <unordered_set>

#include "device/backend.hpp"
#include "npu/support/ids.hpp"

namespace npu {
namespace {

/// The results that a program hands out besides its outputs.
std::unordered_set<std::string> listed_taps(const CompiledPartition& partition) {
  std::unordered_set<std::string> names;
  const Json* taps = find_member(*partition.report, "taps");
  if (taps == nullptr || !taps->is_array()) return names;
  if (!Backend::load(partition.backend)->has_feature("taps")) return names;
  for (const Json& tap : *taps) {
    if (tap.is_string()) names.insert(tap.get<std::string>());
  }
  return names;
}

}  // namespace

std::vector<std::optional<TapPlace>> find_taps(const Graph& graph, const PartitionPlan& plan,
                                               const std::vector<CompiledPartition>& compiled,
                                               const std::vector<std::string>& names) {
  std::vector<std::optional<TapPlace>> places(names.size());
  if (names.empty()) return places;
  constexpr std::size_t kNone = SIZE_MAX;
  std::vector<std::size_t> partition_of(graph.nodes().size(), kNone);
  std::unordered_set<std::int32_t> boundaries;
  std::vector<std::unordered_set<std::string>> listed;
  std::vector<std::size_t> counts(plan.partitions.size(), 0);
  for (std::size_t p = 0; p < plan.partitions.size(); ++p) {
    for (const NodeId node : plan.partitions[p].nodes) partition_of[index_of(node)] = p;
    for (const TensorId id : plan.partitions[p].boundary.outputs) boundaries.insert(id.value);
    listed.push_back(listed_taps(compiled[p]));
  }
  for (std::size_t i = 0; i < names.size(); ++i) {
    const TensorId id = graph.find_tensor(names[i]);
    if (!id.valid() || graph.tensor(id).kind != TensorKind::kResult) continue;
    const std::size_t partition = partition_of[index_of(graph.tensor(id).producer)];
    if (partition == kNone) continue;
    if (boundaries.contains(id.value)) {
      places[i] = {id, partition, std::nullopt};
    } else if (listed[partition].contains(names[i])) {
      places[i] = {id, partition, counts[partition]++};
    }
  }
  return places;
}

std::vector<std::string> untapped_names(const Graph& graph, const PartitionPlan& plan,
                                        const Target& target,
                                        const std::vector<std::string>& names) {
  if (names.empty()) return {};
  std::unordered_set<std::int32_t> held;
  for (const Partition& partition : plan.partitions) {
    const Device* device = target.find_device(partition.device);
    // A backend that is not here is an error of the compile.
    if (device == nullptr || Backend::find_file(device->backend).empty()) continue;
    if (Backend::load(device->backend)->has_feature("taps")) continue;
    for (const NodeId node : partition.nodes) {
      for (const TensorId id : graph.node(node).outputs) held.insert(id.value);
    }
    for (const TensorId id : partition.boundary.outputs) held.erase(id.value);
  }
  std::vector<std::string> found;
  std::copy_if(names.begin(), names.end(), std::back_inserter(found), [&](const std::string& name) {
    const TensorId id = graph.find_tensor(name);
    return id.valid() && held.contains(id.value);
  });
  return found;
}

std::vector<std::string> handed_out(const CompiledPartition& partition,
                                    const std::vector<std::string>& names) {
  const std::unordered_set<std::string> listed = listed_taps(partition);
  std::vector<std::string> found;
  std::copy_if(names.begin(), names.end(), std::back_inserter(found),
               [&](const std::string& name) { return listed.contains(name); });
  return found;
}

}  // namespace npu
