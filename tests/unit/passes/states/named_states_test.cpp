// SPDX-License-Identifier: Apache-2.0
// States that are named by whoever knows the model.
#include "passes/states/named_states.hpp"

#include <string>
#include <vector>

#include "catch.hpp"
#include "graph_builder.hpp"
#include "support/json_fields.hpp"

namespace npu::named_states_test {
namespace {

constexpr const char* kModel = R"(
    input x [2,4]; input past.0 [2,4]; input past.1 [2,4]; input n [3]
    now.0 = add.Tensor(x, past.0) [2,4]
    now.1 = mul.Tensor(now.0, past.1) [2,4]
    more = relu(n) [3]
    output now.1; output now.0; output more)";

std::vector<StateNames> names_of(const std::vector<std::string>& texts) {
  std::vector<StateNames> names;
  for (const std::string& text : texts) names.push_back(parse_state_names(text));
  return names;
}

std::string text_of(const Diagnostics& faults) {
  std::string all;
  for (const Diagnostic& fault : faults.entries()) all += (all.empty() ? "" : "; ") + fault.text;
  return all;
}

/// "input>output" of the states that a graph then has, or what is refused.
std::string named(const std::vector<std::string>& texts) {
  Diagnostics faults;
  Graph graph = test::graph_of(kModel);
  name_states(graph, names_of(texts), faults);
  if (faults.has_errors()) return text_of(faults);
  std::string all;
  for (const State& state : read_states(graph, faults)) {
    all += (all.empty() ? "" : " ") + state.input + ">" + state.output;
  }
  CHECK_FALSE(faults.has_errors());
  return all;
}

TEST_CASE("states are named one by one or by a star", "[states]") {
  CHECK(named({"past.0=now.0"}) == "past.0>now.0");
  CHECK(named({"past.*=now.*", "n=more"}) == "past.0>now.0 past.1>now.1 n>more");
}

TEST_CASE("a document and a graph get the same states", "[states]") {
  Diagnostics faults;
  Json document = parse_json(R"({"graph_inputs": [{"name": "h0"}, {"name": "x"}],
                                 "graph_outputs": [{"name": "y"}, {"name": "hn"}],
                                 "npu": {"states": [{"name": "k", "input": "k"}]}})",
                             "m.json");
  append_states(document, named_states(document, names_of({"h*=h*"}), "m.json", faults));
  CHECK(text_of(faults).find("input 'h0' is to be written as 'h0', which is no graph output") !=
        std::string::npos);
  faults = {};
  append_states(document, named_states(document, names_of({"h0=hn"}), "m.json", faults));
  CHECK_FALSE(faults.has_errors());
  const Json& states = *member_list(*member_object(document, "npu"), "states");
  REQUIRE(states.size() == 2);
  CHECK(*member_text(states[1], "name") == "h0");
  CHECK(*member_text(states[1], "output") == "hn");
}

TEST_CASE("names that fit nothing are refused", "[states]") {
  CHECK(named({"pass.0=now.0"}) ==
        "--state pass.0=now.0: no graph input has this name; did you mean 'past.0'?");
  CHECK(named({"past.0=then.0"}).find("which is no graph output") != std::string::npos);
  CHECK(named({"past.*=now.*", "past.1=now.1"}).find("'past.1' is a state already") !=
        std::string::npos);
  // What npu.states itself refuses.
  CHECK(named({"past.0=more"}).find("float32 [2, 4] before a step") != std::string::npos);
  CHECK(named({"past.0=now.0", "past.1=now.0"}).find("belongs to two states") != std::string::npos);
}

TEST_CASE("a pattern has one star in both names", "[states]") {
  for (const char* text : {"h", "=hn", "h0=", "h*=hn", "h0=h*", "h**=n**"}) {
    CHECK_THROWS_AS(parse_state_names(text), Error);
  }
}

}  // namespace
}  // namespace npu::named_states_test
