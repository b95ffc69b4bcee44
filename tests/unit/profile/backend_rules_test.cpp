// SPDX-License-Identifier: Apache-2.0
#include "profile/backend_rules.hpp"

#include <algorithm>
#include <functional>
#include <set>
#include <string>

#include "catch.hpp"
#include "npu/ir/json_reader.hpp"
#include "npu/target/target.hpp"
#include "target/support_check.hpp"

namespace npu {
namespace {

const OpQuestion& question(const std::string& op) {
  static const std::vector<OpQuestion> all = backend_questions();
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const OpQuestion& each) { return each.op == op; });
  REQUIRE(found != all.end());
  return *found;
}

/// The rules of a device that takes what `takes` holds for, in float32.
BackendRules rules_for(const std::string& op, const std::function<bool(const OpSample&)>& takes,
                       std::vector<DType> dtypes = {DType::kFloat32}) {
  OpAnswer answer{&question(op), {}};
  for (const DType dtype : dtypes) {
    DTypeAnswer& each = answer.dtypes.emplace_back(DTypeAnswer{dtype, {}});
    for (const OpSample& sample : answer.question->samples) each.taken.push_back(takes(sample));
  }
  return backend_rules({answer});
}

}  // namespace

TEST_CASE("every sample of a question is a node that a rule without restrictions allows",
          "[backend_rules]") {
  std::set<std::string> ops;
  for (const OpQuestion& each : backend_questions()) {
    INFO(each.op);
    CHECK(ops.insert(each.op).second);
    REQUIRE(!each.samples.empty());
    std::vector<const OpSample*> samples;
    for (const OpSample& sample : each.samples) samples.push_back(&sample);
    const auto graph = question_graph(each.op, each.gives_bool, DType::kFloat32, samples);
    const Graph read = read_valid_graph(conformance::sub_ir_text(graph), "question");
    REQUIRE(read.nodes().size() == samples.size());
    const Json target = {{"name", "any"},
                         {"devices",
                          {{{"name", "any"},
                            {"ops", {{{"types", {each.op}}, {"attrs", Json::object()}}}},
                            {"peak_flops", {{"float32", 1}}},
                            {"memory_bandwidth", 1}}}}};
    const Target parsed = parse_target(target, "any");
    for (std::size_t i = 0; i < samples.size(); ++i) {
      const auto result =
          check_support(read, NodeId{static_cast<std::int32_t>(i)}, parsed.devices.front());
      CHECK(result.reason == "");
    }
  }
  CHECK(ops.size() > 100);
}

TEST_CASE("what all answers have in common becomes a rule", "[backend_rules]") {
  const BackendRules same = rules_for("aten.add.Tensor", [](const OpSample& sample) {
    return sample.operands.size() == 2 && sample.operands[0] == sample.operands[1];
  });
  CHECK(same.ops == 1);
  CHECK(same.untold == 0);
  CHECK(same.rules == Json::parse(R"([{"types": ["aten.add.Tensor"], "dtypes": ["float32"],
                                       "inputs": [2, 2], "requires": ["same_shape_operands"]}])"));
  const BackendRules flat = rules_for("aten.relu.default",
                                      [](const OpSample& sample) {
                                        const Shape& shape = sample.result;
                                        const bool is_empty =
                                            std::find(shape.begin(), shape.end(), 0) != shape.end();
                                        return !is_empty && !shape.empty() && shape.size() <= 4;
                                      },
                                      {DType::kFloat32, DType::kFloat16});
  CHECK(flat.rules == Json::parse(R"([{"types": ["aten.relu.default"],
      "dtypes": ["float32", "float16"], "rank": [1, 4], "requires": ["not_empty"]}])"));
  const BackendRules grouped = rules_for("aten.conv2d.default", [](const OpSample& sample) {
    return sample.first_weight == 1 && sample.attrs["groups"] == 1 &&
           sample.attrs["dilation"][0] == 1;
  });
  CHECK(grouped.untold == 0);
  CHECK(grouped.rules[0]["requires"] == Json{"weights_are_constant"});
  CHECK(grouped.rules[0]["attrs"] ==
        Json::parse(R"({"dilation": {"equals": 1}, "groups": {"equals": 1}})"));
}

TEST_CASE("what no rule can tell apart is counted, and ops with one rule share it",
          "[backend_rules]") {
  bool is_taken = false;
  const BackendRules moody = rules_for("aten.relu.default", [&](const OpSample& sample) {
    // Every second one of those of rank 1 to 4, whatever they are.
    is_taken = !is_taken;
    return is_taken || sample.result.size() == 2;
  });
  CHECK(moody.untold > 0);
  const auto all = [](const OpSample&) { return true; };
  CHECK(rules_for("aten.relu.default", all).rules ==
        Json::parse(R"([{"types": ["aten.relu.default"], "dtypes": ["float32"]}])"));
  CHECK(rules_for("aten.relu.default", [](const OpSample&) { return false; }).rules.empty());
  const BackendRules comparison = rules_for("aten.eq.Tensor", all);
  CHECK(comparison.rules[0]["dtypes"] == Json::parse(R"({"*": ["float32"], "result": ["bool"]})"));
}

}  // namespace npu
