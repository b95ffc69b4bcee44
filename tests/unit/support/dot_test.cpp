// SPDX-License-Identifier: Apache-2.0
#include "support/dot.hpp"

#include "catch.hpp"

using namespace npu;

TEST_CASE("Quotes, backslashes and line ends are escaped for Graphviz") {
  CHECK(dot::escaped("plain") == "plain");
  CHECK(dot::escaped("a\"b\\c\nd") == "a\\\"b\\\\c\\nd");
}

TEST_CASE("A drawing begins with its name, escaped, and leaves its block open") {
  const std::string text = dot::begin_graph("a \"model\"");
  CHECK(text.starts_with("digraph \"a \\\"model\\\"\" {\n"));
  CHECK(text.find('}') == std::string::npos);
  CHECK(text.ends_with(";\n"));
}
