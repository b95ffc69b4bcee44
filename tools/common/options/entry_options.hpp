// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "npu/runtime/compile_model.hpp"
#include "options/bucket_options.hpp"
#include "options/compile_precision.hpp"
#include "options/tuning_file.hpp"
#include "tool.hpp"

namespace npu::cli {

/// The documents that npu-compile puts into one bundle.
struct EntryOptions {
  std::vector<std::string> texts;  ///< --entry: NAME=FILE

  bool wanted() const noexcept { return !texts.empty(); }
};

void add_entry_options(Tool& tool, EntryOptions& options);

/// Compiles the documents of --entry, each for those of the sizes of --buckets that it has, and
/// writes the bundle; with `precision` quantized.
ExitStatus compile_documents(Tool& tool, const EntryOptions& entries, const BucketOptions& buckets,
                             const CompileModelOptions& options, const CompilePrecision* precision,
                             TuningFile& tuning, std::optional<double> deadline);

}  // namespace npu::cli
