// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "npu/support/error.hpp"
#include "npu/support/json.hpp"
#include "passes/states/adopt_caches.hpp"
#include "passes/states/decoder_inputs.hpp"
#include "passes/states/past_model.hpp"

namespace npu::states {

/// The document of a decoder whose caches are states of `capacity` rows, beside `others`. Nothing,
/// with an error for each node that is in the way, if it cannot be written. O(nodes).
std::optional<Json> adopted_document(const PastModel& model, const DecoderInputs& inputs,
                                     std::int64_t capacity, const std::vector<State>& others,
                                     Diagnostics& diagnostics);

}  // namespace npu::states
