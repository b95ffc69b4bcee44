// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/bind_sizes.hpp"
#include "npu/support/error.hpp"
#include "npu/support/json.hpp"
#include "passes/states/genai_config.hpp"
#include "passes/states/named_states.hpp"

namespace npu {

struct AdoptOptions {
  std::int64_t capacity = 0;  ///< rows of states that come from caches which grow; 0: not stated
  std::int64_t longest = 0;   ///< that number where it is not stated; 0: none is known
  DecoderNames names = {};
  std::vector<StateNames> states = {};  ///< what is replaced as a whole in each step
  /// Rows of states that come of an encoder's source; 0: not stated.
  std::int64_t source_rows = 0;
  std::vector<std::int64_t> start = {};  ///< ids that a request begins with (npu.generate)
};

/// The document of a decoder whose caches are inputs and, with new rows, outputs, as one with
/// states that are written in place (npu-ir(5), `npu.states`). Inputs that come of an encoder's
/// source, and outputs that hand them on, become states that are only read. A size of batches is
/// bound to 1; others stay open. Adds an error, and returns nothing, where rows that no step has
/// written could change a result, or the number of past rows is used for anything that cannot be
/// followed. O(nodes).
std::optional<Json> adopt_caches(const Template& model, const AdoptOptions& options,
                                 Diagnostics& diagnostics);

}  // namespace npu
