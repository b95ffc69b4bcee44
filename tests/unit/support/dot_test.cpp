// SPDX-License-Identifier: Apache-2.0
#include "support/dot.hpp"

#include "catch.hpp"

using namespace npu;

TEST_CASE("Quotes, backslashes and line ends are escaped for Graphviz") {
  CHECK(dot::escaped("plain") == "plain");
  CHECK(dot::escaped("a\"b\\c\nd") == "a\\\"b\\\\c\\nd");
  CHECK(dot::escaped("\n") == "\\n");
  CHECK(dot::escaped("").empty());
}

TEST_CASE("Nothing in a name makes a drawing that XML cannot have") {
  CHECK(dot::escaped("\x1b[2J\xc2\x9b\xff\xef\xbf\xbf") == "?[2J???");
  // Graphviz would turn the entity into the control character.
  CHECK(dot::escaped("&#27;<b>") == "&amp;#27;<b>");
  CHECK(dot::escaped(std::string(1'000'000, 'x')).size() == 200);
}

TEST_CASE("A drawing begins with its name, escaped, and leaves its block open") {
  const std::string text = dot::begin_graph("a \"model\"");
  CHECK(text.starts_with("digraph \"a \\\"model\\\"\" {\n"));
  CHECK(text.find('}') == std::string::npos);
  CHECK(text.ends_with(";\n"));
}
