// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gnn/model/stage_table.hpp"
#include "gnn/run/run_options.hpp"
#include "npu/support/error.hpp"
#include "npu/support/progress.hpp"

namespace npu::gnn {

/// What npu-profile can be asked for.
struct ProfileStagesOptions {
  std::string model;
  std::string weights;  ///< empty: the file that the model names
  std::string target = "host";
  std::string precision;               ///< "bf16": features of that; else float32
  std::vector<DeviceBackend> devices;  ///< empty: those of the target
  std::vector<std::int64_t> nodes{1000, 5000, 20000, 100000};
  std::vector<double> degrees{2, 10, 40};
  /// Instead of both: the graph that will be planned, with the
  /// numbers of parts that will be tried.
  std::string graph;
  bool undirected = false;  ///< as npu-plan reads it
  std::vector<std::int32_t> part_counts{16};
  bool coarse = false;        ///< few points of the graph
  std::int32_t revisits = 4;  ///< of points that other work disturbed
  std::int32_t runs = 7;
  std::int32_t warm_up = 1;
  std::int32_t threads = 0;
  std::int64_t max_bytes = std::int64_t{2} << 30;  ///< points with larger tensors are skipped
  std::string resume;                              ///< file with a table to continue, if it exists
};

/// Measures every block of every layer on every device that runs it. `progress` is called for each
/// point; if it returns false, the table so far is the result.
StageTable profile_stages(const ProfileStagesOptions& options, const ProgressCallback& progress,
                          Diagnostics& diagnostics);

/// Tables for people.
std::string format_profile_report(const StageTable& table);

}  // namespace npu::gnn
