// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "npu/runtime/compile_model.hpp"
#include "options/bucket_options.hpp"
#include "options/compile_precision.hpp"
#include "options/entry_options.hpp"
#include "options/tuning_file.hpp"
#include "tool.hpp"

namespace npu::cli {

/// The options of npu-compile.
struct CompileOptions {
  CompileModelOptions model;
  CompilePrecision precision;
  std::vector<std::string> plan_devices;  ///< NAME=BACKEND, for plans
  TuningFile tuning;
  BucketOptions buckets;
  EntryOptions entries;
  std::optional<double> deadline;
  std::string isa;
  bool info = false;
};

/// Adds them to a tool, with its input and its output.
void add_compile_options(Tool& tool, CompileOptions& options);

}  // namespace npu::cli
