// SPDX-License-Identifier: Apache-2.0
#include "npu/target/target.hpp"

#include <algorithm>
#include <set>

#include "catch.hpp"
#include "npu/ir/json_reader.hpp"
#include "npu/support/error.hpp"
#include "npu/support/file_io.hpp"
#include "npu/support/json.hpp"
#include "target/device_facts.hpp"
#include "target/embedded_targets.hpp"
#include "target/support_check.hpp"

namespace npu {
namespace {

Json valid() {
  return parse_json(R"({
    "name": "test",
    "description": "for tests",
    "devices": [
      {"name": "npu", "backend": "onednn", "options": {"precision": "bf16"},
       "dtypes": ["float32"], "rank": [1, 4],
       "ops": [{"types": ["aten.relu.default", "aten.conv2d.default"]},
               {"types": ["aten.conv2d.default"], "dtypes": ["float16", "bfloat16"], "rank": [4, null],
                "inputs": [2, 3], "attrs": {"groups": {"min": 1, "max": 8}}, "requires": ["not_empty"]}],
       "aliases": ["aten.view.default"], "align": {"channel_multiple": 32}, "on_chip_bytes": 262144,
       "fusion": ["conv-post-ops", "unused"],
       "peak_flops": {"float32": 2e12, "bfloat16": 4e12}, "memory_bandwidth": 6e10,
       "launch_overhead_us": 30},
      {"name": "cpu", "backend": "aten", "ops": "*", "peak_flops": {"float64": 1e9, "float16": 5e8},
       "memory_bandwidth": 2e10}
    ],
    "links": [{"from": "npu", "to": "cpu", "bandwidth": 8e9, "latency_us": 20}]
  })",
                    "test.json");
}

// The faults of `json` as "pointer: text".
std::vector<std::string> target_faults(const Json& json) {
  Diagnostics diagnostics;
  parse_target(json, "test.json", "/npu/target", diagnostics);
  std::vector<std::string> result;
  for (const Diagnostic& entry : diagnostics.entries()) {
    CHECK(entry.location.file == "test.json");
    result.push_back(entry.location.pointer + ": " + entry.text);
  }
  return result;
}

// valid() with one value set (or removed, if it is discarded).
std::vector<std::string> faults_with(const std::string& pointer, const Json& value) {
  Json json = valid();
  json[Json::json_pointer(pointer)] = value;
  return target_faults(json);
}
std::vector<std::string> faults_without(const std::string& parent, const std::string& key) {
  Json json = valid();
  json[Json::json_pointer(parent)].erase(key);
  return target_faults(json);
}

using TargetFaults = std::vector<std::string>;

TEST_CASE("a description is read in full") {
  const Json json = valid();
  const Target target = parse_target(json, "test.json");
  CHECK(target.name == "test");
  CHECK(target.description == "for tests");
  CHECK(*target.json == json);
  REQUIRE(target.devices.size() == 2);
  const Device& npu = target.devices[0];
  CHECK(npu.name == "npu");
  CHECK(npu.backend == "onednn");
  CHECK(npu.backend_options == Json{{"precision", "bf16"}});
  CHECK_FALSE(npu.any_op);
  CHECK(npu.on_chip_bytes == 262144);
  CHECK(npu.memory_bandwidth == 6e10);
  CHECK(npu.launch_overhead_us == 30);
  CHECK(npu.align == Json{{"channel_multiple", 32}});
  CHECK(npu.is_alias("aten.view.default"));
  CHECK_FALSE(npu.is_alias("aten.relu.default"));
  REQUIRE(npu.rules.size() == 2);
  CHECK(npu.rules[0].dtypes.any == std::vector<DType>{DType::kFloat32});  // the device's
  CHECK(npu.rules[0].rank.min == 1);
  CHECK(npu.rules[0].rank.max == 4);
  CHECK(npu.rules[1].dtypes.any == std::vector<DType>{DType::kFloat16, DType::kBFloat16});
  CHECK(npu.rules[1].rank.min == 4);
  CHECK_FALSE(npu.rules[1].rank.max);
  CHECK(npu.rules[1].inputs.contains(2));
  CHECK_FALSE(npu.rules[1].inputs.contains(4));
  REQUIRE(npu.rules[1].attributes.size() == 1);
  CHECK(npu.rules[1].attributes[0].argument == "groups");
  CHECK(npu.rules[1].attributes[0].min == 1.0);
  CHECK(npu.rules[1].attributes[0].max == 8.0);
  CHECK(npu.rules[1].requirements == std::vector<std::string>{"not_empty"});
  CHECK(npu.rules_by_type.at("aten.conv2d.default") == std::vector<std::size_t>{0, 1});
  CHECK(target.devices[1].any_op);
  CHECK(target.devices[1].launch_overhead_us == 0);
}

