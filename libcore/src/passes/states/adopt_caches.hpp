// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "ir/bind_sizes.hpp"
#include "npu/support/error.hpp"
#include "npu/support/json.hpp"

namespace npu {

/// The document of a decoder whose caches are inputs and, with new rows behind them, outputs, as
/// one with states of `capacity` rows that are written in place (npu-ir(5), `npu.states`). A size
/// of batches is bound to 1; others stay open. Adds an error, and returns nothing, where rows that
/// no step has written could change a result, or the number of past rows is used for anything that
/// cannot be followed. O(nodes).
std::optional<Json> adopt_caches(const Template& model, std::int64_t capacity,
                                 Diagnostics& diagnostics);

}  // namespace npu
