// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ir/bind_sizes.hpp"
#include "npu/support/error.hpp"
#include "npu/support/json.hpp"

namespace npu::states {

/// The inputs of a decoder that come of an encoder's source, by their names: what the encoder gives
/// ("encoder_hidden_states"), its mask, and keys and values of cross attention
/// ("past_key_values.0.encoder.key", "past_key_cross_0").
std::vector<std::string> source_inputs(const Json& document);

/// The template in which these inputs have `rows` rows of a source, without outputs that are called
/// so or hand one of them on, and without those of them that nothing reads. Adds an error if the
/// number of rows varies and `rows` is 0. O(nodes).
std::optional<Template> bind_source(const Template& model, const std::vector<std::string>& sources,
                                    std::int64_t rows, Diagnostics& diagnostics);

/// Makes those of the inputs that a document still has states that it only reads.
void add_source_states(Json& document, const std::vector<std::string>& sources);

/// The template at a batch of 1: with every symbol bound that is the first size of an input.
std::optional<Template> with_batch_of_one(const Template& model, Diagnostics& diagnostics);

}  // namespace npu::states
