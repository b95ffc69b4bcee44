// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "npu/support/json.hpp"
#include "passes/states/decoder_inputs.hpp"
#include "passes/states/past_model.hpp"

namespace npu::states {

/// The document of a decoder without detours that exporters write: a table that is cut to the
/// number of all rows, of which rows are then taken by position; a largest of scores and a number
/// that hides them in front of a softmax; a sum with zeros. Nothing if it has none of them. A table
/// has at least `capacity` rows, else it is left as it is. O(nodes x depth of views).
std::optional<Json> plain_decoder(const PastModel& model, const DecoderInputs& inputs,
                                  std::int64_t capacity);

}  // namespace npu::states
