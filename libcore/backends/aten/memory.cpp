// SPDX-License-Identifier: Apache-2.0
// What models take of the host's memory, which is the device's.
//
// Weights are used where the host has them, and results live from the node that makes them to the
// last one that reads them: their peak is the scratch memory, which the order of the nodes alone
// decides. Views live with what they show. What libtorch's kernels take inside a node is not known,
// so a report is an estimate. O(nodes + tensors).
#include <algorithm>

#include "boundary.hpp"
#include "npu/ir/json_reader.hpp"
#include "ops/op_catalogue.hpp"

namespace npu::aten {
namespace {

/// The most bytes of results that are alive at the same time, without those that the graph hands
/// out, which are buffers.
class LiveBytes {
 public:
  explicit LiveBytes(const Graph& graph)
      : graph_(graph),
        root_(graph.tensors().size()),
        last_(root_.size(), 0),
        is_output_(root_.size(), 0) {
    for (std::size_t i = 0; i < root_.size(); ++i) root_[i] = i;
    for (std::size_t n = 0; n < graph.nodes().size(); ++n) visit(graph.nodes()[n], n);
    for (const TensorId id : graph.graph_outputs()) is_output_[root_[index_of(id)]] = 1;
  }

  std::uint64_t peak() const {
    std::vector<std::int64_t> change(graph_.nodes().size() + 1, 0);
    for (std::size_t i = 0; i < root_.size(); ++i) {
      const TensorInfo& tensor = graph_.tensors()[i];
      if (root_[i] != i || tensor.kind != TensorKind::kResult || is_output_[i] != 0) continue;
      change[index_of(tensor.producer)] += tensor.bytes();
      change[last_[i] + 1] -= tensor.bytes();
    }
    std::int64_t alive = 0;
    std::int64_t most = 0;
    for (const std::int64_t bytes : change) {
      alive += bytes;
      most = std::max(most, alive);
    }
    return static_cast<std::uint64_t>(most);
  }

 private:
  void visit(const Node& node, std::size_t number) {
    const bool is_alias = is_alias_node(graph_, node) && !node.inputs.empty();
    for (const TensorId output : node.outputs) {
      if (is_alias) root_[index_of(output)] = root_[index_of(node.inputs.front())];
      last_[root_[index_of(output)]] = std::max(last_[root_[index_of(output)]], number);
    }
    for (const TensorId input : node.inputs) last_[root_[index_of(input)]] = number;
  }

  const Graph& graph_;
  std::vector<std::size_t> root_;  // by tensor: the one whose memory it shows
  std::vector<std::size_t> last_;  // by root: the last node that touches it
  std::vector<char> is_output_;    // by root
};

}  // namespace

npu_memory_bytes model_bytes(const Graph& graph, std::uint64_t blob_size) {
  npu_memory_bytes bytes{};
  for (const TensorInfo& tensor : graph.tensors()) {
    if (tensor.kind == TensorKind::kWeight) {
      bytes.weights_bytes += static_cast<std::uint64_t>(tensor.bytes());
    }
  }
  for (const auto& list : {graph.graph_inputs(), graph.graph_outputs()}) {
    for (const TensorId id : list) {
      bytes.boundary_bytes += static_cast<std::uint64_t>(graph.tensor(id).bytes());
    }
  }
  bytes.scratch_bytes = LiveBytes(graph).peak();
  bytes.other_bytes = blob_size;
  return bytes;
}

npu_status blob_memory(npu_device* device, const void* blob, std::uint64_t blob_size,
                       npu_memory_report* report, npu_error* error) {
  return guarded(error, [&] {
    require_given(device);
    const Graph graph = read_valid_graph(blob_text(blob, blob_size), "blob");
    fill_report(report, model_bytes(graph, blob_size), 0);
  });
}

npu_status model_memory(npu_model* model, npu_memory_report* report, npu_error* error) {
  return guarded(error, [&] {
    require_given(model);
    fill_report(report, model->bytes, 0);
  });
}

npu_status device_memory(npu_device* device, std::uint32_t memory, npu_memory_state* state,
                         npu_error* error) {
  return guarded(error, [&] {
    require_given(device, state);
    if (memory != 0) invalid("there is one memory");
    fill(state, device->state->ledger->state());
  });
}

}  // namespace npu::aten
