// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "npu/support/json.hpp"

namespace npu::gnn {

/// Checks the types in the document of a stage: what cutting blocks out of it takes for granted.
/// Whether names, shapes and dtypes fit is for the reader of the block to find out. `pointer` is
/// the place of `ir` in `file`. Throws Error kInvalidGraph with the place of the first fault.
void check_stage_document(const Json& ir, const std::string& file, const std::string& pointer);

}  // namespace npu::gnn
