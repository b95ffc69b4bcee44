// SPDX-License-Identifier: Apache-2.0
// What npu-profile measures: each mode measures, reports and writes a table or a target. On Ctrl-C
// a staged model keeps what it has; the others write nothing.
#include "profile_modes.hpp"

#include "gnn/exchange/rank_links.hpp"
#include "npu/ir/json_writer.hpp"
#include "npu/support/file_io.hpp"
#include "progress.hpp"

namespace npu::cli {
namespace {

/// For what does not go on where it was interrupted.
ProgressCallback all_or_nothing(Progress& line) {
  return [&line](double done, const std::string& what) {
    if (line(done, what)) return true;
    throw Error(ErrorCode::kIo, "interrupted; nothing was written");
  };
}

}  // namespace

void measure_staged(Tool& tool, gnn::ProfileStagesOptions& options) {
  if (tool.output() != "-") options.resume = tool.output();
  Progress line(!tool.shows_progress());
  bool stopped = false;
  const auto progress = [&](double done, const std::string& what) {
    stopped = !line(done, what);
    return !stopped;
  };
  const gnn::StageTable table = gnn::profile_stages(options, progress, tool.diagnostics());
  if (stopped) {
    if (tool.output() == "-") throw Error(ErrorCode::kIo, "interrupted");
    write_file_atomically(tool.output(), write_document(table.to_json()));
    throw Error(ErrorCode::kIo, "interrupted; the same command goes on");
  }
  tool.report(gnn::format_profile_report(table));
  tool.write_text(write_document(table.to_json()));
}

void measure_ordinary(Tool& tool, const Graph& graph, const ProfileOptions& options) {
  Progress line(!tool.shows_progress());
  const ProgressCallback progress = all_or_nothing(line);
  if (options.calibrates()) {
    const TensorRanges ranges =
        calibrate_model(graph, options.calibrate, progress, tool.diagnostics());
    tool.stop_on_errors();
    if (tool.wants_report()) tool.report(format_tensor_ranges(ranges));
    return tool.write_text(write_document(ranges.to_json()));
  }
  const NodeTable table = profile_model(graph, options.ordinary, progress, tool.diagnostics());
  tool.stop_on_errors();
  tool.report(format_node_table(graph, table));
  tool.write_text(write_document(table.to_json()));
}

void measure_machine(Tool& tool, const ProfileMachineOptions& options) {
  Progress line(!tool.shows_progress());
  const ProgressCallback progress = all_or_nothing(line);
  const MachineProfile profile = profile_machine(options, progress, tool.diagnostics());
  tool.report(format_machine_profile(profile));
  tool.write_text(write_document(profile.target));
}

void measure_backend(Tool& tool, const ProfileBackendOptions& options) {
  Progress line(!tool.shows_progress());
  const ProgressCallback progress = all_or_nothing(line);
  const BackendProfile profile = profile_backend(options, progress, tool.diagnostics());
  if (tool.wants_report()) tool.report(format_backend_profile(profile));
  tool.write_text(write_document(profile.target));
}

void measure_links(const std::string& file) {
  const std::optional<gnn::RankLinks> links = gnn::measure_rank_links();
  if (links) write_file_atomically(file, write_document(gnn::to_json(*links)));
}

void convert_profile(Tool& tool, const std::string& import, const std::string& bandwidths) {
  gnn::StageTable table = gnn::read_profile(import);
  if (!bandwidths.empty()) {
    table.add_bandwidths(parse_json(read_file(bandwidths), bandwidths), bandwidths);
  }
  tool.report(gnn::format_profile_report(table));
  tool.write_text(write_document(table.to_json()));
}

}  // namespace npu::cli
