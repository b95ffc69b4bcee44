// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "npu/ir/graph.hpp"
#include "npu/support/error.hpp"

namespace npu {

/// The largest `npu.version` that this library reads.
inline constexpr int kIrVersion = 1;

/// Reads and verifies a document of npu-ir(5). Syntax errors throw Error kParse; all other faults,
/// from wrong field types to verify_graph's findings, are added to `diagnostics` in one call. The
/// graph is usable only if no error was added.
Graph read_graph(std::string_view text, const std::string& file, Diagnostics& diagnostics);

/// The same for a document in memory, for passes that add or remove nodes.
Graph assemble_graph(Json document, const std::string& file, Diagnostics& diagnostics);

/// As read_graph and assemble_graph, but they throw Error kInvalidGraph with the first fault: for
/// documents that a program has made itself, such as the sub-IRs that backends are given.
Graph read_valid_graph(std::string_view text, const std::string& file);
Graph valid_graph(Json document, const std::string& file);

}  // namespace npu
