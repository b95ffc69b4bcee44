// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "gnn/run/run_options.hpp"
#include "npu/support/error.hpp"
#include "npu/support/progress.hpp"

namespace npu::gnn {

/// Where the units of a plan go.
struct BlockFolder {
  std::string path;      ///< made; nothing or an empty folder may have the name
  std::string producer;  ///< the program and its version
};

/// What was compiled for one unit.
struct CompiledBlockRow {
  std::string unit;
  std::string backend;
  std::int64_t subgraphs = 0;  ///< that use it
  std::int64_t programs = 0;
  std::int64_t blob_bytes = 0;
  double ms = 0;  ///< cache look-up included
};

struct CompileBlocksReport {
  std::vector<CompiledBlockRow> units;
  std::int32_t compiled = 0;  ///< static devices, and others with memory of their own
  std::int32_t cache_hits = 0;
  PhaseTimes times;
};

/// Compiles every block of a plan, for all of its ranks, and writes a folder that has for each
/// device, block and size a document and a bundle, and an index. The folder appears as a whole or
/// not at all. Of `options`, plan, precision, weights, target, devices, threads, cache and progress
/// count. The same input gives the same bytes, as far as backends do. Throws Error as run_plan does
/// and kIo.
CompileBlocksReport compile_blocks(const RunPlanOptions& options, const BlockFolder& folder,
                                   Diagnostics& diagnostics);

/// A table for people.
std::string format_blocks_report(const CompileBlocksReport& report);
/// units, programs, blob_bytes, compile_ms, static_compiles, cache_hits.
std::map<std::string, double> blocks_metrics(const CompileBlocksReport& report);

/// Whether a file seems to be a plan of npu-plan, by its first bytes.
bool is_plan_file(const std::string& path);

}  // namespace npu::gnn
