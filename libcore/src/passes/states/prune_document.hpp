// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "npu/support/json.hpp"

namespace npu::states {

/// Removes the nodes, weights and constants of a document that no output needs. O(size).
void prune_document(Json& document);

/// Removes what a template says of where its symbols stand, which is then found anew.
void forget_places(Json& document);

}  // namespace npu::states
