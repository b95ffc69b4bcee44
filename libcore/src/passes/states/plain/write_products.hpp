// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "ir/bind_sizes.hpp"
#include "npu/support/json.hpp"

namespace npu::states {

/// The document of a decoder in which sums of products of two tensors, stated as an equation, are
/// products of matrices. Nothing if it has none. O(size).
std::optional<Json> write_products(const Template& model);

}  // namespace npu::states
