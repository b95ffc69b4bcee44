// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "npu/passes/tag.hpp"
#include "passes/tag/ask_backends.hpp"

namespace npu {

/// The last step of tag_ops: sets devices and the target of a graph whose ops are as they are to
/// run (rewrite_ops), with what backends said, or null. Leaves the graph alone if there are errors;
/// true if it changed.
bool tag_nodes(Graph& graph, const Target& target, const TagOptions& options,
               const BackendAnswers* answers, Diagnostics& diagnostics);

}  // namespace npu
