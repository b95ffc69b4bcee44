// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "npu/support/json.hpp"

namespace npu {

/// What the inputs and outputs of a decoder are called; empty: told by shapes and usual names.
struct DecoderNames {
  std::string tokens, positions, mask, logits;
};

/// What a genai_config.json says of a decoder.
struct GenaiConfig {
  DecoderNames names;
  std::optional<std::int64_t> max_length;  ///< of a prompt and what is generated
};

/// What `model.decoder` and `search.max_length` of a document say. Throws Error kParse, with its
/// place, for a member that is of another type.
GenaiConfig genai_config(const Json& root, const std::string& file);
/// That of a file. Throws as read_file and parse_json do, too.
GenaiConfig read_genai_config(const std::string& file);

}  // namespace npu
