// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "passes/states/genai_config.hpp"
#include "passes/states/past_model.hpp"

namespace npu::states {

/// The parts that inputs and outputs of a decoder have beside its caches; invalid ids: none has it.
struct DecoderInputs {
  TensorId tokens = {};     ///< the numbers of the new tokens
  TensorId positions = {};  ///< the position of each
  TensorId mask = {};       ///< which rows of the past and which new ones count: all of them
  TensorId start = {};      ///< the number of rows of the past, of a buffer of fixed size
  TensorId logits = {};     ///< an output: a number for each token that may follow
};

/// The document of a decoder whose tokens and positions are int64, where they are int32. Nothing if
/// it has none of these. O(inputs x nodes).
std::optional<Json> widened_inputs(const Template& model, const DecoderNames& names);

/// Tells them by `names`, or their shapes, what reads them, and what they are called. Adds an error
/// for an input whose size follows from the past and that is neither a cache nor a mask of one row.
std::optional<DecoderInputs> find_decoder_inputs(const PastModel& model, const DecoderNames& names,
                                                 Diagnostics& diagnostics);

}  // namespace npu::states
