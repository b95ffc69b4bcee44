// SPDX-License-Identifier: Apache-2.0
// The layouts of values between programs: which ones a question finds worth having, and what the
// options say that they are to be. An input is taken as it comes if no step only brings it into
// another layout; an output is offered as its last step leaves it. Any other layout costs a reorder
// and is right all the same. O(steps) for each input.
#include "abi/boundary.hpp"
#include "npu/support/json.hpp"

namespace npu::onednn::abi {
namespace {

/// Whether a step does nothing but bring what lies in a buffer, or a copy in another type, into
/// another layout.
bool is_reordered(const Plan& plan, BufferId buffer) {
  return std::any_of(plan.steps.begin(), plan.steps.end(), [&](const Step& step) {
    if (step.kind != KernelKind::kReorder || step.operands.front().buffer != buffer) return false;
    if (!step.kernel || std::holds_alternative<StridedCopy>(*step.kernel)) return true;
    const BufferId copy = step.operands[step.read_count].buffer;
    return std::holds_alternative<Convert>(*step.kernel) && copy > buffer &&
           is_reordered(plan, copy);
  });
}

const Json& member_of(const Json& object, const char* key) {
  static const Json kNone = Json::object();
  const Json* found = object.is_object() ? find_member(object, key) : nullptr;
  return found == nullptr ? kNone : *found;
}

}  // namespace

LayoutNames read_layouts(const Json& options) {
  const Json& json = member_of(options, "boundary_layouts");
  require(json.is_object(), "option 'boundary_layouts': expected a JSON object");
  LayoutNames layouts;
  for (const auto& [tensor, layout] : json.items()) {
    require(layout.is_string(), "option 'boundary_layouts': expected names of layouts");
    layouts.emplace(tensor, layout.get<std::string>());
  }
  return layouts;
}

void drop_unknown(LayoutNames& layouts, const Graph& graph) {
  std::erase_if(layouts, [&](const auto& entry) {
    const TensorId id = graph.find_tensor(entry.first);
    if (!id.valid()) return true;
    const TensorInfo& tensor = graph.tensor(id);
    return tensor.kind != TensorKind::kGraphInput ||
           find_boundary_layout(entry.second, tensor.shape, tensor.dtype) == nullptr;
  });
}

bool drop_reordered(LayoutNames& layouts, const Plan& plan) {
  const std::size_t before = layouts.size();
  for (std::size_t i = 0; i < plan.buffers.size(); ++i) {
    const BufferInfo& buffer = plan.buffers[i];
    if (buffer.kind != BufferKind::kInput) continue;
    const TensorBinding& input = plan.inputs[buffer.index];
    if (input.layout.empty() || !is_reordered(plan, {static_cast<std::int32_t>(i)})) continue;
    layouts.erase(input.name);
  }
  return layouts.size() != before;
}

Json boundary_answers(const Plan& plan) {
  Json answers = Json::object();
  for (const TensorBinding& input : plan.inputs) {
    if (!input.layout.empty()) answers[input.name] = Json::array({input.layout});
  }
  for (std::size_t i = 0; i < plan.outputs.size(); ++i) {
    if (plan.native_layouts[i].empty()) continue;
    answers[plan.outputs[i].name] = Json::array({plan.native_layouts[i]});
  }
  return answers;
}

}  // namespace npu::onednn::abi
