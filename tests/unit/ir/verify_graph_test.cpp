// SPDX-License-Identifier: Apache-2.0
// Rules about the graph as a whole; the reader's tests cover those about single mentions.
#include "ir/verify_graph.hpp"

#include "catch.hpp"
#include "graph_builder.hpp"

using namespace npu;
using npu::test::errors_of;
using npu::test::faults_of;
using npu::test::graph_of;
using npu::test::GraphBuilder;
using Lines = std::vector<std::string>;

TEST_CASE("verify: the empty graph and one node have no fault") {
  CHECK(faults_of(GraphBuilder().text()).empty());
  CHECK(faults_of(GraphBuilder().input("x").node("a", "custom", {"x"}).output("a").text()).empty());
}

TEST_CASE("verify: a valid graph can be verified again, with the same answer") {
  const Graph graph = GraphBuilder().input("x").node("a", "custom", {"x"}).output("a").build();
  Diagnostics diagnostics;
  verify_graph(graph, diagnostics);
  CHECK(diagnostics.entries().empty());
}

TEST_CASE("verify: a change that breaks the order is found") {
  Graph graph = graph_of(R"(
    input x
    a = "custom"(x)
    b = "custom"(a); output b)");
  std::swap(graph.nodes()[0].inputs, graph.nodes()[1].inputs);  // a reads its own result now
  Diagnostics diagnostics;
  verify_graph(graph, diagnostics);
  CHECK(diagnostics.has_errors());
}

TEST_CASE("verify: every operand that comes too early is listed") {
  CHECK(faults_of(GraphBuilder()
                      .input("x")
                      .node("c", "custom", {"a", "x", "b"})
                      .node("b", "custom", {"a"})
                      .node("a", "custom", {"x"})
                      .text()) == Lines{"/nodes/0/inputs/0: node 'c' reads tensor 'a' before node "
                                        "'a' produces it; nodes must stand in topological order",
                                        "/nodes/0/inputs/2: node 'c' reads tensor 'b' before node "
                                        "'b' produces it; nodes must stand in topological order",
                                        "/nodes/1/inputs/0: node 'b' reads tensor 'a' before node "
                                        "'a' produces it; nodes must stand in topological order"});
}

TEST_CASE("verify: one cycle is reported, starting at its first node in the list") {
  CHECK(faults_of(GraphBuilder()
                      .lines(R"(
    input x
    start = "custom"(x)
    a = "custom"(start, c)
    b = "custom"(a)
    c = "custom"(b)
    end = "custom"(c))")
                      .text()) ==
        Lines{"/nodes/1: the graph has a cycle: 'a' -> 'b' -> 'c' -> 'a'"});
}

TEST_CASE("verify: a getitem needs an index among its operands") {
  const auto with = [](const Json& attrs) {
    return faults_of(
        GraphBuilder()
            .input("x")
            .node_with_results("split", "aten.split.Tensor", {"x"}, {{2}, {2}}, {{"split_size", 2}})
            .node("item", "<built-in function getitem>", {"split_0", "split_1"}, attrs)
            .output("item")
            .text());
  };
  CHECK(with({{"index", 0}}).empty());
  CHECK(with({{"index", -2}}).empty());
  CHECK(with({{"index", 2}}) == Lines{"/nodes/1/attrs/index: node 'item' selects item 2 of 2"});
  CHECK(with({{"index", -3}}) == Lines{"/nodes/1/attrs/index: node 'item' selects item -3 of 2"});
  CHECK(with({{"index", UINT64_MAX}}) ==
        Lines{"/nodes/1/attrs/index: node 'item' selects item 18446744073709551615 of 2"});
  CHECK(with(Json::object()) ==
        Lines{"/nodes/1/attrs: node 'item' needs the integer attribute 'index'"});
  CHECK(with({{"index", true}}) ==
        Lines{"/nodes/1/attrs: node 'item' needs the integer attribute 'index'"});
}

TEST_CASE("verify: a bad order and a bad getitem are both reported") {
  const Lines faults =
      faults_of(GraphBuilder()
                    .input("x")
                    .node("item", "<built-in function getitem>", {"late"}, Json{{"index", 1}})
                    .node("late", "custom", {"x"})
                    .text());
  REQUIRE(faults.size() == 2);
  CHECK(faults[0].starts_with("/nodes/0/inputs/0: node 'item' reads tensor 'late' before"));
  CHECK(faults[1] == "/nodes/0/attrs/index: node 'item' selects item 1 of 1");
}

