// SPDX-License-Identifier: Apache-2.0
#include "runtime/entries/shared_states.hpp"

#include <string>

#include "catch.hpp"
#include "graph_builder.hpp"
#include "ir/states_section.hpp"

namespace npu {
namespace {

/// A graph that writes a state of a type, as its output.
Graph writer_of(const std::string& name, const std::string& type) {
  Graph graph = test::graph_of("input x " + type + "; y = neg(x) " + type + "; output y");
  store_states(graph, {{.name = name, .input = {}, .output = "y", .axis = {}}});
  return graph;
}

/// One that reads it.
Graph reader_of(const std::string& name, const std::string& type) {
  Graph graph = test::graph_of("input k " + type + "; z = neg(k) " + type + "; output z");
  store_states(graph, {{.name = name, .input = "k", .output = {}, .axis = {}}});
  return graph;
}

std::string told(const Graph& encode, const Graph& decode, std::size_t errors) {
  Diagnostics diagnostics;
  check_shared_states({{"encode", encode}, {"decode", decode}}, diagnostics);
  CHECK(diagnostics.error_count() == errors);
  std::string text;
  for (const Diagnostic& each : diagnostics.entries()) text += each.text + "\n";
  return text;
}

TEST_CASE("states of documents are matched by name, dtype and shape", "[entries][states]") {
  CHECK(told(writer_of("k", "[1,4]"), reader_of("k", "[1,4]"), 0).empty());
  CHECK(told(writer_of("k", "[1,4]"), reader_of("k", "[1,8]"), 1) ==
        "entry 'decode': state 'k' is float32 [1, 8], expected float32 [1, 4] as in entry "
        "'encode'\n");
  CHECK(told(writer_of("k", "[1,4]"), reader_of("k", "[1,4] float16"), 1) ==
        "entry 'decode': state 'k' is float16 [1, 4], expected float32 [1, 4] as in entry "
        "'encode'\n");
}

TEST_CASE("a state that is read has to be written", "[entries][states]") {
  const std::string text = told(writer_of("cross.k", "[1,4]"), reader_of("cross.v", "[1,4]"), 1);
  CHECK_THAT(text, Catch::Contains("entry 'encode' writes the state 'cross.k', which no entry "
                                   "reads"));
  CHECK_THAT(text, Catch::Contains("entry 'decode' reads the state 'cross.v', which no entry "
                                   "writes; states that are written: 'cross.k'"));
  CHECK_THAT(told(reader_of("a", "[1,4]"), reader_of("a", "[1,4]"), 1),
             Catch::Contains("entry 'encode' reads the state 'a', which no entry writes; no state "
                             "is written"));
}

TEST_CASE("faults of a states section are told as such", "[entries][states]") {
  Graph bad = reader_of("k", "[1,4]");
  store_states(bad, {{.name = "k", .input = "none", .output = {}, .axis = {}}});
  CHECK_THAT(told(writer_of("k", "[1,4]"), bad, 1), Catch::Contains("no graph input"));
}

}  // namespace
}  // namespace npu
