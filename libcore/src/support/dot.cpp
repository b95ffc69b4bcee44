// SPDX-License-Identifier: Apache-2.0
// Escaping and a common style for all Graphviz drawings. O(length).
#include "support/dot.hpp"

namespace npu::dot {

std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    if (c == '\n') {
      result += "\\n";
    } else {
      result += c;
    }
  }
  return result;
}

std::string begin_graph(std::string_view name) {
  return "digraph \"" + escaped(name) +
         "\" {\n  node [shape=box, style=\"rounded,filled\", fillcolor=white, "
         "fontname=\"Helvetica\", fontsize=10];\n  edge [fontname=\"Helvetica\", fontsize=9];\n";
}

}  // namespace npu::dot
