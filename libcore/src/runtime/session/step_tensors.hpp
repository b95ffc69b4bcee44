// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "npu/device/blob.hpp"
#include "npu/ir/graph.hpp"
#include "npu/runtime/executor.hpp"
#include "npu/tensor/tensor.hpp"

namespace npu {

/// The inputs of a graph that are states; empty if it has none.
std::set<TensorId> state_inputs(const Graph& graph);
/// The places among the graph's outputs of those that are no states.
std::vector<std::size_t> plain_outputs(const Graph& graph);

/// The inputs of one step, by graph input: those that have one more dimension, in front, have a
/// part for each step, the others are the same for all. They share the memory. States stay empty.
std::vector<Tensor> inputs_of_step(const Graph& graph, const std::vector<Tensor>& inputs,
                                   std::int64_t step);

/// Collects the outputs of steps behind each other, with one more dimension in front.
class OutputStack {
 public:
  explicit OutputStack(std::int64_t steps) : steps_(steps) {}
  /// Those of the next step.
  void add(const std::vector<Tensor>& outputs);
  std::vector<Tensor> take() { return std::move(stacked_); }

 private:
  std::int64_t steps_;
  std::int64_t done_ = 0;
  std::vector<Tensor> stacked_;
};

/// Makes steps of an executor without states, to which they are inputs and outputs: from the values
/// `begin`, by name, or zero. Returns all its outputs but states, stacked if `steps` is given, else
/// of one step.
std::vector<Tensor> run_steps_on_host(Executor& executor, const Graph& graph,
                                      const std::vector<Tensor>& inputs,
                                      const std::vector<NamedTensor>& begin,
                                      std::optional<std::int64_t> steps, RunRecord& record);

/// Leaves out those of a graph's outputs that are states; what stands behind them stays.
std::vector<Tensor> without_states(const Graph& graph, std::vector<Tensor> outputs);

}  // namespace npu
