// SPDX-License-Identifier: Apache-2.0
// npu.fusion between JSON and typed fields.
#include "ir/fusion_section.hpp"

#include "catch.hpp"
#include "graph_builder.hpp"

using namespace npu;
using namespace npu::test;
using Names = std::vector<std::string>;

namespace {

// Its keys are not in the order in which npu-fuse writes them, and some are nobody's.
constexpr const char* kSection = R"({"note":"kept","groups":[
  {"pattern":"chain","id":0,"colour":[1,{"a":null}],"outputs":["b"],"inputs":["x"],"nodes":["a","b"],
   "flops":8,"bytes":32,"on_chip_bytes":16},
  {"id":1.5,"pattern":7,"device":null,"nodes":"c","flops":"many","inputs":{},"outputs":[]},
  "no object",{},
  {"id":-3,"bytes":18446744073709551615}],"metrics":{"nodes":2}})";

Graph with_section(std::string_view text) {
  Graph graph = graph_of(R"(
    model chain; input x
    a = relu(x)
    b = relu(a); output b)");
  graph.set_npu_member("target", Json::object());
  graph.set_npu_member("fusion", parse_json(text, "section"));
  graph.set_npu_member("note", "last");
  return graph;
}

}  // namespace

TEST_CASE("fusion section: what is taken out and stored again is the same text") {
  Graph graph = with_section(kSection);
  const std::string before = graph.document().dump();
  auto section = FusionSection::take(graph);
  REQUIRE(section);
  FusionSection::store(graph, std::move(*section));
  CHECK(graph.document().dump() == before);
}

TEST_CASE("fusion section: fields hold what has the stated type") {
  Graph graph = with_section(kSection);
  const auto section = FusionSection::take(graph);
  REQUIRE(section);
  REQUIRE(section->groups.size() == 5);
  const FusionEntry& chain = section->groups[0];
  CHECK(chain.id == 0);
  CHECK(chain.pattern == "chain");
  CHECK_FALSE(chain.device);
  CHECK(chain.nodes == Names{"a", "b"});
  CHECK(chain.inputs == Names{"x"});
  CHECK(chain.outputs == Names{"b"});
  CHECK(chain.flops == 8);
  CHECK(chain.bytes == 32);
  CHECK(chain.on_chip_bytes == 16);
  const FusionEntry& odd = section->groups[1];
  CHECK_FALSE(odd.id);
  CHECK_FALSE(odd.pattern);
  CHECK_FALSE(odd.device);
  CHECK_FALSE(odd.nodes);
  CHECK_FALSE(odd.inputs);
  CHECK_FALSE(odd.flops);
  CHECK(odd.outputs == Names{});
  CHECK(section->groups[4].id == -3);
  CHECK_FALSE(section->groups[4].bytes);  // beyond 63 bits
}

TEST_CASE("fusion section: changes stay in place, what is new comes last, what is unset goes") {
  Graph graph = with_section(
      R"({"groups":[{"pattern":"chain","id":0,"colour":"red","on_chip_bytes":1,"flops":8}]})");
  auto section = FusionSection::take(graph);
  REQUIRE(section);
  FusionEntry& entry = section->groups.front();
  entry.pattern = "single";
  entry.on_chip_bytes.reset();
  entry.outputs = Names{"b"};
  entry.device = "npu";
  FusionEntry& added = section->groups.emplace_back();
  added.nodes = Names{};
  added.id = 1;
  FusionSection::store(graph, std::move(*section));
  CHECK(graph.npu_member("fusion")->dump() ==
        R"({"groups":[{"pattern":"single","id":0,"colour":"red","flops":8,"device":"npu",)"
        R"("outputs":["b"]},{"id":1,"nodes":[]}]})");
}

TEST_CASE("fusion section: a list keeps its names only") {
  Graph graph = with_section(R"({"groups":[{"nodes":[1,"a",null,["b"],"c"]}]})");
  auto section = FusionSection::take(graph);
  REQUIRE(section);
  CHECK(section->groups.front().nodes == Names{"a", "c"});
}

TEST_CASE("fusion section: a document without a list of groups stays as it is") {
  for (const char* text : {R"({"groups":7})", R"({"metrics":{}})"}) {
    Graph graph = with_section(text);
    const std::string before = graph.document().dump();
    CHECK_FALSE(FusionSection::take(graph));
    CHECK(texts_by_group(graph, "pattern").empty());
    CHECK(graph.document().dump() == before);
  }
  Graph none = GraphBuilder("none").input("x").output("x").build();
  CHECK_FALSE(FusionSection::take(none));
}

TEST_CASE("fusion section: patterns by the id that groups state") {
  const Graph graph = with_section(
      R"({"groups":[{"id":3,"pattern":"chain"},{"id":1},{"pattern":"x"},{"id":3,"pattern":"y"}]})");
  const auto patterns = texts_by_group(graph, "pattern");
  REQUIRE(patterns.size() == 1);
  CHECK(patterns.at(3) == "chain");
}