TEST_CASE("rates of a device") {
  const Target target = parse_target(valid(), "test.json");
  CHECK(target.devices[0].flops_per_second(DType::kBFloat16) == 4e12);
  CHECK(target.devices[0].flops_per_second(DType::kInt8) == 2e12);    // as float32
  CHECK(target.devices[1].flops_per_second(DType::kFloat32) == 5e8);  // the slowest known
}

TEST_CASE("devices and links by name") {
  const Target target = parse_target(valid(), "test.json");
  CHECK(target.find_device("cpu") == &target.devices[1]);
  CHECK(target.find_device("gpu") == nullptr);
  REQUIRE(target.find_link("npu", "cpu") != nullptr);
  CHECK(target.find_link("npu", "cpu")->bandwidth == 8e9);
  CHECK(target.find_link("cpu", "npu") ==
        target.find_link("npu", "cpu"));  // one direction for both
  CHECK(target.find_link("npu", "npu") == nullptr);

  Json json = valid();
  json["links"].push_back({{"from", "cpu"}, {"to", "npu"}, {"bandwidth", 1e9}, {"latency_us", 5}});
  const Target both = parse_target(json, "test.json");
  CHECK(both.find_link("cpu", "npu")->bandwidth == 1e9);
  CHECK(both.find_link("npu", "cpu")->bandwidth == 8e9);
}

TEST_CASE("a single device needs no link") {
  Json json = valid();
  json["devices"].erase(0);
  json["links"] = Json::array();
  CHECK(target_faults(json).empty());
  json.erase("links");
  CHECK(target_faults(json).empty());
}

TEST_CASE("any op and rules together") {
  Json json = valid();
  json["devices"][1]["ops"] = {"*", {{"types", {"my.op"}}}};
  const Target target = parse_target(json, "test.json");
  CHECK(target.devices[1].any_op);
  CHECK(target.devices[1].rules.size() == 1);
}

TEST_CASE("bad-target: structure") {
  CHECK(target_faults(Json("host")) ==
        TargetFaults{"/npu/target: expected an object, found string"});
  CHECK(target_faults(Json::object()) ==
        TargetFaults{"/npu/target: 'name' is missing", "/npu/target: 'devices' is missing"});
  CHECK(faults_with("/devices", Json::array()).front() ==
        "/npu/target/devices: expected a list of at least one device, found array");
  CHECK(faults_with("/devices/0", 1).front() ==
        "/npu/target/devices/0: expected an object, found integer");
  CHECK(faults_with("/name", "") ==
        TargetFaults{"/npu/target/name: expected a non-empty string, found string"});
  CHECK(faults_with("/description", 1) ==
        TargetFaults{"/npu/target/description: expected a string, found integer"});
  CHECK(faults_with("/descripton", "x") ==
        TargetFaults{
            "/npu/target/descripton: unknown key 'descripton'; did you mean 'description'?"});
}

