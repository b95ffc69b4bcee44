// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "npu/support/json.hpp"
#include "passes/states/past_model.hpp"
#include "passes/states/written_attention.hpp"

namespace npu::states {

/// The object of a node that is to be `attention`: with `mask`, and where keys and values are the
/// heads of a cache, each repeated for a group of heads of the query, with the cache itself and
/// `enable_gqa`. `mention_of` says of a tensor how it is mentioned.
Json attention_node(const PastModel& model, const CacheAttention& attention, const Json& mask,
                    Json node, const std::function<Json(TensorId)>& mention_of);

}  // namespace npu::states
