// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "gnn/graph/graph_reader.hpp"

namespace npu::gnn {

/// By content, else by name.
bool is_matrix_market(std::string_view bytes, const std::string& file);

/// A square matrix in coordinate form: row i, column j is the edge i -> j; symmetric ones have both
/// directions. Values are checked and left out.
DataGraph parse_matrix_market(std::string_view bytes, const std::string& file);

}  // namespace npu::gnn
