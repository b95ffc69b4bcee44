// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "gnn/model/staged_model.hpp"
#include "npu/support/json.hpp"

namespace npu::gnn {

/// The block with every linear layer that is the only reader of an aggregation moved before the
/// gather of that aggregation, where that moves fewer bytes: sums and means of rows commute with a
/// product. Results differ by rounding. `file` is named in errors.
Json linear_before_aggregate(const Json& block, const BlockShape& shape, const std::string& file);

}  // namespace npu::gnn
