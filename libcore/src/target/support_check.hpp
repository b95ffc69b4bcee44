// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "npu/target/target.hpp"

namespace npu {

/// Whether a device runs a node. `reason` is empty if it does, else short and stable: "unsupported
/// op", "dtype float64", "rank 5", "3 inputs", "attribute ceil_mode=true", the text of a predicate,
/// or "arguments do not bind: ...".
struct SupportResult {
  bool supported = false;
  std::string reason;
};

/// Decides by op, dtypes, rank, number of operands and arguments, never by name alone, and with all
/// nodes of a byte_region() of a device that narrows_float64, if those may be there: `may_run` says
/// so of each, and without it all may. If all alternatives refuse, reports the reason of the one
/// that got furthest.
SupportResult check_support(const Graph& graph, NodeId node, const Device& device,
                            const std::function<bool(NodeId)>& may_run = {});

/// The same in a graph with tags: nodes that are to stay where they are may not be elsewhere.
SupportResult check_tagged_support(const Graph& graph, NodeId node, const Device& device);

/// Whether a device runs all of some nodes without others; `nodes` is a range of NodeId.
template <typename Nodes>
bool runs_all(const Graph& graph, const Nodes& nodes, const Device& device) {
  const auto is_among = [&](NodeId id) {
    return std::find(nodes.begin(), nodes.end(), id) != nodes.end();
  };
  return std::all_of(nodes.begin(), nodes.end(), [&](NodeId id) {
    return check_support(graph, id, device, is_among).supported;
  });
}

/// A predicate for the `requires` of an op rule: a test of a node in its graph that the other keys
/// of a rule cannot express.
struct PredicateSummary {
  std::string_view name;
  bool needs_arguments = false;  ///< holds for ops of the catalogue only
  std::string_view summary;      ///< what must hold
};
/// Every predicate, by name.
std::vector<PredicateSummary> predicates();

}  // namespace npu
