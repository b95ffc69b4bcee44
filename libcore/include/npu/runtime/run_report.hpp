// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "npu/passes/tag.hpp"
#include "npu/runtime/compare.hpp"
#include "npu/runtime/executor.hpp"
#include "npu/runtime/group_comparison.hpp"
#include "npu/support/json.hpp"
#include "npu/tensor/tensor.hpp"

namespace npu {

/// An output, as the report names it.
struct OutputSummary {
  std::string name;
  Shape shape;
  DType dtype = DType::kFloat32;
};

/// A result that was asked for and is no output of the model: what it came from.
struct TapSummary {
  enum class From : std::uint8_t {
    kProgram,   ///< the program, as it is compiled anyway
    kBoundary,  ///< it crosses from one partition to another
    kOutput,    ///< the model was compiled with it as an output
  };
  std::string name;
  From from = From::kProgram;
};

/// The share of a device of the target in the last run.
struct DevicePlacement {
  std::string device;
  std::string backend;
  std::int64_t nodes = 0;
  std::int64_t partitions = 0;
  double ms = 0;  ///< its partitions, without transfers
};

/// A step of the last run.
struct RunStep {
  StepRecord::Kind kind = StepRecord::Kind::kPartition;
  std::int32_t id = 0;              ///< of a partition or transfer
  std::string device;               ///< where it ran, or where the tensors arrived
  std::int64_t nodes = 0;           ///< of a partition
  std::int32_t from = 0;            ///< transfer: partition that it copies from
  std::int32_t to = 0;              ///< transfer: partition that needs it
  std::int64_t tensors = 0;         ///< that arrived
  std::int64_t listed_tensors = 0;  ///< transfer: as planned; some may be there already
  std::int64_t bytes = 0;           ///< of them
  std::int64_t copied_bytes = 0;    ///< of them; the rest was used in place
  std::string path = {};            ///< see path_text
  double ms = 0;
  double predicted_ms = 0;  ///< of a partition or transfer
};

/// The distribution of the runs after the first one.
struct BenchSummary {
  std::int64_t runs = 0;
  double median_ms = 0;
  double min_ms = 0;
  double p90_ms = 0;
  double p99_ms = 0;
  double runs_per_second = 0;  ///< of all of them together
  std::int64_t peak_rss_bytes = 0;
};

/// An output compared with its expected value.
struct OutputComparison {
  std::string name;
  Comparison comparison;
  Tolerance tolerance;
};

struct ComparisonReport {
  std::vector<OutputComparison> outputs;
  std::string device;  ///< that ran the reference; empty if it came from a file
  double ms = 0;       ///< the reference's run
  bool ok() const;
};

/// Where the programs came from: compiled in this process, or a bundle.
struct CompileSource {
  double ms = 0;
  bool cache_enabled = false;
  std::int64_t cache_hits = 0;
  std::int64_t cache_misses = 0;
};
struct BundleSource {
  std::uint64_t bytes = 0;
  double open_ms = 0;
  std::string cpu_family = {};  ///< of the CPU that it was compiled on; empty: not stated
};

/// The entry of a bundle with a template that ran.
struct EntrySummary {
  std::string name;
  std::map<std::string, std::int64_t, std::less<>> valid;  ///< sizes of the inputs, by symbol
  double padded_share = 0;                                 ///< of the elements of its inputs
};

/// Runs that went on at once.
struct InFlightSummary {
  std::int32_t runs = 1;
  bool is_same = true;  ///< each gave the bits of a run alone
};

/// What npu-run reports; the keys of its JSON form are listed in npu-run(1).
struct RunReport {
  std::string model;
  std::string target;
  std::string precision;
  std::optional<CompileSource> compile;
  std::optional<BundleSource> bundle;
  std::optional<EntrySummary> entry;
  std::vector<OutputSummary> outputs;
  std::vector<TapSummary> taps;
  std::vector<DevicePlacement> placement;  ///< in the target's order
  TagReport coverage;
  std::vector<RunStep> steps;
  bool overlap = false;
  std::int64_t weight_tensors = 0;
  std::int64_t weight_bytes = 0;
  std::vector<DeviceMemoryNeed> memory;  ///< by device
  double predicted_ms = 0;
  double measured_ms = 0;  ///< the last run
  double first_ms = 0;
  double load_ms = 0;
  std::optional<double> int8_macs;  ///< of a quantized model: the share of multiply-adds in int8
  std::map<std::string, std::string> backends;  ///< version by name
  std::optional<BenchSummary> bench;
  std::optional<InFlightSummary> in_flight;    ///< with more than one
  std::vector<StateUse> states;                ///< of the model
  std::int64_t position = 0;                   ///< steps that led to their values
  bool is_cut_short = false;                   ///< some timed runs were not made by the deadline
  bool is_late = false;                        ///< the last run has ended after it
  std::int64_t recovered = 0;                  ///< times that a lost device was opened again
  std::optional<ComparisonReport> expect;      ///< against a file
  std::optional<double> worst_relative_error;  ///< of bf16 against f32
  std::optional<ComparisonReport> verify;      ///< against the whole graph on one device
  std::optional<GroupReport> groups;           ///< the same at the borders of fusion groups
};

/// The report as npu-run writes it; milliseconds are rounded to 0.1 us.
Json run_report_json(const RunReport& report);

/// Numbers that --assert compares: those at the top level of the JSON form and in `bench`.
std::map<std::string, double> run_metrics(const RunReport& report);

/// Tables for people.
std::string format_run_report(const RunReport& report);

/// "output 'y': 3 of 10 elements are out of tolerance; ...", for an output that differs.
std::string mismatch_text(const OutputComparison& output);

}  // namespace npu
