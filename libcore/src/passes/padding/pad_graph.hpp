// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "ir/bind_sizes.hpp"
#include "npu/ir/graph.hpp"
#include "npu/support/error.hpp"
#include "passes/padding/padding_section.hpp"

namespace npu {

/// A template that is bound at the capacities of its sizes and runs at any size up to them.
///
/// Whoever runs it at sizes n gives it its inputs with copies of their last valid row up to the
/// capacity, and for each symbol that states `valid` an int64 scalar of that name, which is n. The
/// first rows of its outputs, as many as padding.find(output, dim) gives for n, are then those of
/// the model bound at n; the rows behind them mean nothing.
struct PaddedGraph {
  Graph graph;                      ///< with `npu.padding`
  padding::PaddingSection padding;  ///< what that says
  bool has_last_row = false;        ///< the output of PadOptions is cut to its last valid row
};

struct PadOptions {
  /// An output that is wanted along its dimension 1 for the last valid row alone, of size 1 then;
  /// empty: there is none. It keeps all rows where that would compute no less.
  std::string last_row_of = {};
};

/// Binds every size of a template to its capacity, rewrites what depends on the number of rows
/// (means, indices from the end, attention without a mask), inserts the fewest masks, and writes
/// the certificate, which verify_padding has checked. Nodes that have no rule are added to
/// `diagnostics`, all of them, with the reason; the graph is then of no use. `capacities` needs a
/// value for every symbol; sizes that are not to vary are bound before (narrowed_document). Throws
/// as bound_document does.
PaddedGraph pad_graph(const Template& model, const SizeBindings& capacities,
                      Diagnostics& diagnostics, const PadOptions& options = {});

/// Checks the certificate of a document by what it states: walks the nodes once, and compares the
/// class and the size of every dimension that varies with what the rule of the node that makes it
/// gives, every need of a node with what is stated of its operands, the masks with the nodes, and
/// the cut with the flow. Adds an error for each conflict, and one if there is no certificate.
/// Shares the table of rules with pad_graph, and nothing else. O(nodes x samples).
void verify_padding(const Graph& graph, Diagnostics& diagnostics);

/// "padding of S proved for 1..128: 412 tensors, 3 masks", for each symbol.
std::string format_padding(const padding::PaddingSection& section);

}  // namespace npu
