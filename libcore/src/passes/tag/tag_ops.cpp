// SPDX-License-Identifier: Apache-2.0
// Gives every node the device that will run it.
//
// Input:  a verified graph and a target.
// Output: the same graph with device and device_reason set, constants folded, and the target in
//         `npu.target`.
// Three steps, which npu-tag takes one by one: ops become what runs, backends are asked, and nodes
// are tagged.
#include "npu/passes/tag.hpp"
#include "passes/tag/ask_backends.hpp"
#include "passes/tag/rewrite_ops.hpp"
#include "passes/tag/tag_nodes.hpp"

namespace npu {

bool tag_ops(Graph& graph, const Target& target, const TagOptions& options,
             Diagnostics& diagnostics) {
  const std::size_t errors = diagnostics.error_count();
  RewrittenOps rewritten = rewrite_ops(graph, target, options);
  const auto answers = options.ask ? ask_backends(graph, target, options) : nullptr;
  const bool changed = tag_nodes(graph, target, options, answers.get(), diagnostics);
  if (diagnostics.error_count() == errors) return changed || rewritten.changed;
  if (rewritten.before) graph = *std::move(rewritten.before);
  return false;
}

}  // namespace npu
