// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "ir/bind_sizes.hpp"
#include "npu/support/json.hpp"
#include "passes/states/decoder_inputs.hpp"

namespace npu::states {

/// The document of a decoder whose inputs of tokens and positions are int64. Nothing if none of
/// them is int32.
std::optional<Json> widened_inputs(const Template& model, const DecoderNames& names);

}  // namespace npu::states
