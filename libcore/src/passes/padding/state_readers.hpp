// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "npu/ir/graph.hpp"

namespace npu::padding {

/// The nodes that read what a recurrence ends with.
struct StateReaders {
  std::vector<NodeId> whole;       ///< getitems of the last state of its only layer, [1, B, H]
  std::vector<NodeId> last_layer;  ///< selections of that of its last layer, [B, H]
  std::string refusal;             ///< that of another state is read; empty if not
};

/// Of a forward LSTM, GRU or RNN with a batch. The last state of the last layer is the last row of
/// the results; what else a recurrence ends with is nowhere in them. O(readers).
StateReaders state_readers(const Graph& graph, const Node& node);

}  // namespace npu::padding
