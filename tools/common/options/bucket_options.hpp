// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ir/size_expression.hpp"
#include "npu/runtime/compile_model.hpp"
#include "options/compile_precision.hpp"
#include "options/tuning_file.hpp"
#include "tool.hpp"

namespace npu::cli {

/// The choices of sizes that npu-compile compiles a template for.
struct BucketOptions {
  std::vector<std::string> products;  ///< --buckets: S=32,64, or S=auto:5
  std::vector<std::string> single;    ///< --bucket: B=1,S=512
  std::string lengths;                ///< --lengths: of requests

  bool wanted() const noexcept { return !products.empty() || !single.empty(); }
  /// Whether they are to be found.
  bool is_auto() const noexcept;
  /// All that are given. Throws Error kUsage for what is none, or for a symbol named twice.
  std::vector<SizeBindings> list() const;
};

/// Adds the sizes of a --bucket, "B=1,S=128". Throws Error kUsage.
void add_sizes(const std::string& text, SizeBindings& sizes);

void add_bucket_options(Tool& tool, BucketOptions& options);

/// Compiles the input as a template for every choice and writes the bundle; with `precision`
/// quantized, once for all of them.
ExitStatus compile_buckets(Tool& tool, const BucketOptions& buckets,
                           const CompileModelOptions& options, const CompilePrecision* precision,
                           TuningFile& tuning, std::optional<double> deadline);

}  // namespace npu::cli
