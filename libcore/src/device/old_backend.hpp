// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "npu/backend.h"

namespace npu {

inline constexpr std::size_t kMostOldBackends = 16;

/// A backend of version 2 or 3 as one of version 4: one device of which little is known, a model
/// that is a program (a second program loads the blob again), and buffers that come into being when
/// something is written to them. The same table for the same backend; null if there are too many.
const npu4_backend* adapt_old_backend(const npu_backend_api& api);

/// Whether a table comes from there.
bool is_adapted(const npu4_backend& table);

}  // namespace npu
