// SPDX-License-Identifier: Apache-2.0
// Escaping and a common style for all Graphviz drawings. O(length).
#include "support/dot.hpp"

#include <algorithm>

#include "support/text.hpp"

namespace npu::dot {

std::string escaped(std::string_view text) {
  std::string result;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    if (begin > 0) result += "\\n";
    for (const char c : short_text(text.substr(begin, end - begin))) {
      if (c == '"' || c == '\\') result += '\\';
      result += c;
      // Graphviz interprets HTML entities: "&#27;" would become a control character in the SVG.
      if (c == '&') result += "amp;";
    }
    begin = end + 1;
  }
  return result;
}

std::string begin_graph(std::string_view name) {
  return "digraph \"" + escaped(name) +
         "\" {\n  node [shape=box, style=\"rounded,filled\", fillcolor=white, "
         "fontname=\"Helvetica\", fontsize=10];\n  edge [fontname=\"Helvetica\", fontsize=9];\n";
}

}  // namespace npu::dot
