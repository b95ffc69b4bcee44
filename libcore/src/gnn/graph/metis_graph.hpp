// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "gnn/graph/graph_reader.hpp"

namespace npu::gnn {

/// METIS's own format: a header, then a line of neighbours for each node. Weights of nodes and
/// edges are kept, sizes left out.
DataGraph parse_metis(std::string_view bytes, const std::string& file);

}  // namespace npu::gnn
