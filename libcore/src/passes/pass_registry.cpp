// SPDX-License-Identifier: Apache-2.0
// Every pass, one row each, written by hand: static self-registration disappears from a static
// library.
#include "passes/pass_registry.hpp"

#include <array>

#include "npu/passes/align.hpp"
#include "npu/passes/fuse.hpp"
#include "npu/passes/tag.hpp"

namespace npu {
namespace {

constexpr std::array<PassInfo, 3> kPasses{{
    {"tag-ops", "assign every node to the first device of the target that supports it",
     [](Graph& graph, const Target& target, Diagnostics& diagnostics) {
       return tag_ops(graph, target, {}, diagnostics);
     }},
    {"fuse-ops", "put ops that can run as one kernel into groups",
     [](Graph& graph, const Target&, Diagnostics& diagnostics) {
       return fuse_ops(graph, {}, diagnostics);
     }},
    {"align-layout", "give every op a layout and insert the fewest conversions",
     [](Graph& graph, const Target& /*target*/, Diagnostics& diagnostics) {
       return align_layout(graph, {}, diagnostics).changed;
     }},
}};

}  // namespace

std::span<const PassInfo> passes() { return kPasses; }

}  // namespace npu