TEST_CASE("bad-target: devices") {
  const std::string at = "/npu/target/devices/0";
  CHECK(faults_without("/devices/1", "name").front() == "/npu/target/devices/1: 'name' is missing");
  CHECK(faults_without("/devices/0", "ops") == TargetFaults{at + ": 'ops' is missing"});
  CHECK(faults_without("/devices/0", "peak_flops") ==
        TargetFaults{at + ": 'peak_flops' is missing"});
  CHECK(faults_without("/devices/0", "memory_bandwidth") ==
        TargetFaults{at + ": 'memory_bandwidth' is missing"});
  CHECK(faults_with("/devices/1/name", "npu").front() ==
        "/npu/target/devices/1/name: device 'npu' is described twice");
  CHECK(faults_with("/devices/0/memory_bandwith", 1) ==
        TargetFaults{
            at +
            "/memory_bandwith: unknown key 'memory_bandwith'; did you mean 'memory_bandwidth'?"});
  CHECK(faults_with("/devices/0/options", Json::array()) ==
        TargetFaults{at + "/options: expected an object, found array"});
  CHECK(faults_with("/devices/0/align", 1) ==
        TargetFaults{at + "/align: expected an object, found integer"});
  CHECK(faults_with("/devices/0/memory_bandwidth", 0) ==
        TargetFaults{at + "/memory_bandwidth: expected a number above 0, found 0"});
  CHECK(faults_with("/devices/0/memory_bandwidth", -1.5) ==
        TargetFaults{at + "/memory_bandwidth: expected a number above 0, found -1.5"});
  CHECK(faults_with("/devices/0/memory_bandwidth", "fast") ==
        TargetFaults{at + "/memory_bandwidth: expected a number above 0, found string"});
  CHECK(faults_with("/devices/0/launch_overhead_us", -1) ==
        TargetFaults{at + "/launch_overhead_us: expected a number of at least 0, found -1"});
  CHECK(faults_with("/devices/0/launch_overhead_us", 0).empty());
  CHECK(faults_with("/devices/0/on_chip_bytes", -1) ==
        TargetFaults{at + "/on_chip_bytes: expected an integer of at least 0, found -1"});
  CHECK(faults_with("/devices/0/on_chip_bytes", 1.5) ==
        TargetFaults{at + "/on_chip_bytes: expected an integer of at least 0, found 1.5"});
  CHECK(faults_with("/devices/0/max_partition_flops", -1) ==
        TargetFaults{at + "/max_partition_flops: expected a number of at least 0, found -1"});
  CHECK(faults_with("/devices/0/max_partition_flops", 1e9).empty());
  CHECK(faults_with("/devices/0/peak_flops", Json::object()) ==
        TargetFaults{at + "/peak_flops: expected FLOP/s of at least one dtype"});
  CHECK(faults_with("/devices/0/peak_flops/float32", 0) ==
        TargetFaults{at + "/peak_flops/float32: expected a number above 0, found 0"});
  const TargetFaults dtype = faults_with("/devices/0/peak_flops/fp32", 1);
  REQUIRE(dtype.size() == 1);
  CHECK(dtype[0].starts_with(at + "/peak_flops/fp32: unknown dtype 'fp32'; one of float32, "));
  CHECK(faults_with("/devices/0/dtypes", Json::array()) ==
        TargetFaults{at + "/dtypes: expected a non-empty list of strings, found an empty one"});
  CHECK(faults_with("/devices/0/dtypes/0", 3) ==
        TargetFaults{at + "/dtypes/0: expected a string, found integer"});
  CHECK(faults_with("/devices/0/rank", {3, 2}) ==
        TargetFaults{at + "/rank: expected [min, max] with 0 <= min <= max, or null for max"});
  CHECK(faults_with("/devices/0/rank", 3).size() == 1);
  CHECK(faults_with("/devices/0/rank", {-1, 2}).size() == 1);
  CHECK(faults_with("/devices/0/rank", {0, "x"}).size() == 1);
  CHECK(faults_with("/devices/0/aliases/0", "aten.viewe.default") ==
        TargetFaults{
            at +
            "/aliases/0: unknown op type 'aten.viewe.default'; did you mean 'aten.view.default'?"});
  CHECK(faults_with("/devices/0/fusion", "all") ==
        TargetFaults{at + "/fusion: expected a list of strings, found string"});
  CHECK(faults_with("/devices/0/fusion/1", 3) ==
        TargetFaults{at + "/fusion/1: expected a string, found integer"});
}

