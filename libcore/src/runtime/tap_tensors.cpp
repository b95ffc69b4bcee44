// SPDX-License-Identifier: Apache-2.0
// Keeps intermediate results. A program whose backend has the feature "taps" hands out those that
// its report lists, in the run itself. Any other result becomes an output, so that a device has to
// hand it out: one within a fusion group is then no longer one of a single kernel; the backend
// splits the group and its compile report says so. O(size of the document).
#include "runtime/tap_tensors.hpp"

#include <fnmatch.h>

#include <algorithm>
#include <iterator>
#include <unordered_set>

#include "npu/ir/json_reader.hpp"
#include "npu/ir/json_writer.hpp"
#include "npu/support/error.hpp"
#include "npu/support/ids.hpp"

namespace npu {
namespace {

bool matches(const std::string& glob, const std::string& name) {
  return ::fnmatch(glob.c_str(), name.c_str(), 0) == 0;
}

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

std::vector<std::string> tapped_names(const Graph& graph, const std::vector<std::string>& globs) {
  std::vector<char> used(globs.size(), 0);
  std::vector<std::string> result;
  std::unordered_set<std::int32_t> outputs;
  for (const TensorId id : graph.graph_outputs()) outputs.insert(id.value);
  for (const Node& node : graph.nodes()) {
    for (const TensorId id : node.outputs) {
      bool is_asked_for = false;
      for (std::size_t i = 0; i < globs.size(); ++i) {
        if (!matches(globs[i], graph.tensor(id).name)) continue;
        is_asked_for = true;
        used[i] = 1;
      }
      // A glob may also name what is an output already.
      if (is_asked_for && !outputs.contains(id.value)) result.push_back(graph.tensor(id).name);
    }
  }
  for (std::size_t i = 0; i < globs.size(); ++i) {
    if (used[i] == 0) {
      throw Error(ErrorCode::kUsage, "--tap " + globs[i] + ": no node has a result of such a name");
    }
  }
  return result;
}

void add_outputs(Graph& graph, const std::vector<TensorId>& tensors) {
  Json document = Json::parse(write_graph(graph));
  Json& outputs = document["graph_outputs"];
  for (const TensorId id : tensors) {
    const TensorInfo& tensor = graph.tensor(id);
    outputs.push_back({{"name", tensor.name},
                       {"shape", tensor.shape},
                       {"dtype", dtype_name(tensor.dtype)},
                       {"producer_node", graph.producer_name(tensor)},
                       {"producer_output_idx", tensor.result}});
  }
  graph = read_valid_graph(write_document(document), graph.file);
}

void add_outputs(Graph& graph, const std::vector<std::string>& tensors) {
  if (tensors.empty()) return;
  std::vector<TensorId> ids;
  for (const std::string& name : tensors) ids.push_back(graph.find_tensor(name));
  add_outputs(graph, ids);
}

std::vector<std::optional<TapPlace>> find_taps(const Graph& graph, const PartitionPlan& plan,
                                               const std::vector<CompiledPartition>& compiled,
                                               const std::vector<std::string>& names) {
  std::vector<std::optional<TapPlace>> places(names.size());
  if (names.empty()) return places;
  constexpr std::size_t kNone = SIZE_MAX;
  std::vector<std::size_t> partition_of(graph.nodes().size(), kNone);
  std::unordered_set<std::int32_t> boundaries;
  std::vector<std::unordered_set<std::string>> listed;
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
    const bool is_boundary = boundaries.contains(id.value);
    if (is_boundary || listed[partition].contains(names[i]))
      places[i] = {id, partition, is_boundary};
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
