// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

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

/// Whether an op, by its functional name, converts elements.
bool is_cast(std::string_view op);
/// Whether it reads rows of a table by their numbers.
bool reads_rows(std::string_view op);
/// Whether a name has a part by which inputs of one role are told, such as "pos".
bool is_called(const std::string& name, std::string_view part);

/// Tells them by `names`, or their shapes, what reads them, and what they are called. Adds an error
/// for an input whose size follows from the past and that is neither a cache nor a mask of one row.
std::optional<DecoderInputs> find_decoder_inputs(const PastModel& model, const DecoderNames& names,
                                                 Diagnostics& diagnostics);

}  // namespace npu::states