TEST_CASE("verify: a channel_norm changes the layout alone") {
  const auto faults = [](const Shape& shape, const std::string& dtype,
                         const std::vector<std::string>& operands) {
    return faults_of(
        GraphBuilder()
            .input("x", {1, 8, 2, 2})
            .node("n", "npu.channel_norm", operands, shape, {{"direction", true}}, dtype)
            .text());
  };
  CHECK(faults({1, 8, 2, 2}, "float32", {"x"}).empty());
  CHECK(faults({1, 8, 2, 3}, "float32", {"x"}) ==
        Lines{"/nodes/0/outputs/0: node 'n' makes float32 [1, 8, 2, 3] of float32 [1, 8, 2, 2], "
              "expected the same: a channel_norm changes the layout alone"});
  CHECK(faults({1, 8, 2, 2}, "int8", {"x"}) ==
        Lines{"/nodes/0/outputs/0: node 'n' makes int8 [1, 8, 2, 2] of float32 [1, 8, 2, 2], "
              "expected the same: a channel_norm changes the layout alone"});
  CHECK(faults({1, 8, 2, 2}, "float32", {"x", "x"}) ==
        Lines{"/nodes/0: node 'n' has 2 operands and 1 results, expected one of each"});
}

TEST_CASE("verify: a mask over a cache has what it says that it reads") {
  const auto faults = [](const Json& attrs, const std::vector<std::string>& operands,
                         const Shape& shape = {1, 1, 3, 8}, const char* dtype = "bool") {
    return faults_of(GraphBuilder()
                         .input("p", {3}, "int64")
                         .input("n", {}, "int64")
                         .input("wide", {1, 3}, "int64")
                         .node("m", "npu.length_mask", operands, shape, attrs, dtype)
                         .output("m")
                         .text());
  };
  CHECK(faults({{"operands", "positions"}, {"keys", 8}, {"causal", true}}, {"p"}).empty());
  CHECK(faults({{"operands", "both"}, {"keys", 8}, {"window", 2}}, {"p", "n"}).empty());
  CHECK(faults({{"operands", "valid"}, {"keys", 8}, {"window", -1}}, {"n"}, {1, 1, 1, 8}).empty());
  CHECK(faults({{"keys", 8}, {"causal", true}}, {"p"}) ==
        Lines{"/nodes/0/attrs/operands: node 'm' needs 'operands' of positions, valid or both"});
  CHECK(faults({{"operands", "both"}, {"keys", 8}, {"causal", true}}, {"p"}) ==
        Lines{"/nodes/0/inputs: node 'm' has 1 operands and 1 results, expected 2 and one, as its "
              "operands are 'both'"});
  CHECK(faults({{"operands", "positions"}, {"causal", true}}, {"p"}) ==
        Lines{"/nodes/0/attrs/keys: node 'm' has no number of keys above 0"});
  CHECK(faults({{"operands", "positions"}, {"keys", 8}, {"window", 0}}, {"p"}) ==
        Lines{"/nodes/0/attrs/window: node 'm' has the window 0, expected a number of keys above "
              "0, or -1 for none"});
  CHECK(faults({{"operands", "positions"}, {"keys", 8}}, {"p"}) ==
        Lines{"/nodes/0/attrs: node 'm' takes positions, but is neither causal nor has a window"});
  CHECK(faults({{"operands", "valid"}, {"keys", 8}, {"causal", true}}, {"n"}, {1, 1, 1, 8}) ==
        Lines{"/nodes/0/attrs: node 'm' needs positions to be causal or to have a window"});
  CHECK(faults({{"operands", "positions"}, {"keys", 8}, {"causal", true}}, {"wide"}) ==
        Lines{"/nodes/0/inputs/0: node 'm' takes positions as an int64 vector"});
  CHECK(faults({{"operands", "valid"}, {"keys", 8}}, {"p"}, {1, 1, 1, 8}) ==
        Lines{"/nodes/0/inputs/0: node 'm' takes the number of valid keys as an int64 without "
              "dimensions"});
  CHECK(faults({{"operands", "positions"}, {"keys", 8}, {"causal", true}}, {"p"}, {1, 3, 8}) ==
        Lines{"/nodes/0/outputs/0: node 'm' makes bool [1, 3, 8], expected bool [1, 1, 3, 8]"});
}
