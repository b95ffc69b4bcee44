// SPDX-License-Identifier: Apache-2.0
// npu-profile -- measure the blocks of a staged model on each device.
#include "memory.hpp"
#include "npu/ir/json_writer.hpp"
#include "npu/profile/profile_gnn.hpp"
#include "npu/support/file_io.hpp"
#include "profile_options.hpp"
#include "progress.hpp"
#include "tool.hpp"

int main(int argc, char** argv) {
  npu::cli::Tool tool{"npu-profile", "Measure the blocks of a staged model on each device."};
  npu::ProfileGnnOptions options;
  std::string import;
  std::string bandwidths;
  bool quick = false;
  CLI::App& app = tool.app();
  app.add_option("MODEL", options.model, "staged model");
  tool.add_output();
  npu::cli::add_profile_options(tool, options);
  app.add_flag("--quick", quick, "a coarse grid and 3 runs: minutes become seconds");
  app.add_option("--import", import, "convert a table of published form in place of measuring")
      ->type_name("FILE");
  app.add_option("--bandwidths", bandwidths, "link rates of published form, with --import")
      ->type_name("FILE");
  tool.add_report("times, links and interpolation errors");
  tool.add_examples({"npu-profile sage.json -o table.json",
                     "npu-profile sage.json --quick --devices cpu,npu --report -o table.json",
                     "npu-profile --import lookup_table.json -o table.json"});
  return tool.run(argc, argv, [&] {
    npu::ProfileTable table;
    if (!import.empty()) {
      table = npu::read_profile(import);
      if (!bandwidths.empty()) {
        table.add_bandwidths(npu::parse_json(npu::read_file(bandwidths), bandwidths), bandwidths);
      }
    } else {
      if (options.model.empty()) throw npu::Error(npu::ErrorCode::kUsage, "expected a MODEL");
      if (quick) {
        options.runs = 3;
        options.nodes = {1000, 10000};
        options.degrees = {5, 20};
      }
      if (tool.output() != "-") options.resume = tool.output();
      npu::cli::keep_freed_memory();
      npu::cli::Progress line(tool.verbosity() < 0);
      bool stopped = false;
      const auto progress = [&](const npu::ProfileProgress& state,
                                const npu::ProfileTable& so_far) {
        const double done = state.total > 0 ? static_cast<double>(state.done) / state.total : 1.0;
        const std::string what = std::to_string(state.done) + " of " + std::to_string(state.total) +
                                 " points, " + state.what;
        stopped = !line.show(done, state.remaining_s, what);
        if (stopped && tool.output() != "-") {
          npu::write_file_atomically(tool.output(), npu::write_document(so_far.to_json()));
        }
        return !stopped;
      };
      table = npu::profile_gnn(options, progress, tool.diagnostics());
      if (stopped) {
        throw npu::Error(npu::ErrorCode::kIo, tool.output() == "-"
                                                  ? "interrupted"
                                                  : "interrupted; the same command goes on");
      }
    }
    tool.report(npu::format_profile_report(table));
    tool.write_text(npu::write_document(table.to_json()));
    return npu::cli::ExitStatus::kSuccess;
  });
}
