// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

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

/// Reads `model.decoder` and `search.max_length`. Throws Error kParse, with its place, for a member
/// that is of another type.
GenaiConfig read_genai_config(std::string_view text, const std::string& file);

}  // namespace npu
