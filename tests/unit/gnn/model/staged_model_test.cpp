// SPDX-License-Identifier: Apache-2.0
// Staged models of any shape end in a message with a place, never in an internal error.
#include "gnn/model/staged_model.hpp"

#include "catch.hpp"
#include "npu/support/file_io.hpp"

using namespace npu;
using namespace npu::gnn;

namespace {

Json model_json(const std::string& name) {
  const std::string file = std::string(NPU_TEST_DATA_DIR) + "/gnn/" + name + ".json";
  return parse_json(read_file(file), file);
}

// "PLACE: TEXT" of the refusal.
std::string refusal(const Json& document) {
  try {
    parse_staged_model(document, "m.json");
  } catch (const Error& error) {
    return error.location().pointer + ": " + error.message();
  }
  return {};
}

// Every value below `json`, as pointers.
void add_pointers(const Json& json, const Json::json_pointer& at,
                  std::vector<Json::json_pointer>& pointers) {
  pointers.push_back(at);
  if (json.is_object()) {
    for (const auto& [key, value] : json.items()) add_pointers(value, at / key, pointers);
  } else if (json.is_array()) {
    for (std::size_t i = 0; i < json.size(); ++i) add_pointers(json[i], at / i, pointers);
  }
}

}  // namespace

TEST_CASE("the document of a stage has the types that blocks are cut from", "[gnn][staged]") {
  const Json model = model_json("graphsage");
  REQUIRE(refusal(model).empty());
  const auto with = [&](const std::string& pointer, const Json& value) {
    Json changed = model;
    changed[Json::json_pointer(pointer)] = value;
    return refusal(changed);
  };
  CHECK(with("/stages/6/ir/nodes/0/inputs/0", 7) ==
        "/stages/6/ir/nodes/0/inputs/0: expected an object, found integer");
  CHECK(with("/stages/6/ir/nodes/0/inputs", 7) ==
        "/stages/6/ir/nodes/0/inputs: expected an array 'inputs', found integer");
  CHECK(with("/stages/0/ir/nodes", Json::object()) ==
        "/stages/0/ir/nodes: expected an array 'nodes', found object");
  CHECK(with("/stages/0/ir/graph_inputs/0/name", Json()) ==
        "/stages/0/ir/graph_inputs/0/name: expected a string 'name', found null");
  CHECK(with("/stages/0/ir/graph_inputs/0/shape", 3) ==
        "/stages/0/ir/graph_inputs/0/shape: expected an array 'shape', found integer");
  CHECK(with("/stages/5/ir/weight_name_mapping", Json::array()) ==
        "/stages/5/ir/weight_name_mapping: expected an object 'weight_name_mapping', found array");
}

TEST_CASE("whatever is changed, a model is read or refused", "[gnn][staged]") {
  const Json model = model_json("gcn");
  std::vector<Json::json_pointer> pointers;
  add_pointers(model, Json::json_pointer(), pointers);
  REQUIRE(pointers.size() > 500);
  const std::vector<Json> values{7, -1.5, "n", Json(), Json::array({"m"}), Json{{"name", 1}}};
  std::size_t refused = 0;
  for (std::size_t p = 0; p < pointers.size(); ++p) {
    Json changed = model;
    changed[pointers[p]] = values[p % values.size()];
    CAPTURE(pointers[p].to_string(), values[p % values.size()].dump());
    // Anything but Error escapes, and fails the test.
    if (!refusal(changed).empty()) ++refused;
  }
  CHECK(refused > pointers.size() / 4);
}
