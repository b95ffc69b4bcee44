// SPDX-License-Identifier: Apache-2.0
// The index of a folder of units: what is written is read, and every fault has its place.
#include "gnn/run/block_index.hpp"

#include <functional>
#include <utility>

#include "catch.hpp"
#include "npu/support/error.hpp"

using namespace npu;
using namespace npu::gnn;

namespace {

BlockIndex small_index() {
  BlockIndex index;
  index.producer = "npu-compile 0";
  index.plan = "p";
  index.model = "m";
  index.graph_nodes = 10;
  index.graph_edges = 20;
  index.partition = "c";
  index.weights = "w";
  index.precision = "f32";
  index.devices = {{"cpu", {{"aten", "1", "a"}, {"onednn", "2", "b"}}}, {"n/u", {{"x", "1", "c"}}}};
  const IndexedProgram program{std::string(32, '0'), std::string(16, 'f')};
  index.units = {
      {{0, 1, 1, 3, 4, 6, 8}, "aten", true, {program, program}, {0, 2}},
      {{0, 1, 1, 3, 5, 6, 8}, "onednn", false, {}, {1}},
      {{1, 2, 4, 7, 16, 16, 0}, "x", false, {program}, {}},
  };
  return index;
}

std::string fault(const std::function<void(Json&)>& change) {
  Json json = to_json(small_index());
  change(json);
  try {
    block_index_from_json(json, "index.json");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kParse);
    return error.location().pointer + ": " + error.message();
  }
  return "none";
}

}  // namespace

TEST_CASE("an index is read as it was written", "[gnn]") {
  const BlockIndex index = small_index();
  CHECK(block_index_from_json(to_json(index), "index.json") == index);
}

TEST_CASE("files of units are named after what they hold", "[gnn]") {
  CHECK(block_name({0, 1, 1, 3, 4, 6, 8}, "cpu") == "cpu.layer1.stages1-3.n4of6.m8");
  // Two names with other letters stay apart.
  CHECK(block_name({1, 2, 4, 7, 16, 16, 0}, "n/u") == "n_u.1.layer2.stages4-7.n16of16.m0");
  CHECK(block_name({2, 2, 4, 7, 16, 16, 0}, "n.u") == "n_u.2.layer2.stages4-7.n16of16.m0");
  CHECK(block_name({3, 1, 1, 1, 1, 1, 1}, "") == "_.3.layer1.stages1-1.n1of1.m1");
}

TEST_CASE("faults of an index are found and placed", "[gnn]") {
  const auto units = [](Json& json) -> Json& { return json["units"]; };
  CHECK(fault([](Json& json) { json["npu"]["kind"] = "plan"; }) ==
        "/npu/kind: expected an index of units, which npu-compile writes");
  CHECK(fault([](Json& json) { json["npu"]["version"] = 2; }) ==
        "/npu/version: expected version 1");
  CHECK(fault([](Json& json) { json.erase("weights"); }) ==
        ": the index is not complete: the key 'weights' is missing");
  CHECK(fault([](Json& json) { json["devices"][1]["name"] = "cpu"; }) ==
        "/devices: device 'cpu' is listed twice");
  CHECK(fault([](Json& json) { json["devices"][0]["backends"][1]["name"] = "aten"; }) ==
        "/devices: backend 'aten' of device 'cpu' is listed twice");
  CHECK(fault([&](Json& json) { units(json)[0]["device"] = "gpu"; }) ==
        "/units/0/device: device 'gpu' is not in /devices");
  CHECK(fault([&](Json& json) { units(json)[0]["unit"] = "../../etc/passwd"; }) ==
        "/units/0/unit: expected 'cpu.layer1.stages1-3.n4of6.m8', found '../../etc/passwd'");
  CHECK(fault([&](Json& json) { units(json)[0]["backend"] = "x"; }) ==
        "/units/0/backend: backend 'x' is none of device 'cpu'");
  CHECK(fault([&](Json& json) { units(json)[0]["features"] = "int8"; }) ==
        "/units/0/features: expected float32 or bfloat16, found 'int8'");
  CHECK(fault([&](Json& json) { units(json)[0]["programs"][0]["key"] = "12"; }) ==
        "/units/0/programs/0/key: expected 32 hexadecimal digits, found '12'");
  CHECK(fault([&](Json& json) { units(json)[0]["programs"][1]["xxh3"] = std::string(16, 'G'); }) ==
        "/units/0/programs/1/xxh3: expected 16 hexadecimal digits, found 'GGGGGGGGGGGGGGGG'");
  CHECK(fault([&](Json& json) {
          units(json)[0]["subgraphs"] = {2, 0};
        }) == "/units/0/subgraphs: expected ascending numbers of at least 0, found 0");
  CHECK(fault([&](Json& json) { std::swap(units(json)[0], units(json)[1]); }) ==
        "/units/1: expected units once each, by device, layer, stages and size");
  CHECK(fault([&](Json& json) { units(json)[1] = units(json)[0]; }) ==
        "/units/1: expected units once each, by device, layer, stages and size");
  for (const char* key : {"layer", "first", "last", "owned", "local", "edges"}) {
    for (const Json& value : {Json(-1), Json("1"), Json(1e300), Json(nullptr)}) {
      CHECK(fault([&](Json& json) { units(json)[0][key] = value; }).starts_with("/units/0"));
    }
  }
}