TEST_CASE("bad-target: op rules") {
  const std::string at = "/npu/target/devices/0/ops";
  CHECK(faults_with("/devices/0/ops", "+") ==
        TargetFaults{at + ": expected \"*\" or a list of op rules, found string"});
  CHECK(faults_with("/devices/0/ops/0", "aten.relu.default") ==
        TargetFaults{at + "/0: expected an object, found string"});
  CHECK(faults_without("/devices/0/ops/0", "types") == TargetFaults{at + "/0: 'types' is missing"});
  CHECK(faults_with("/devices/0/ops/0/type", Json::array()) ==
        TargetFaults{at + "/0/type: unknown key 'type'; did you mean 'types'?"});
  CHECK(faults_with("/devices/0/ops/0/types/0", "aten.relu.defalt") ==
        TargetFaults{
            at +
            "/0/types/0: unknown op type 'aten.relu.defalt'; did you mean 'aten.relu.default'?"});
  CHECK(faults_with("/devices/0/ops/0/types/0", "aten.relu") ==
        TargetFaults{at + "/0/types/0: unknown op type 'aten.relu'"});
  CHECK(faults_with("/devices/0/ops/0/types/0", "my.op").empty());
  CHECK(faults_with("/devices/0/ops/0/types/1", "aten.relu.default") ==
        TargetFaults{at + "/0/types/1: op type 'aten.relu.default' stands here twice"});
  CHECK(faults_with("/devices/0/ops/1/attrs/goups", {{"min", 1}}) ==
        TargetFaults{
            at +
            "/1/attrs/goups: aten.conv2d.default has no argument 'goups'; did you mean 'groups'?"});
  CHECK(faults_with("/devices/0/ops/1/attrs/groups", Json::object()) ==
        TargetFaults{at + "/1/attrs/groups: expected one of min, max, each, equals, in"});
  CHECK(faults_with("/devices/0/ops/1/attrs/groups/maximum", 1) ==
        TargetFaults{at + "/1/attrs/groups/maximum: unknown key 'maximum'"});
  CHECK(faults_with("/devices/0/ops/1/attrs/groups/min", "1") ==
        TargetFaults{at + "/1/attrs/groups/min: expected a number, found string"});
  CHECK(faults_with("/devices/0/ops/1/attrs/groups/min", 9) ==
        TargetFaults{at + "/1/attrs/groups: min is greater than max"});
  CHECK(faults_with("/devices/0/ops/1/attrs/groups/each", Json::object()) ==
        TargetFaults{at + "/1/attrs/groups/each: expected min or max"});
  CHECK(faults_with("/devices/0/ops/1/attrs/groups/in", Json::array()) ==
        TargetFaults{
            at + "/1/attrs/groups/in: expected a non-empty list of values, found an empty one"});
  CHECK(
      faults_with("/devices/0/ops/1/requires/0", "not_emty") ==
      TargetFaults{at + "/1/requires/0: unknown predicate 'not_emty'; did you mean 'not_empty'?"});
  CHECK(
      faults_with("/devices/0/ops/0", {{"types", {"my.op"}}, {"requires", {"eval_mode"}}}) ==
      TargetFaults{
          at +
          "/0/requires/0: the arguments of 'my.op' are not known, as predicate 'eval_mode' needs"});
  CHECK(faults_with("/devices/0/ops/0", {{"types", {"my.op"}}, {"attrs", {{"x", {{"min", 1}}}}}}) ==
        TargetFaults{
            at +
            "/0/attrs/x: the arguments of 'my.op' are not known, so they cannot be constrained"});
  CHECK(faults_with("/devices/0/ops/0/dtypes", {{"weight", {"float32"}}}) ==
        TargetFaults{at + "/0/dtypes/weight: aten.relu.default has no tensor argument 'weight'"});
  CHECK(faults_with("/devices/0/ops/1/dtypes", {{"weight", {"float32"}}, {"result", {"bool"}}})
            .empty());
  CHECK(faults_with("/devices/0/ops/1/dtypes", "*").empty());
}

