// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "npu/support/json.hpp"
#include "passes/states/past_model.hpp"

namespace npu::states {

/// Gives an attention that has none a mask.
void set_mask(Json& attention, const Json& mask);

/// Makes an attention whose keys and values are the heads of a cache, each repeated for a group of
/// heads of the query, read the cache itself: `enable_gqa`. `node` is the one of the model,
/// `attention` its object as it is to be, `mention_of` says of a tensor how it is mentioned there.
/// Other attentions stay as they are.
void read_heads_in_place(const PastModel& model, const Node& node, Json& attention,
                         const std::function<Json(TensorId)>& mention_of);

}  // namespace npu::states
