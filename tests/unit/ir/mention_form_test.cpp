// SPDX-License-Identifier: Apache-2.0
// What stands for a list of mentions, and the list that it stands for.
#include "ir/mention_form.hpp"

#include "catch.hpp"
#include "graph_builder.hpp"

using namespace npu;
using npu::test::graph_of;

namespace {

Graph pair_of_results() {
  return graph_of(R"(
    input x; weight w [4]
    s = aten.split.Tensor(x) [2] [2] {"split_size": 2}
    y = "custom"(x, p_w, s_1); output y)");
}

std::string text(const Graph& graph, const char* tensor, MentionForm form) {
  return mention_json(graph, graph.find_tensor(tensor), form).dump();
}

}  // namespace

TEST_CASE("mentions: a form is a number that no list is") {
  CHECK_FALSE(mention_form(Json::array()));
  CHECK_FALSE(mention_form(Json(-1)));
  CHECK_FALSE(mention_form(Json()));
  CHECK(mention_form(Json(static_cast<unsigned>(MentionForm::kResults))) == MentionForm::kResults);
}

TEST_CASE("mentions: which name a producer depends on the form") {
  const Graph graph = pair_of_results();
  const std::string bare_x = R"({"name":"x","shape":[4],"dtype":"float32"})";
  CHECK(text(graph, "x", MentionForm::kBare) == bare_x);
  CHECK(text(graph, "x", MentionForm::kResults) == bare_x);
  CHECK(
      text(graph, "x", MentionForm::kAllButWeights) ==
      R"({"name":"x","shape":[4],"dtype":"float32","producer_node":"x","producer_output_idx":0})");
  CHECK(text(graph, "s_1", MentionForm::kBare) ==
        R"({"name":"s_1","shape":[2],"dtype":"float32"})");
  CHECK(text(graph, "s_1", MentionForm::kResults) ==
        R"({"name":"s_1","shape":[2],"dtype":"float32","producer_node":"s",)"
        R"("producer_output_idx":1})");
  CHECK(text(graph, "p_w", MentionForm::kAllButWeights) ==
        R"({"name":"p_w","shape":[4],"dtype":"float32"})");
}

TEST_CASE("mentions: an object without forms is what the document said") {
  Graph graph = pair_of_results();  // read from text of the usual form
  Node& node = graph.node(graph.find_node("y"));
  REQUIRE(mention_form(node.json.at("inputs")));
  REQUIRE(node.json.at("name").is_null());
  expand_mentions(graph, node);
  const Json once = node.json;
  CHECK(once.at("name") == "y");
  CHECK(once.at("op_type") == "custom");
  CHECK(once.at("inputs").size() == 3);
  CHECK(once.at("inputs")[1].at("name") == "p_w");
  CHECK(once.at("outputs")[0].at("name") == "y");
  expand_mentions(graph, node);
  CHECK(node.json == once);
}
