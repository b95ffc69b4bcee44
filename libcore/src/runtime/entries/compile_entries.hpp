// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ir/bind_sizes.hpp"
#include "npu/compile/bundle.hpp"
#include "npu/compile/compile_report.hpp"
#include "npu/ir/graph.hpp"
#include "npu/runtime/compile_model.hpp"
#include "npu/support/error.hpp"

namespace npu {

/// A document that entries of a bundle are made of: a template with choices of its sizes, as
/// checked_buckets returns them, or a graph, which is one entry.
struct DocumentToCompile {
  std::string name = {};  ///< empty: there is only this one
  std::optional<Template> model = {};
  std::vector<SizeBindings> buckets = {};
  Graph graph = {};  ///< without `model`
};

/// A choice of sizes, or a graph, compiled.
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

/// Compiles documents, each template for each of its choices of sizes, as compile_model does one,
/// to the content of one bundle: weights that they have in common are there once. At least one
/// document; several have different names, and their entries are called "NAME" or "NAME:S=64".
/// Faults, warnings and notes of an entry name it. What documents say of a state that they share
/// has to agree (check_shared_states), and so have their targets. The result is meaningful only if
/// there is no error.
CompileEntriesResult compile_entries(std::vector<DocumentToCompile> documents,
                                     const CompileModelOptions& options, Diagnostics& diagnostics);

/// The same for one template.
CompileEntriesResult compile_entries(const Template& model,
                                     const std::vector<SizeBindings>& buckets,
                                     const CompileModelOptions& options, Diagnostics& diagnostics);

/// A table with a line for each entry, and totals.
std::string format_entries_report(const CompileEntriesResult& result);

/// compile_metrics of the total, and entries, weights_copies.
std::map<std::string, double> entries_metrics(const CompileEntriesResult& result);

}  // namespace npu
