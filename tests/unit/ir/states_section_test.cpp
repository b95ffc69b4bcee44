// SPDX-License-Identifier: Apache-2.0
// Faults of npu.states, which the reader tells, and what may be read before and after a write.
#include "ir/states_section.hpp"

#include <string_view>

#include "catch.hpp"
#include "graph_builder.hpp"

using namespace npu;
using npu::test::document_faults;
using npu::test::GraphBuilder;
using Lines = std::vector<std::string>;

namespace {

/// A cache of four rows, of which a step writes one, and a counter that it replaces.
GraphBuilder cache() {
  GraphBuilder builder;
  builder.lines(R"(
    input cache [1,4,2]; input row [1,1,2]; input at [1] int64; input count [] int64
    old = aten.neg.default(cache)
    next = aten.index_copy.default(cache, at, row) {"dim": 1}
    sum = aten.add.Tensor(next, old)
    more = aten.add.Tensor(count, count)
    late = aten.neg.default(count)
    output sum, next, more, late)");
  return builder;
}

Json with_states(std::string_view states, const GraphBuilder& builder = cache()) {
  Json document = Json::parse(builder.text());
  document["npu"] = {{"version", 1}, {"states", Json::parse(states)}};
  return document;
}

Lines state_faults(std::string_view states) { return document_faults(with_states(states)); }

}  // namespace

TEST_CASE("states: a cache that is written in part and a counter that is replaced",
          "[ir][states]") {
  const char* text = R"([{"name": "k", "input": "cache", "output": "next", "axis": 1},
                         {"name": "n", "input": "count", "output": "more"}])";
  CHECK(state_faults(text).empty());
  Graph graph = valid_graph(with_states(text), "test.json");
  Diagnostics diagnostics;
  const std::vector<State> read = read_states(graph, diagnostics);
  REQUIRE(read.size() == 2);
  CHECK(read[0].name == "k");
  CHECK(read[0].axis == 1);
  CHECK_FALSE(read[1].axis);
  CHECK(states_json(read) == Json::parse(text));
  CHECK(chain_in_place(graph, read[0]).size() == 2);
  CHECK(chain_in_place(graph, read[1]).empty());
  store_states(graph, {});
  CHECK(graph.npu_member("states") == nullptr);
  CHECK(read_states(graph, diagnostics).empty());
  store_states(graph, read);
  CHECK(read_states(graph, diagnostics).size() == 2);
  CHECK_FALSE(diagnostics.has_errors());
}

TEST_CASE("states: one that is only read and one that is only written", "[ir][states]") {
  CHECK(state_faults(R"([{"name": "k", "input": "cache"}, {"name": "n", "output": "more"}])")
            .empty());
}

TEST_CASE("states: faults of form", "[ir][states]") {
  CHECK(state_faults("3") == Lines{"/npu/states: expected a list of at most 65536 states"});
  CHECK(state_faults("[3]").size() == 1);
  CHECK(state_faults(R"([{"input": "cache"}])") ==
        Lines{"/npu/states/0/name: expected the name of the state"});
  CHECK(state_faults(R"([{"name": "k"}])") ==
        Lines{"/npu/states/0: state 'k' has neither 'input' nor 'output'"});
  CHECK(state_faults(R"([{"name": "k", "input": 3}])") ==
        Lines{"/npu/states/0/input: expected the name of a tensor"});
  CHECK(state_faults(R"([{"name": "k", "input": "cache", "axes": 3}])").size() == 1);
  CHECK(state_faults(R"([{"name": "k", "input": "cache"}, {"name": "k", "input": "count"}])") ==
        Lines{"/npu/states/1/name: two states are named 'k'"});
}

TEST_CASE("states: faults of the graph", "[ir][states]") {
  CHECK(state_faults(R"([{"name": "k", "input": "old"}])") ==
        Lines{"/npu/states/0/input: state 'k' is read as 'old', which is no graph input"});
  CHECK(state_faults(R"([{"name": "k", "output": "old"}])") ==
        Lines{"/npu/states/0/output: state 'k' is written as 'old', expected a graph output that a "
              "node computes, listed once"});
  CHECK(state_faults(R"([{"name": "k", "input": "cache", "output": "more"}])") ==
        Lines{"/npu/states/0: state 'k' is float32 [1, 4, 2] before a step ('cache') and int64 [] "
              "after it ('more')"});
  CHECK(state_faults(R"([{"name": "k", "input": "cache"}, {"name": "l", "input": "cache"}])") ==
        Lines{"/npu/states/1/input: tensor 'cache' belongs to two states, the second is 'l'"});
  CHECK(state_faults(R"([{"name": "k", "input": "cache", "axis": 3}])") ==
        Lines{"/npu/states/0/axis: state 'k' has 3 dimensions, found axis 3"});
}

TEST_CASE("states: a reader behind the write in part has to read the writer's result",
          "[ir][states]") {
  GraphBuilder builder;
  builder.lines(R"(
    input cache [1,4,2]; input row [1,1,2]; input at [1] int64
    next = aten.index_copy.default(cache, at, row) {"dim": 1}
    old = aten.neg.default(cache)
    output old, next)");
  const Json document =
      with_states(R"([{"name": "k", "input": "cache", "output": "next"}])", builder);
  CHECK(document_faults(document) ==
        Lines{"/npu/states/0: state 'k' is read by 'old' after 'next' has written it; let it read "
              "'next'"});
}
