// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "npu/support/error.hpp"
#include "npu/support/json.hpp"

namespace npu {

/// `npu.generate` of a document: which of its inputs and outputs a token loop writes and reads. It
/// is that of an encoder, with `source` alone, or of a decoder.
struct GenerateRoles {
  std::string tokens;     ///< graph input, int64 [1, T]
  std::string positions;  ///< graph input, int64 [T] or [1, T]; empty: the model needs none
  std::string logits;     ///< graph output, floating point [1, T or 1, V]
  /// Graph input, what an encoder reads of a request: int64 [1, S] for ids, or any [1, ...].
  std::string source = {};
  /// Ids that a decoder begins with where a request has none; empty: there are none.
  std::vector<std::int64_t> start = {};
  bool operator==(const GenerateRoles&) const = default;
};

/// Reads `npu.generate` of a document, or of a template; nothing if it has none. Faults of form,
/// and names, dtypes and ranks that do not suit, are added to `diagnostics`.
std::optional<GenerateRoles> read_generate_roles(const Json& document, const std::string& file,
                                                 Diagnostics& diagnostics);

/// The section as documents have it.
Json roles_json(const GenerateRoles& roles);

}  // namespace npu
