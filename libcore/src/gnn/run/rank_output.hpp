// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "npu/tensor/tensor.hpp"
#include "transport/transport.hpp"

namespace npu::gnn {

/// Writes a .npy of all nodes in which every rank fills in its rows, so that a reader sees the old
/// file or the complete new one. `rows` has one row for each of `own_nodes`, and may have more.
/// Collective over the transport; null: there is one rank. Throws Error kIo on one rank where
/// something failed, and FailedElsewhere on the others.
void write_rank_rows(const std::string& path, const Tensor& rows,
                     const std::vector<std::int32_t>& own_nodes, std::int64_t node_count,
                     const Transport* transport);

}  // namespace npu::gnn
