// SPDX-License-Identifier: Apache-2.0
// Keeps intermediate results: they become outputs, so that a device has to hand them out. A result
// within a fusion group is then no longer one of a single kernel; the backend splits the group and
// its compile report says so. O(size of the document).
#include "runtime/tap_tensors.hpp"

#include <fnmatch.h>

#include <algorithm>

#include "npu/ir/json_reader.hpp"
#include "npu/ir/json_writer.hpp"
#include "npu/support/error.hpp"

namespace npu {
namespace {

bool matches(const std::string& glob, const std::string& name) {
  return ::fnmatch(glob.c_str(), name.c_str(), 0) == 0;
}

/// The results that become outputs. A glob may also name what is an output already.
std::vector<TensorId> tapped(const Graph& graph, const std::vector<std::string>& globs) {
  std::vector<char> used(globs.size(), 0);
  std::vector<TensorId> result;
  for (const Node& node : graph.nodes()) {
    for (const TensorId id : node.outputs) {
      bool is_asked_for = false;
      for (std::size_t i = 0; i < globs.size(); ++i) {
        if (!matches(globs[i], graph.tensor(id).name)) continue;
        is_asked_for = true;
        used[i] = 1;
      }
      const std::vector<TensorId>& outputs = graph.graph_outputs();
      const bool is_new = std::find(outputs.begin(), outputs.end(), id) == outputs.end();
      if (is_asked_for && is_new) result.push_back(id);
    }
  }
  for (std::size_t i = 0; i < globs.size(); ++i) {
    if (used[i] == 0) {
      throw Error(ErrorCode::kUsage, "--tap " + globs[i] + ": no node has a result of such a name");
    }
  }
  return result;
}

}  // namespace

void tap_tensors(Graph& graph, const std::vector<std::string>& globs) {
  if (!globs.empty()) add_outputs(graph, tapped(graph, globs));
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

}  // namespace npu
