// SPDX-License-Identifier: Apache-2.0
// A sub-IR as a plan, in the precision that takes less time: once, or in float32 and then in
// bfloat16.
#include "lowering/engine/lower_graph.hpp"

#include <optional>

#include "lowering/engine/check_shapes.hpp"
#include "lowering/engine/graph_walk.hpp"
#include "lowering/engine/widened.hpp"

namespace npu::onednn {

namespace {

/// Whether products in bfloat16, which are oneDNN's, take less time than what a plan in float32
/// has: other kernels multiply less than the definition asks for.
bool gains_by_bfloat16(const Plan& plan, double rate) {
  constexpr double kWorthIt = 0.95;  // what is gained has to be worth the rounding
  double floats = 0.0;
  double narrow = 0.0;
  for (const Step& step : plan.steps) {
    if (!step.choice.cycles || !step.choice.primitive_cycles) continue;
    floats += *step.choice.cycles;
    narrow += *step.choice.primitive_cycles / rate;
  }
  return narrow < kWorthIt * floats;
}

}  // namespace

Plan lower_graph(const Graph& graph, std::span<const WeightView> weights, const Machine& machine,
                 const dnnl::engine& engine, const Checkpoint& checkpoint,
                 const LayoutNames& boundaries, const EntryRows& entries) {
  check_shapes(graph);
  const std::optional<Graph> wide = widened(graph);
  const auto lower_on = [&](const Machine& chosen, const Checkpoint& watch) {
    return GraphWalk(wide ? *wide : graph, graph, weights, chosen, engine, entries)
        .run(watch, boundaries);
  };
  if (!machine.prefer_bfloat16) return lower_on(machine, checkpoint);
  // Two passes at most, of which each is a half.
  const auto pass = [&](std::size_t passes_before) {
    Checkpoint watch;
    if (!checkpoint) return watch;
    watch = [&checkpoint, passes_before](std::size_t done, std::size_t total) {
      checkpoint(passes_before * total + done, 2 * total);
    };
    return watch;
  };
  Machine floats = machine;
  floats.prefer_bfloat16 = false;
  floats.weight_type = DType::kBFloat16;
  Plan plan = lower_on(floats, pass(0));
  const bool gains = machine.native_bfloat16 && machine.bfloat16_rate > 0.0 &&
                     gains_by_bfloat16(plan, machine.bfloat16_rate);
  if (!gains) return plan;
  plan = lower_on(machine, pass(1));
  plan.computes_in_bfloat16 = true;
  return plan;
}

}  // namespace npu::onednn
