// SPDX-License-Identifier: Apache-2.0
// What would be compiled, without a driver: the sub-IR is lowered as for a compile, which is where
// nodes are refused. If all of it is, that is the answer, with what it would take of memory;
// otherwise each node is asked about alone.
#include <algorithm>
#include <optional>

#include "boundary.hpp"
#include "lowering.hpp"
#include "npu/ir/json_reader.hpp"
#include "npu/ir/subgraph.hpp"
#include "npu/support/ids.hpp"
#include "npu/support/json.hpp"

namespace npu::opencl {
namespace {

/// Nothing, and the reason, if a node is refused.
std::optional<Plan> plan_of_question(const Graph& graph, const Machine& machine,
                                     std::string& reason) {
  try {
    return lower_graph(graph, machine, [](std::size_t, std::size_t) {}).plan;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kUnsupported) throw;
    reason = error.message();
    return std::nullopt;
  }
}

Json refusal_of(std::string reason) {
  std::replace(reason.begin(), reason.end(), '\n', ' ');
  return {{"ok", false}, {"reason", std::move(reason)}};
}

/// Each node alone, and, if those are all taken, the node that the refusal of all names.
Json answers_alone(const Graph& graph, const Machine& machine, const std::string& refused) {
  Json answers(std::vector<Json>(graph.nodes().size(), Json{{"ok", true}}));
  bool is_found = false;
  BoundaryFinder boundaries(graph);
  for (const NodeId id : all_nodes(graph)) {
    const Graph alone =
        read_valid_graph(write_subgraph(graph, {id}, boundaries.find({id})), "sub-IR");
    std::string reason;
    if (plan_of_question(alone, machine, reason)) continue;
    answers[index_of(id)] = refusal_of(std::move(reason));
    is_found = true;
  }
  for (std::size_t i = 0; i < answers.size() && !is_found; ++i) {
    if (refused.find("'" + graph.nodes()[i].name + "'") == std::string::npos) continue;
    answers[i] = refusal_of(refused);
    is_found = true;
  }
  if (!is_found && !answers.empty()) answers[0] = refusal_of(refused);
  return answers;
}

std::uint64_t whole_bytes(const std::vector<PlanTensor>& tensors) {
  std::uint64_t sum = 0;
  for (const PlanTensor& tensor : tensors) sum += tensor.bytes;
  return sum;
}

Json memory_answer(const Plan& plan) {
  std::uint64_t weights = 0;
  for (const PlanTensor& weight : plan.weights) weights += aligned(weight.bytes);
  return {{"weights_bytes", weights},
          {"scratch_bytes", plan.scratch_bytes + plan.faults.size() * sizeof(FaultWord)},
          {"boundary_bytes", whole_bytes(plan.inputs) + whole_bytes(plan.outputs)}};
}

}  // namespace

npu_status check(npu_device* device, const npu_check_args* args, npu_error* error) {
  return guarded(error, [&] {
    require(device != nullptr && args != nullptr && NPU_HAS(args, answer) &&
                args->answer != nullptr && args->sub_ir != nullptr,
            "an argument is null");
    const std::string refusal = precision_refusal(args->options);
    const std::string_view text(args->sub_ir, static_cast<std::size_t>(args->sub_ir_size));
    const Graph graph = read_valid_graph(text, "sub-IR");
    check_sub_ir_version(graph);
    Json answer = Json::object();
    std::string reason;
    if (!refusal.empty()) {
      answer["nodes"] = std::vector<Json>(graph.nodes().size(), refusal_of(refusal));
    } else if (const auto plan = plan_of_question(graph, device->machine, reason)) {
      answer["nodes"] = std::vector<Json>(graph.nodes().size(), Json{{"ok", true}});
      answer["memory"] = memory_answer(*plan);
    } else {
      answer["nodes"] = answers_alone(graph, device->machine, reason);
    }
    const std::string bytes = answer.dump();
    pieces_to(args->answer, error)(bytes.data(), bytes.size());
  });
}

}  // namespace npu::opencl
