// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "npu/ir/graph.hpp"
#include "npu/support/error.hpp"

namespace npu {

/// The largest `npu.version` that this library reads.
inline constexpr int kIrVersion = 1;

/// Reads and verifies a document of npu-ir(5). Syntax errors throw Error kParse; every other fault,
/// wrong field types and verify_graph's findings alike, is added to `diagnostics`, all of them in
/// one call. The graph is usable only if no error was added.
Graph read_graph(std::string_view text, const std::string& file, Diagnostics& diagnostics);

/// As above for a document in memory: what a pass that adds or removes nodes hands in.
Graph assemble_graph(Json document, const std::string& file, Diagnostics& diagnostics);

/// As the first, and throws Error kInvalidGraph with the first fault if there is any: for documents
/// that a program made itself (sub-IRs that a backend is handed).
Graph read_valid_graph(std::string_view text, const std::string& file);

}  // namespace npu
