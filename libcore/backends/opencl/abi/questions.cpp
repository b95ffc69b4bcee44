// SPDX-License-Identifier: Apache-2.0
// What would be compiled, without a driver: the sub-IR is lowered as for a compile, which is where
// nodes are refused. If all of it is, that is the answer, with what it would take of memory;
// otherwise each node is asked about alone.
#include "kit/questions.hpp"

#include <optional>

#include "abi/boundary.hpp"
#include "lowering/lower_graph.hpp"

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
    require_given(device);
    const Graph graph = graph_of_question(args);
    const std::string refusal = precision_refusal(args->options);
    Json answer = Json::object();
    std::string reason;
    if (!refusal.empty()) {
      answer["nodes"] = std::vector<Json>(graph.nodes().size(), refusal_of(refusal));
    } else {
      const auto plan = plan_of_question(graph, device->machine, reason);
      answer["nodes"] = node_answers(graph, reason, [&](const Graph& alone, std::string& why) {
        return plan_of_question(alone, device->machine, why).has_value();
      });
      if (plan) answer["memory"] = memory_answer(*plan);
    }
    write_answer(answer, *args, error);
  });
}

}  // namespace npu::opencl
