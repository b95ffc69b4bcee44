// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace npu::dot {

/// `text` for use between the quotes of a Graphviz string, line by line: short_text, and nothing
/// that Graphviz or a reader of its SVG would take for more than text.
std::string escaped(std::string_view text);

/// How a drawing begins: `digraph "name" {` and the looks of its nodes and edges, the same in all
/// drawings. The caller ends it with "}\n".
std::string begin_graph(std::string_view name);

}  // namespace npu::dot
