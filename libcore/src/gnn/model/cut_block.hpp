// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "gnn/model/staged_model.hpp"
#include "npu/support/json.hpp"

namespace npu::gnn {

/// StagedModel::block as a document, which need not be valid: `name` is its model_name.
Json cut_block(const LayerInfo& layer, std::int32_t first, std::int32_t last,
               const BlockShape& shape, const std::string& name);

}  // namespace npu::gnn
