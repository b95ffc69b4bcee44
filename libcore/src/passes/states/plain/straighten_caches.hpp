// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "ir/bind_sizes.hpp"
#include "npu/support/json.hpp"

namespace npu::states {

/// The document of a decoder in which rows are put behind a cache as it comes, where one turns its
/// dimensions first and back behind. Nothing if it has no such cache. O(size).
std::optional<Json> straighten_caches(const Template& model);

}  // namespace npu::states
