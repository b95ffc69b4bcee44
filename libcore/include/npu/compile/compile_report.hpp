// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "npu/compile/compiler.hpp"
#include "npu/compile/fold_constants.hpp"
#include "npu/compile/memory_needs.hpp"
#include "npu/support/json.hpp"

namespace npu {

/// Numbers that a backend reports about one partition; those that it does not report are absent.
struct CompileNumbers {
  std::optional<double> nodes;
  std::optional<double> kernels;
  std::optional<double> reorders;
  std::optional<double> predicted_kernels;  ///< without reorders
  std::optional<double> flops;
  std::optional<double> weight_bytes;
  std::optional<double> arena_bytes;
  std::optional<double> macs;       ///< of a quantized model: multiply-adds of products
  std::optional<double> int8_macs;  ///< those of them that multiply int8 numbers
};
CompileNumbers read_compile_numbers(const Json& report);
/// The same as table cells, in the order of the members but the last two; "-" for a number that is
/// absent.
std::vector<std::string> number_cells(const CompileNumbers& numbers);

/// A fusion group that its backend did not compute as one kernel.
struct GroupSplit {
  std::string pattern;
  std::string node;  ///< with which the next kernel begins
  std::string reason;
};
/// Those that a backend's report lists, one for each kernel that was not predicted.
std::vector<GroupSplit> read_splits(const Json& report);

/// What a partition became.
struct CompiledRow {
  std::string device;
  std::string backend;
  CompileNumbers numbers;
  std::vector<GroupSplit> splits;
  std::string computes_in;  ///< with precision bf16: the dtype that its backend chose; empty: none
  std::uint64_t blob_bytes = 0;
  double compile_ms = 0;
  bool cache_hit = false;
};

/// The share of the multiply-adds of quantized partitions that multiply int8 numbers.
class Int8Share {
 public:
  void add(const CompileNumbers& numbers);
  /// Nothing if no partition stated any.
  std::optional<double> value() const;

 private:
  double macs_ = 0;
  double int8_macs_ = 0;
};

/// What npu-compile reports.
struct CompileReport {
  std::vector<CompiledRow> partitions;
  std::vector<Refusal> refusals;
  bool cache_enabled = false;
  std::int64_t cache_hits = 0;
  std::int64_t cache_misses = 0;
  std::int64_t programs_built = 0;
  std::int64_t programs_found = 0;
  double compile_ms = 0;
  FoldedConstants folded;
  std::string precision;
  std::optional<double> worst_relative_error;  ///< of bf16 against f32
  std::vector<DeviceMemoryNeed> memory;        ///< by device
};

/// The report of a model and the constants that were folded for it; the caller adds cache_enabled,
/// precision, worst_relative_error and memory.
CompileReport compile_report(const CompiledModel& model, const FoldedConstants& folded = {});

/// Tables for people: partitions, refusals, totals.
std::string format_compile_report(const CompileReport& report);

/// Numbers that --assert compares.
std::map<std::string, double> compile_metrics(const CompileReport& report);

}  // namespace npu
