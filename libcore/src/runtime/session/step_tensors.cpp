// SPDX-License-Identifier: Apache-2.0
// What steps read and give on the host: parts of stacked tensors in their place, and outputs that
// are stacked. States are handled here only for a reference, which has them as tensors of its own.
// O(bytes of the outputs) besides the runs.
#include "runtime/session/step_tensors.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "ir/states_section.hpp"

namespace npu {

std::set<TensorId> state_inputs(const Graph& graph) {
  Diagnostics known;  // the reader has told them
  std::set<TensorId> inputs;
  for (const State& state : read_states(graph, known)) {
    if (!state.input.empty()) inputs.insert(graph.find_tensor(state.input));
  }
  return inputs;
}

std::vector<std::size_t> plain_outputs(const Graph& graph) {
  Diagnostics known;
  std::set<TensorId> states;
  for (const State& state : read_states(graph, known)) {
    if (!state.output.empty()) states.insert(graph.find_tensor(state.output));
  }
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < graph.graph_outputs().size(); ++i) {
    if (!states.contains(graph.graph_outputs()[i])) places.push_back(i);
  }
  return places;
}

std::vector<Tensor> inputs_of_step(const Graph& graph, const std::vector<Tensor>& inputs,
                                   std::int64_t step) {
  std::vector<Tensor> parts;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const TensorInfo& info = graph.tensor(graph.graph_inputs()[i]);
    const Tensor& all = inputs[i];
    if (all.data() == nullptr || all.shape() == info.shape) {
      parts.push_back(all);
      continue;
    }
    auto owner = std::make_shared<const Tensor>(all);
    const std::byte* data =
        all.data() + static_cast<std::size_t>(step) * static_cast<std::size_t>(info.bytes());
    parts.emplace_back(info.dtype, info.shape,
                       std::shared_ptr<const std::byte>(std::move(owner), data));
  }
  return parts;
}

void OutputStack::add(const std::vector<Tensor>& outputs) {
  if (done_ == 0) {
    for (const Tensor& output : outputs) {
      Shape shape = output.shape();
      shape.insert(shape.begin(), steps_);
      stacked_.emplace_back(output.dtype(), std::move(shape));
    }
  }
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const std::size_t bytes = outputs[i].bytes();
    if (bytes == 0) continue;
    std::memcpy(stacked_[i].mutable_data() + static_cast<std::size_t>(done_) * bytes,
                outputs[i].data(), bytes);
  }
  ++done_;
}

std::vector<Tensor> without_states(const Graph& graph, std::vector<Tensor> outputs) {
  std::vector<Tensor> plain;
  for (const std::size_t i : plain_outputs(graph)) plain.push_back(std::move(outputs[i]));
  for (std::size_t i = graph.graph_outputs().size(); i < outputs.size(); ++i) {
    plain.push_back(std::move(outputs[i]));
  }
  return plain;
}

std::vector<Tensor> run_steps_on_host(Executor& executor, const Graph& graph,
                                      const std::vector<Tensor>& inputs,
                                      const std::vector<NamedTensor>& begin,
                                      std::optional<std::int64_t> steps, RunRecord& record) {
  Diagnostics known;
  const std::vector<State> states = read_states(graph, known);
  const auto place = [](const std::vector<TensorId>& list, TensorId id) {
    return static_cast<std::size_t>(std::find(list.begin(), list.end(), id) - list.begin());
  };
  std::vector<Tensor> values;
  for (const State& state : states) {
    const std::string& name = state.input.empty() ? state.output : state.input;
    const TensorInfo& info = graph.tensor(graph.find_tensor(name));
    const auto given = std::ranges::find_if(
        begin, [&](const NamedTensor& value) { return value.name == state.name; });
    values.push_back(given != begin.end() ? given->tensor : Tensor(info.dtype, info.shape));
  }
  OutputStack stack(steps.value_or(1));
  std::vector<Tensor> outputs;
  for (std::int64_t step = 0; step < steps.value_or(1); ++step) {
    std::vector<Tensor> all = inputs_of_step(graph, inputs, step);
    for (std::size_t i = 0; i < states.size(); ++i) {
      if (states[i].input.empty()) continue;
      all[place(graph.graph_inputs(), graph.find_tensor(states[i].input))] = values[i];
    }
    outputs = executor.run(all, &record);
    for (std::size_t i = 0; i < states.size(); ++i) {
      if (states[i].output.empty()) continue;
      values[i] = outputs[place(graph.graph_outputs(), graph.find_tensor(states[i].output))];
    }
    outputs = without_states(graph, std::move(outputs));
    if (steps) stack.add(outputs);
  }
  return steps ? stack.take() : outputs;
}

}  // namespace npu
