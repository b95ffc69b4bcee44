// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "ir/bind_sizes.hpp"
#include "npu/compile/bundle.hpp"
#include "npu/compile/compile_report.hpp"
#include "npu/runtime/compile_model.hpp"
#include "npu/support/error.hpp"

namespace npu {

/// A choice of sizes, compiled.
struct CompiledEntry {
  std::string name;
  double predicted_us = 0;
  CompileReport report;
};

struct CompileEntriesResult {
  BundleContent content;
  std::vector<CompiledEntry> entries;  ///< in the order of the bundle
  CompileReport total;                 ///< `memory` is that of the entry that needs most
  double weights_copies = 1;           ///< that the bundle has of the weights in blobs
};

/// Compiles a template for each of some choices of its sizes, as compile_model does a document, to
/// the content of one bundle. `buckets` as checked_buckets returns them. Faults, warnings and notes
/// of a choice name it. The result is meaningful only if there is no error.
CompileEntriesResult compile_entries(const Template& model,
                                     const std::vector<SizeBindings>& buckets,
                                     const CompileModelOptions& options, Diagnostics& diagnostics);

/// A table with a line for each entry, and totals.
std::string format_entries_report(const CompileEntriesResult& result);

/// compile_metrics of the total, and entries, weights_copies.
std::map<std::string, double> entries_metrics(const CompileEntriesResult& result);

}  // namespace npu
