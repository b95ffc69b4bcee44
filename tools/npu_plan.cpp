// SPDX-License-Identifier: Apache-2.0
// npu-plan -- plan a graph neural network over a big graph on several devices.
#include "npu/ir/json_writer.hpp"
#include "npu/plan/plan_gnn.hpp"
#include "npu/support/file_io.hpp"
#include "plan_options.hpp"
#include "progress.hpp"
#include "tool.hpp"

namespace {

/// Numbers at the top level of the plan, and the loads.
npu::cli::Metrics as_metrics(const npu::Json& plan) {
  npu::cli::Metrics metrics;
  for (const auto& [key, value] : plan.items()) {
    if (value.is_number()) metrics[key] = value.get<double>();
  }
  for (const auto& [device, load] : plan.at("loads_ms").items()) {
    metrics["load_ms_" + device] = load.get<double>();
  }
  metrics["compiles"] = plan.at("compiles").at("count").get<double>();
  return metrics;
}

}  // namespace

int main(int argc, char** argv) {
  npu::cli::Tool tool{"npu-plan",
                      "Plan a graph neural network over a big graph on several devices."};
  npu::PlanGnnOptions options;
  std::string gantt;
  std::string trace;
  std::string verify;
  npu::cli::add_plan_options(tool, options);
  CLI::App& app = tool.app();
  app.add_option("--gantt", gantt, "draw the simulated schedule")
      ->type_name("FILE.svg")
      ->check(npu::cli::file_beside_stdout());
  app.add_option("--trace", trace, "write the simulated schedule as Chrome trace JSON")
      ->type_name("FILE")
      ->check(npu::cli::file_beside_stdout());
  app.add_option("--verify", verify, "recompute a plan from its inputs and check it")
      ->type_name("PLAN");
  tool.add_report("the table over k, loads, clusters, bounds and phases");
  tool.add_assert("makespan_ms, gap, load_gap, speedup, k, load_ms_<device>, ...; see npu-plan(1)");
  tool.add_examples(
      {"npu-plan graph.mtx --model sage.json --profile table.json -k 8..16 --report -o plan.json",
       "npu-plan --subgraphs subgraphs.json --profile table.json --no-transfers --report",
       "npu-plan --verify plan.json",
       "npu-plan graph.mtx --model sage.json --profile table.json --gantt plan.svg -o plan.json"});
  return tool.run(argc, argv, [&] {
    if (!verify.empty()) {
      const npu::Json result = npu::verify_gnn_plan(verify, tool.diagnostics());
      tool.stop_on_errors();
      return tool.write_text(npu::write_document(result)), npu::cli::ExitStatus::kSuccess;
    }
    if (options.profile.empty()) {
      throw npu::Error(npu::ErrorCode::kUsage, "expected --profile FILE");
    }
    if (tool.output() != "-") options.output = tool.output();
    npu::GnnPlan plan;
    {
      npu::cli::Progress line(tool.verbosity() < 0);
      options.progress = [&line](double done, const std::string& what) { return line(done, what); };
      plan = npu::make_gnn_plan(options, tool.diagnostics());
    }
    if (tool.wants_report()) tool.report(npu::format_plan_report(plan.document));
    {
      const npu::PhaseTimes::Scope phase(plan.times, "write");
      if (!gantt.empty()) npu::write_file_atomically(gantt, npu::gantt_svg(plan));
      if (!trace.empty()) npu::write_file_atomically(trace, npu::schedule_trace(plan));
      tool.write_text(npu::write_document(plan.document));
    }
    if (tool.wants_report()) tool.report("\n" + npu::format_phase_times(plan.times));
    return tool.check_asserts(as_metrics(plan.document));
  });
}
