// SPDX-License-Identifier: Apache-2.0
// Keeps intermediate results. One that no program hands out in the run itself becomes an output, so
// that a device has to hand it out: one within a fusion group is then no longer one of a single
// kernel; the backend splits the group and its compile report says so. O(size of the document).
#include "runtime/tap_tensors.hpp"

#include <fnmatch.h>

#include <unordered_set>

#include "ir/graph_editor.hpp"
#include "npu/support/error.hpp"

namespace npu {
namespace {

bool matches(const std::string& glob, const std::string& name) {
  return ::fnmatch(glob.c_str(), name.c_str(), 0) == 0;
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
  GraphEditor editor(graph);
  for (const TensorId id : tensors) editor.add_output(id);
  editor.commit();
}

void add_outputs(Graph& graph, const std::vector<std::string>& tensors) {
  if (tensors.empty()) return;
  std::vector<TensorId> ids;
  for (const std::string& name : tensors) ids.push_back(graph.find_tensor(name));
  add_outputs(graph, ids);
}

}  // namespace npu
