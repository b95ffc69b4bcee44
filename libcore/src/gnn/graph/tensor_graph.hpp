// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "gnn/graph/graph_reader.hpp"

namespace npu::gnn {

/// Graphs in safetensors: indptr and indices, whose row i lists the targets of i, or edge_index
/// [2, m].
DataGraph parse_tensor_graph(std::string_view bytes, const std::string& file,
                             const GraphReadOptions& options);
/// The same, from a file that is mapped and not read.
DataGraph read_tensor_graph(const std::string& path, const GraphReadOptions& options);

}  // namespace npu::gnn
