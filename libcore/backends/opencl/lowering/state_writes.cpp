// SPDX-License-Identifier: Apache-2.0
// A state is written where it lies if each op from its input to its output overwrites a part of
// what the one before gives, and whatever else reads that does so before. All tensors of the chain
// are then one piece of memory. A group that reads a state as it was and as it will be becomes two
// kernels, since a launch costs less than a copy of the state. What no order of kernels makes right
// is copied, which the report says.
#include "lowering/state_writes.hpp"

#include <algorithm>

#include "ir/states_section.hpp"

namespace npu::opencl {
namespace {

std::size_t place(TensorId id) { return static_cast<std::size_t>(id.value); }

/// From the input to the output; empty if not all of it are writes in part.
std::vector<TensorId> chain_of(const Graph& graph, const AliasPair& pair) {
  const State state{.name = {},
                    .input = graph.tensor(graph.graph_inputs()[pair.input]).name,
                    .output = graph.tensor(graph.graph_outputs()[pair.output]).name,
                    .axis = {}};
  std::vector<TensorId> chain = chain_in_place(graph, state);
  std::reverse(chain.begin(), chain.end());
  return chain;
}

/// Whether all but the last may be gone when a run is done, and the writer of each has no other way
/// to the one before than as what it overwrites.
bool is_overwritten_alone(const Graph& graph, const TensorReaders& readers,
                          const std::vector<TensorId>& chain) {
  for (std::size_t i = 0; i + 1 < chain.size(); ++i) {
    const NodeId writer = graph.tensor(chain[i + 1]).producer;
    const auto& nodes = readers.nodes[place(chain[i])];
    if (readers.is_output[place(chain[i])]) return false;
    if (std::count(nodes.begin(), nodes.end(), writer) != 1) return false;
  }
  return chain.size() > 1;
}

}  // namespace

std::vector<StateWrite> find_state_writes(const Graph& graph, const TensorReaders& readers) {
  std::vector<StateWrite> writes;
  for (const AliasPair& pair : read_aliases(graph)) {
    StateWrite write{pair, chain_of(graph, pair)};
    if (!is_overwritten_alone(graph, readers, write.chain)) write.chain.clear();
    writes.push_back(std::move(write));
  }
  return writes;
}

std::vector<std::pair<NodeId, NodeId>> reads_before_writes(const Graph& graph,
                                                           const TensorReaders& readers,
                                                           std::span<const StateWrite> writes) {
  std::vector<std::pair<NodeId, NodeId>> pairs;
  for (const StateWrite& write : writes) {
    for (std::size_t i = 0; i + 1 < write.chain.size(); ++i) {
      const NodeId writer = graph.tensor(write.chain[i + 1]).producer;
      for (const NodeId reader : readers.nodes[place(write.chain[i])]) {
        if (reader != writer) pairs.emplace_back(reader, writer);
      }
    }
  }
  return pairs;
}

namespace {

/// By node, whether it depends on a result of another one.
std::vector<bool> nodes_behind(const Graph& graph, NodeId node) {
  std::vector<bool> behind(graph.nodes().size(), false);
  for (std::size_t i = static_cast<std::size_t>(node.value) + 1; i < behind.size(); ++i) {
    behind[i] = std::ranges::any_of(graph.nodes()[i].inputs, [&](TensorId input) {
      const NodeId producer = graph.tensor(input).producer;
      return producer.valid() &&
             (producer == node || behind[static_cast<std::size_t>(producer.value)]);
    });
  }
  return behind;
}

}  // namespace

std::vector<KernelNodes> part_readers(const Graph& graph, const TensorReaders& readers,
                                      const StateWrite& state, std::vector<KernelNodes> kernels) {
  for (std::size_t i = 0; i + 1 < state.chain.size(); ++i) {
    const NodeId writer = graph.tensor(state.chain[i + 1]).producer;
    const auto& reading = readers.nodes[place(state.chain[i])];
    const std::vector<bool> behind = nodes_behind(graph, writer);
    std::vector<KernelNodes> parted;
    for (KernelNodes& kernel : kernels) {
      KernelNodes later{{}, kernel.pattern, "a state that it reads is overwritten in between"};
      const bool reads = std::ranges::any_of(kernel.nodes, [&](NodeId id) {
        return id != writer && std::ranges::find(reading, id) != reading.end();
      });
      if (reads) {
        const auto first = std::stable_partition(
            kernel.nodes.begin(), kernel.nodes.end(),
            [&](NodeId id) { return !behind[static_cast<std::size_t>(id.value)]; });
        later.nodes.assign(first, kernel.nodes.end());
        kernel.nodes.erase(first, kernel.nodes.end());
      }
      if (kernel.nodes.empty()) std::swap(kernel.nodes, later.nodes);
      parted.push_back(std::move(kernel));
      if (!later.nodes.empty()) parted.push_back(std::move(later));
    }
    kernels = std::move(parted);
  }
  return kernels;
}

void keep_ordered(const Graph& graph, const TensorReaders& readers, std::vector<StateWrite>& writes,
                  const std::function<bool(NodeId, NodeId)>& is_before) {
  for (StateWrite& write : writes) {
    const auto pairs = reads_before_writes(graph, readers, {&write, 1});
    const bool holds = std::ranges::all_of(
        pairs, [&](const auto& pair) { return is_before(pair.first, pair.second); });
    if (!holds) write.chain.clear();
  }
}

}  // namespace npu::opencl
