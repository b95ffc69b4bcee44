// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "transport/transport.hpp"

namespace npu::gnn {

/// Rows of float32 that are asked for piece by piece: those from `begin` on, `count` of them, valid
/// until the next call.
struct RowsToWrite {
  std::int64_t width = 0;
  std::function<const float*(std::int64_t begin, std::int64_t count)> rows;
};

/// Writes a .npy of all nodes in which every rank fills in its rows, so that a reader sees the old
/// file or the complete new one. `rows` has one row for each of `own_nodes`, and may have more.
/// Collective over the transport; null: there is one rank. Throws Error kIo on one rank where
/// something failed, and FailedElsewhere on the others.
void write_rank_rows(const std::string& path, const RowsToWrite& rows,
                     const std::vector<std::int32_t>& own_nodes, std::int64_t node_count,
                     const Transport* transport);

}  // namespace npu::gnn
