// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace npu::dot {

/// `text` for use between the quotes of a Graphviz string, line by line: short_text, escaped so
/// that neither Graphviz nor a viewer of its SVG interprets it.
std::string escaped(std::string_view text);

/// The beginning of a drawing: `digraph "name" {` and the style of its nodes and edges, the same in
/// all drawings. The caller ends it with "}\n".
std::string begin_graph(std::string_view name);

}  // namespace npu::dot
