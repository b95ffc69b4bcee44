// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "gnn/graph/graph_reader.hpp"

namespace npu::gnn {

/// SNAP's edge lists: "source target" a line, or with commas between; further columns are left out.
/// `says_undirected` is set if a comment says that the graph is undirected.
DataGraph parse_edge_list(std::string_view bytes, const std::string& file,
                          const GraphReadOptions& options, bool& says_undirected);

}  // namespace npu::gnn
