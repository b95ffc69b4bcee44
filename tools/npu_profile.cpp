// SPDX-License-Identifier: Apache-2.0
// npu-profile -- measure a model on each device: the blocks of a staged one, the nodes of others;
// or the machine itself, or the links between processes.
#include "gnn/exchange/rank_links.hpp"
#include "gnn/model/staged_model.hpp"
#include "heap.hpp"
#include "io.hpp"
#include "npu/ir/json_reader.hpp"
#include "npu/ir/json_writer.hpp"
#include "npu/support/file_io.hpp"
#include "ops/written_views.hpp"
#include "profile/calibrate_model.hpp"
#include "profile/profile_backend.hpp"
#include "profile/profile_machine.hpp"
#include "profile_options.hpp"
#include "progress.hpp"
#include "tool.hpp"

namespace {

using npu::cli::Tool;

/// For what does not go on where it was interrupted.
npu::ProgressCallback all_or_nothing(npu::cli::Progress& line) {
  return [&line](double done, const std::string& what) {
    if (line(done, what)) return true;
    throw npu::Error(npu::ErrorCode::kIo, "interrupted; nothing was written");
  };
}

void profile_staged(Tool& tool, npu::gnn::ProfileStagesOptions& options) {
  if (tool.output() != "-") options.resume = tool.output();
  npu::cli::Progress line(!tool.shows_progress());
  bool stopped = false;
  const auto progress = [&](double done, const std::string& what) {
    stopped = !line(done, what);
    return !stopped;
  };
  const npu::gnn::StageTable table =
      npu::gnn::profile_stages(options, progress, tool.diagnostics());
  if (stopped) {
    if (tool.output() == "-") throw npu::Error(npu::ErrorCode::kIo, "interrupted");
    npu::write_file_atomically(tool.output(), npu::write_document(table.to_json()));
    throw npu::Error(npu::ErrorCode::kIo, "interrupted; the same command goes on");
  }
  tool.report(npu::gnn::format_profile_report(table));
  tool.write_text(npu::write_document(table.to_json()));
}

void profile_ordinary(Tool& tool, const npu::Graph& graph,
                      const npu::cli::ProfileOptions& options) {
  npu::cli::Progress line(!tool.shows_progress());
  const npu::ProgressCallback progress = all_or_nothing(line);
  if (options.calibrates()) {
    const npu::TensorRanges ranges =
        npu::calibrate_model(graph, options.calibrate, progress, tool.diagnostics());
    tool.stop_on_errors();
    if (tool.wants_report()) tool.report(npu::format_tensor_ranges(ranges));
    return tool.write_text(npu::write_document(ranges.to_json()));
  }
  const npu::NodeTable table =
      npu::profile_model(graph, options.ordinary, progress, tool.diagnostics());
  tool.stop_on_errors();
  tool.report(npu::format_node_table(graph, table));
  tool.write_text(npu::write_document(table.to_json()));
}

void profile_machine(Tool& tool, const npu::ProfileMachineOptions& options) {
  npu::cli::Progress line(!tool.shows_progress());
  const npu::ProgressCallback progress = all_or_nothing(line);
  const npu::MachineProfile profile = npu::profile_machine(options, progress, tool.diagnostics());
  tool.report(npu::format_machine_profile(profile));
  tool.write_text(npu::write_document(profile.target));
}

void profile_backend(Tool& tool, const npu::ProfileBackendOptions& options) {
  npu::cli::Progress line(!tool.shows_progress());
  const npu::ProgressCallback progress = all_or_nothing(line);
  const npu::BackendProfile profile = npu::profile_backend(options, progress, tool.diagnostics());
  if (tool.wants_report()) tool.report(npu::format_backend_profile(profile));
  tool.write_text(npu::write_document(profile.target));
}

// In one of several processes, of which the first one writes.
void profile_links(const std::string& file) {
  const std::optional<npu::gnn::RankLinks> links = npu::gnn::measure_rank_links();
  if (links) npu::write_file_atomically(file, npu::write_document(npu::gnn::to_json(*links)));
}

void convert(Tool& tool, const std::string& import, const std::string& bandwidths) {
  npu::gnn::StageTable table = npu::gnn::read_profile(import);
  if (!bandwidths.empty()) {
    table.add_bandwidths(npu::parse_json(npu::read_file(bandwidths), bandwidths), bandwidths);
  }
  tool.report(npu::gnn::format_profile_report(table));
  tool.write_text(npu::write_document(table.to_json()));
}

}  // namespace

int main(int argc, char** argv) {
  Tool tool{"npu-profile", "Measure a model on each device, for npu-partition and npu-plan."};
  npu::cli::ProfileOptions options;
  npu::cli::add_profile_options(tool, options);
  tool.add_import_options();
  return tool.run(argc, argv, [&] {
    if (!options.import.empty()) {
      return convert(tool, options.import, options.bandwidths), npu::cli::ExitStatus::kSuccess;
    }
    if (options.measures_links(tool)) {
      return profile_links(options.links), npu::cli::ExitStatus::kSuccess;
    }
    if (options.measures_backend(tool)) {
      return profile_backend(tool, options.vendor), npu::cli::ExitStatus::kSuccess;
    }
    if (options.measures_machine(tool)) {
      return profile_machine(tool, options.machine), npu::cli::ExitStatus::kSuccess;
    }
    options.finish(tool);
    npu::cli::keep_freed_memory();
    const std::string& model = options.staged.model;
    if (const auto imported = tool.imported(model, {})) {
      return profile_ordinary(tool, *imported, options), npu::cli::ExitStatus::kSuccess;
    }
    const std::string file = npu::cli::input_name(model);
    const std::string text = npu::cli::read_input(model);
    if (const auto imported = tool.imported("-", text)) {
      profile_ordinary(tool, *imported, options);
    } else if (options.takes_staged() && npu::gnn::is_staged_model(npu::parse_json(text, file))) {
      options.staged.precision = npu::cli::Tool::plan_precision(options.staged.precision);
      profile_staged(tool, options.staged);
    } else {
      const npu::Graph graph = npu::read_graph(text, file, tool.diagnostics());
      tool.stop_on_errors();
      npu::warn_of_written_views(graph, tool.diagnostics());
      profile_ordinary(tool, graph, options);
    }
    return npu::cli::ExitStatus::kSuccess;
  });
}
