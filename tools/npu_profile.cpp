// SPDX-License-Identifier: Apache-2.0
// npu-profile -- measure a model on each device: the blocks of a staged one, the nodes of others;
// or the machine itself, or the links between processes.
#include "gnn/model/staged_model.hpp"
#include "heap.hpp"
#include "io.hpp"
#include "ops/written_views.hpp"
#include "options/profile_options.hpp"
#include "profile_modes.hpp"
#include "tool.hpp"

using npu::cli::ExitStatus;
using npu::cli::Tool;

int main(int argc, char** argv) {
  Tool tool{"npu-profile", "Measure a model on each device, for npu-partition and npu-plan."};
  npu::cli::ProfileOptions options;
  add_profile_options(tool, options);
  tool.input().add_import_options(tool.app());
  return tool.run(argc, argv, [&] {
    if (!options.import.empty()) {
      return convert_profile(tool, options.import, options.bandwidths), ExitStatus::kSuccess;
    }
    if (options.measures_links(tool)) {
      return npu::cli::measure_links(options.links), ExitStatus::kSuccess;
    }
    if (options.measures_backend(tool)) {
      return measure_backend(tool, options.vendor), ExitStatus::kSuccess;
    }
    if (options.measures_machine(tool)) {
      return measure_machine(tool, options.machine), ExitStatus::kSuccess;
    }
    options.finish(tool);
    npu::cli::keep_freed_memory();
    const std::string& model = options.staged.model;
    if (const auto imported = tool.input().imported(model, {})) {
      return measure_ordinary(tool, *imported, options), ExitStatus::kSuccess;
    }
    const std::string file = npu::cli::input_name(model);
    const std::string text = npu::cli::read_input(model);
    if (const auto imported = tool.input().imported("-", text)) {
      measure_ordinary(tool, *imported, options);
    } else if (options.takes_staged() && npu::gnn::is_staged_model(npu::parse_json(text, file))) {
      tool.refuse({"--bind"}, "is not for staged models");
      options.staged.precision = Tool::plan_precision(options.staged.precision);
      measure_staged(tool, options.staged);
    } else {
      const npu::Graph graph = tool.input().read_document(text, file);
      npu::warn_of_written_views(graph, tool.diagnostics());
      measure_ordinary(tool, graph, options);
    }
    return ExitStatus::kSuccess;
  });
}