TEST_CASE("bad-target: links") {
  const std::string at = "/npu/target/links";
  CHECK(faults_with("/links", Json::object()) ==
        TargetFaults{at + ": expected a list of links, found object"});
  CHECK(faults_with("/links", Json::array()) ==
        TargetFaults{at + ": no link between 'npu' and 'cpu'"});
  CHECK(faults_with("/links/0/to", "gpu") ==
        TargetFaults{at + "/0/to: unknown device 'gpu'; one of npu, cpu"});
  CHECK(faults_with("/links/0/to", "npu") == TargetFaults{at + "/0: link from 'npu' to itself"});
  CHECK(faults_with("/links/0/bandwidth", 0) ==
        TargetFaults{at + "/0/bandwidth: expected a number above 0, found 0"});
  CHECK(faults_with("/links/0/latency_us", -1) ==
        TargetFaults{at + "/0/latency_us: expected a number of at least 0, found -1"});
  CHECK(faults_with("/links/0/latency_u", 1) ==
        TargetFaults{at + "/0/latency_u: unknown key 'latency_u'; did you mean 'latency_us'?"});
  CHECK(faults_with("/links/1", valid()["links"][0]) ==
        TargetFaults{at + "/1: the link from 'npu' to 'cpu' is described twice"});
}

TEST_CASE("every fault is reported, and the first is thrown") {
  Json json = valid();
  json["devices"][0]["memory_bandwidth"] = 0;
  json["links"][0]["bandwidth"] = 0;
  CHECK(target_faults(json).size() == 2);
  try {
    parse_target(json, "test.json");
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kParse);
    CHECK(error.location().pointer == "/devices/0/memory_bandwidth");
    CHECK(error.message() == "expected a number above 0, found 0 (and 1 more)");
  }
}

TEST_CASE("built-in targets") {
  const auto targets = built_in_targets();
  REQUIRE(targets.size() >= 2);
  CHECK(std::is_sorted(targets.begin(), targets.end(),
                       [](const auto& a, const auto& b) { return a.name < b.name; }));
  for (const BuiltInTarget& built_in : targets) {
    CAPTURE(built_in.name);
    CHECK_FALSE(built_in.description.empty());
    const Target target = load_target(built_in.name);
    CHECK(target.name == built_in.name);
    CHECK(target.description == built_in.description);
    CHECK(target.devices.back().any_op);
  }
}

TEST_CASE("pytorch-apple claims its 41 ops and no other") {
  const Target target = load_target("pytorch-apple");
  const Device& npu = target.devices.front();
  std::set<std::string> ops(npu.aliases.begin(), npu.aliases.end());
  for (const auto& [type, rules] : npu.rules_by_type) ops.insert(type);
  CHECK(ops.size() == 41);
  CHECK(npu.aliases.size() == 12);
  for (const char* absent :
       {"aten.gelu.default", "aten.layer_norm.default", "aten.tanh.default",
        "aten.hardtanh_.default", "aten.avg_pool2d.default", "aten.silu_.default",
        "aten.permute.default", "aten.bmm.default", "aten.sub.Tensor"}) {
    CHECK(ops.count(absent) == 0);
  }
  CHECK(npu.peak_flops.at(DType::kFloat32) == 2e12);
  CHECK(npu.memory_bandwidth == 60e9);
  CHECK(npu.launch_overhead_us == 30);
  CHECK(target.find_link("npu", "cpu")->latency_us == 20);
  CHECK(target.find_link("cpu", "npu")->bandwidth == 8e9);
}

TEST_CASE("an unknown target lists the known ones") {
  try {
    load_target("hots");
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kUsage);
    const std::string text = error.message();
    CHECK(text.starts_with("unknown target 'hots' (did you mean 'host'?); built in: "));
    CHECK(text.find("pytorch-apple") != std::string::npos);
  }
}

