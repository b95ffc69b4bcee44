// SPDX-License-Identifier: Apache-2.0
// npu-plan -- plan a graph neural network over a big graph on several devices.
#include "gnn/make_plan.hpp"
#include "gnn/plan/plan_report.hpp"
#include "gnn/plan/verify/verify_plan.hpp"
#include "npu/ir/json_writer.hpp"
#include "npu/support/file_io.hpp"
#include "options/plan_options.hpp"
#include "options/validators.hpp"
#include "progress.hpp"
#include "tool.hpp"

int main(int argc, char** argv) {
  npu::cli::Tool tool{"npu-plan",
                      "Plan a graph neural network over a big graph on several devices."};
  npu::cli::PlanOptions options;
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
       "mpirun -n 4 npu-plan graph.csr --model sage.json --profile table.json -k 8 --ranks 4 -o "
       "plan.json",
       "npu-plan graph.mtx --model sage.json --profile table.json --gantt plan.svg -o plan.json"});
  return tool.run(argc, argv, [&] {
    if (!verify.empty()) {
      const npu::gnn::PlanCheck check = npu::gnn::verify_plan(verify, tool.diagnostics());
      tool.stop_on_errors();
      return tool.write_text(npu::write_document(npu::gnn::to_json(check))),
             npu::cli::ExitStatus::kSuccess;
    }
    if (tool.output() != "-") options.plan.output = tool.output();
    options.finish();
    npu::gnn::PlanResult result;
    {
      npu::cli::Progress line(!tool.shows_progress());
      options.plan.progress = std::ref(line);
      result = npu::gnn::make_plan(options.plan, tool.diagnostics());
    }
    if (!result.speaks) return npu::cli::ExitStatus::kSuccess;
    if (tool.wants_report()) tool.report(npu::gnn::format_plan_report(result.plan));
    {
      const npu::PhaseTimes::Scope phase(result.times, "write");
      if (!gantt.empty()) npu::write_file_atomically(gantt, npu::gnn::gantt_svg(result));
      if (!trace.empty()) npu::write_file_atomically(trace, npu::gnn::schedule_trace(result));
      tool.write_text(npu::write_document(npu::gnn::to_json(result.plan)));
    }
    if (tool.wants_report()) tool.report("\n" + npu::format_phase_times(result.times));
    return tool.check_asserts(npu::gnn::plan_metrics(result.plan));
  });
}
