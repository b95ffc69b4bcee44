// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "npu/gnn/staged_model.hpp"
#include "npu/support/json.hpp"

namespace npu::gnn {

/// A block with every linear layer that alone reads an aggregation moved in front of its gather,
/// where that moves fewer bytes: sums and means of rows go through a matrix as well before as
/// behind. Results differ by rounding. `file` is named in errors.
Json linear_before_aggregate(const Json& block, const BlockShape& shape, const std::string& file);

}  // namespace npu::gnn