TEST_CASE("a name with a slash or .json is a file") {
  for (const char* name : {"./no-such-target", "no-such-target.json"}) {
    try {
      load_target(name);
      FAIL("no error");
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::kIo);
    }
  }
  const std::string path = "target_test.json";
  write_file_atomically(path, valid().dump());
  CHECK(load_target(path).name == "test");
  write_file_atomically(path, "{\"name\": 1}");
  CHECK_THROWS_AS(load_target("./" + path), Error);
  std::remove(path.c_str());
}

TEST_CASE("the target of a document") {
  Json document = {{"model_name", "m"},
                   {"graph_inputs", Json::array()},
                   {"graph_outputs", Json::array()},
                   {"weights", Json::array()},
                   {"weight_name_mapping", Json::object()},
                   {"nodes", Json::array()}};
  try {
    graph_target(read_valid_graph(document.dump(), "m.json"));
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kInvalidGraph);
    CHECK(error.message() == "the document has no target description; run npu-tag on it first");
  }
  document["npu"] = {{"version", 1}, {"target", valid()}};
  CHECK(graph_target(read_valid_graph(document.dump(), "m.json")).name == "test");
  document["npu"]["target"]["devices"][0]["memory_bandwidth"] = -1;
  try {
    graph_target(read_valid_graph(document.dump(), "m.json"));
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(error.location().pointer == "/npu/target/devices/0/memory_bandwidth");
    CHECK(error.location().file == "m.json");
  }
}

TEST_CASE("predicates are listed by name") {
  const auto list = predicates();
  CHECK(std::is_sorted(list.begin(), list.end(),
                       [](const auto& a, const auto& b) { return a.name < b.name; }));
  for (const PredicateSummary& predicate : list) CHECK_FALSE(predicate.summary.empty());
}

TEST_CASE("memory and rules of devices", "[target]") {
  const Target gpu = load_target("gpu");
  CHECK(device_memory_bytes(gpu, "gpu") == std::int64_t{40} << 30);
  CHECK(device_memory_bytes(gpu, "cpu") == 0);
  CHECK(device_memory_bytes(gpu, "tpu") == 0);
  CHECK_FALSE(device_switch_us(gpu, "gpu").has_value());
  CHECK_FALSE(device_switch_us(gpu, "tpu").has_value());
  Json with_switch = *gpu.json;
  with_switch["devices"][0]["switch_us"] = 2.5;
  Diagnostics faults;
  const Target switching = parse_target(with_switch, "t.json", "", faults);
  CHECK_FALSE(faults.has_errors());
  CHECK(device_switch_us(switching, switching.devices[0].name) == 2.5);
  with_switch["devices"][0]["switch_us"] = -1;
  parse_target(with_switch, "t.json", "", faults);
  REQUIRE(faults.has_errors());
  CHECK(faults.entries().front().location.pointer == "/devices/0/switch_us");
  const Target host = load_target("host");
  CHECK(device_rules_digest(host, "gpu").empty());
  const std::string rules = device_rules_digest(host, "npu");
  CHECK(rules.size() == 32);
  CHECK(rules != device_rules_digest(load_target("pytorch-apple"), "npu"));
  // Rates, names and links are another matter.
  Json changed = *host.json;
  changed["description"] = "elsewhere";
  changed["devices"][0]["launch_overhead_us"] = 77;
  CHECK(device_rules_digest(parse_target(changed, "t.json"), "npu") == rules);
  changed["devices"][0]["rank"] = {0, 4};
  CHECK(device_rules_digest(parse_target(changed, "t.json"), "npu") != rules);
  changed["devices"][0]["memory_bytes"] = -1;
  CHECK_THROWS_WITH(parse_target(changed, "t.json"),
                    Catch::Matchers::Contains("memory_bytes: error: expected an integer"));
}

}  // namespace
}  // namespace npu
