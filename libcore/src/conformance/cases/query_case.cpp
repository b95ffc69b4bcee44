// SPDX-License-Identifier: Apache-2.0
// The case of the capability query: what it allows compiles, what it refuses of a single node does
// not, and an answer is the same whenever it is asked for.
#include <string>
#include <utility>
#include <vector>

#include "conformance/cases/cases.hpp"
#include "conformance/harness/question.hpp"
#include "conformance/oracle/op_oracle.hpp"
#include "npu/support/error.hpp"
#include "support/json_fields.hpp"

namespace npu::conformance {
Answer ask(const Harness& harness, npu_device* device, const std::string& sub_ir,
           const std::string& options) {
  Answer answer;
  auto writer = sized<npu_writer>();
  writer.context = &answer.text;
  writer.write = append_bytes;
  auto args = sized<npu_check_args>();
  args.sub_ir = sub_ir.data();
  args.sub_ir_size = sub_ir.size();
  args.options = options.c_str();
  args.ir_version = NPU_IR_VERSION;
  args.answer = &writer;
  auto error = sized<npu_error>();
  answer.status = harness.api.check(device, &args, &error);
  harness.check_error(answer.status, error, "check");
  return answer;
}

namespace {

/// Estimates, if an answer has any, are numbers.
void check_estimates(const Harness& harness, const Json& answer) {
  const auto is_count = [](const Json& value) { return value.is_number_unsigned(); };
  if (const Json* memory = find_member(answer, "memory")) {
    bool is_good = memory->is_object();
    for (const char* name : {"weights_bytes", "scratch_bytes", "boundary_bytes", "other_bytes"}) {
      const Json* bytes = is_good ? find_member(*memory, name) : nullptr;
      is_good = is_good && (bytes == nullptr || is_count(*bytes));
    }
    harness.found.expect(is_good, "\"memory\" of an answer is no object of numbers of bytes");
  }
  if (const Json* seconds = find_member(answer, "seconds")) {
    harness.found.expect(seconds->is_number() && seconds->get<double>() >= 0,
                         "\"seconds\" of an answer are no number from 0 on");
  }
}

/// Counts the nodes that are refused; the form of an answer is checked on the way.
std::size_t count_refused(const Harness& harness, const Answer& answer, std::size_t nodes) {
  Json json;
  try {
    json = parse_json(answer.text, "answer");
  } catch (const Error& fault) {
    harness.found.require(false, std::string("the answer of check is no JSON: ") + fault.what());
  }
  const Json* list = json.is_object() ? find_member(json, "nodes") : nullptr;
  harness.found.require(list != nullptr && list->is_array() && list->size() == nodes,
                        "the answer of check has no \"nodes\" with an entry for each node");
  check_estimates(harness, json);
  std::size_t refused = 0;
  for (const Json& node : *list) {
    const Json* ok = node.is_object() ? find_member(node, "ok") : nullptr;
    harness.found.require(ok != nullptr && ok->is_boolean(),
                          "an entry of the answer of check has no \"ok\"");
    if (ok->get<bool>()) continue;
    ++refused;
    const std::string* reason = member_text(node, "reason");
    harness.found.expect(
        reason != nullptr && !reason->empty() && reason->find('\n') == std::string::npos,
        "check refuses a node without a reason of one line");
  }
  return refused;
}

bool takes(const OpDefinition& op, DType dtype) {
  if (is_floating_point(dtype)) return true;
  if (!is_integer(dtype)) return false;
  return dtype == DType::kUInt8 ? op.takes_unsigned : op.takes_integers;
}

/// Up to four nodes side by side; one reads the result of an earlier one where the types agree.
GraphSpec draw_graph(Random& random, const std::vector<DType>& dtypes) {
  GraphSpec graph;
  const std::size_t count = 1 + random() % 4;
  for (std::size_t n = 0; n < count; ++n) {
    const OpDefinition& op = op_definitions()[random() % op_definitions().size()];
    const DType dtype = dtypes[random() % dtypes.size()];
    if (!takes(op, dtype)) continue;
    const DrawnNode drawn = draw_node(op, random, dtype);
    NodeSpec node{"n" + std::to_string(n), drawn.op, {}, {}, drawn.attrs};
    for (const Shape& shape : drawn.operands) {
      std::string name;
      for (const NodeSpec& earlier : graph.nodes) {
        if (earlier.result.dtype == dtype && earlier.result.shape == shape) name = earlier.name;
      }
      if (name.empty()) {
        name = "x" + std::to_string(graph.inputs.size());
        graph.inputs.push_back({name, dtype, shape});
      }
      node.operands.push_back(name);
    }
    node.result = {node.name, dtype, drawn.result};
    graph.outputs.push_back(node.name);
    graph.nodes.push_back(std::move(node));
  }
  return graph;
}

/// The answer.
std::string check_graph(const Harness& harness, npu_device* device, const GraphSpec& graph) {
  const std::string text = sub_ir_text(graph);
  const Answer answer = ask(harness, device, text);
  harness.found.require(answer.status == NPU_OK, "check gives " + status_name(answer.status) +
                                                     " for " + graph.nodes.front().op);
  const std::size_t refused = count_refused(harness, answer, graph.nodes.size());
  harness.found.expect(ask(harness, harness.open().get(), text).text == answer.text,
                       "asked again, on another device_open, check gives another answer");
  const npu_status compiled = harness.compile(device, graph).status;
  const std::string what =
      "of " + std::to_string(graph.nodes.size()) + " nodes from " + graph.nodes.front().op + " on";
  harness.found.expect(refused != 0 || compiled != NPU_UNSUPPORTED,
                       "check allows all nodes " + what + ", and compile refuses them");
  harness.found.expect(
      refused != 1 || graph.nodes.size() != 1 || compiled == NPU_UNSUPPORTED,
      "check refuses the only node " + what + ", and compile gives " + status_name(compiled));
  return answer.text;
}

}  // namespace

void check_query(const Harness& harness) {
  const DevicePtr device = harness.open();
  harness.found.require(!harness.facts().dtypes.empty(), "the device lists no dtype");
  const DType dtype = harness.facts().dtypes.front();
  const TensorSpec x{"x", dtype, {2, 3}};
  const GraphSpec unknown = one_node("nobody.knows.it", {x}, {"y", dtype, {2, 3}});
  const Answer refused = ask(harness, device.get(), sub_ir_text(unknown));
  harness.found.require(refused.status == NPU_OK, "check of an op that does not exist gives " +
                                                      status_name(refused.status) +
                                                      ", not OK with a node that is refused");
  harness.found.expect(count_refused(harness, refused, 1) == 1,
                       "check allows an op that does not exist");
  for (const char* malformed : {"", "{", "{\"nodes\": 1}"}) {
    const npu_status status = ask(harness, device.get(), malformed).status;
    harness.found.expect(status == NPU_INVALID, "check of a malformed sub-IR gives " +
                                                    status_name(status) + ", not INVALID");
  }
  Random random(30);
  constexpr int kQuickDraws = 60;
  const int draws = harness.quick ? kQuickDraws : 500;
  std::vector<std::pair<std::string, std::string>> answered;  // by sub-IR
  for (int i = 0; i < draws; ++i) {
    const GraphSpec graph = draw_graph(random, harness.facts().dtypes);
    if (graph.nodes.empty()) continue;
    answered.emplace_back(sub_ir_text(graph), check_graph(harness, device.get(), graph));
    if (i < kQuickDraws) harness.found.note(answered.back().second);
  }
  // The last ones first, and nothing compiled between.
  for (auto each = answered.rbegin(); each != answered.rend(); ++each) {
    const bool is_same = ask(harness, device.get(), each->first).text == each->second;
    if (!harness.found.expect(is_same, "asked in another order, check gives another answer")) break;
  }
}

}  // namespace npu::conformance
