// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ir/bind_sizes.hpp"
#include "ir/states_section.hpp"
#include "npu/support/json.hpp"

namespace npu::states {

/// The document of a decoder in which keys and values, perhaps those of all layers, are one tensor,
/// with an input and an output for each of them: NAME.0, NAME.1, or NAME.0.0 of a stack of stacks.
/// Nothing if it has none but those of `others`. Why an output that is a stack of caches stays one
/// is added to `reasons`. O(size).
std::optional<Json> unstack_caches(const Template& model, const std::vector<State>& others,
                                   std::vector<std::string>& reasons);

}  // namespace npu::states
