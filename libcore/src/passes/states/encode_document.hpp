// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "ir/bind_sizes.hpp"
#include "npu/ir/graph.hpp"
#include "npu/support/error.hpp"
#include "npu/support/json.hpp"

namespace npu {

/// The document of an entry that reads a source and writes the states that `decoder` only reads
/// (adopt_caches). Each is an output of `encoder`, what it gives as hidden states, a mask of the
/// rows that are there, or an output of `cross`, a decoder that projects hidden states to keys and
/// values; its rows are filled up with zeros. `cross` may be null. The batch is 1, and a mask that
/// the encoder takes is of ones. Adds an error, and returns nothing, where a state comes of none of
/// these. O(nodes).
std::optional<Json> encode_document(const Template& encoder, const Json& decoder,
                                    const std::string& decoder_file, const Template* cross,
                                    Diagnostics& diagnostics);

}  // namespace npu
