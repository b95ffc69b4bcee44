// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "npu/compile/bundle.hpp"
#include "npu/compile/cache.hpp"
#include "npu/ir/graph.hpp"
#include "npu/runtime/executor.hpp"
#include "npu/runtime/group_comparison.hpp"
#include "npu/runtime/run_report.hpp"
#include "npu/runtime/weight_store.hpp"
#include "npu/support/error.hpp"
#include "npu/target/select_devices.hpp"

namespace npu {

/// A file with inputs: safetensors with any number of them, or .npy with one.
struct InputFile {
  std::optional<std::string> input;  ///< .npy, .pb: the name; optional if there is only one
  std::string path;
};

/// The options of npu-run(1).
struct RunModelOptions {
  DeviceChoice where;    ///< for documents without devices and partitions
  WeightSource weights;  ///< an empty file means `npu.weights_file`
  std::vector<InputFile> inputs;
  /// Of a bundle with a template: sizes that the inputs do not say.
  std::map<std::string, std::int64_t, std::less<>> sizes;
  std::optional<std::uint64_t> random_inputs;
  /// Of a model with states: so many steps, one after the other. An input may have one more
  /// dimension, in front, with a part for each step, and outputs do. Nothing: one step, without it.
  std::optional<std::int64_t> steps;
  std::string state_in;   ///< safetensors with the states before the first step; empty: zero
  std::string state_out;  ///< file to write with the states after the last one
  std::string outputs;    ///< file to write: safetensors, or .npy for a single output
  std::vector<InputFile> expect;  ///< safetensors with the expected outputs
  std::string verify_device;  ///< device of the target to run the whole graph on, for comparison
  GroupComparisonOptions groups;      ///< with verify_device: where the results begin to differ
  std::vector<std::string> taps;      ///< globs of intermediate results that become outputs
  std::optional<double> rtol;         ///< default: 1e-3; 2e-2 for outputs of 16-bit floats
  std::optional<double> atol;         ///< default: 1e-4; 2e-2 for outputs of 16-bit floats
  std::int64_t bench = 0;             ///< timed runs after the first one
  std::string trace;                  ///< file to write
  std::vector<std::string> load_ops;  ///< shared objects of custom ops, see npu/custom_op.hpp
  bool promote = false;            ///< promote operands of different dtypes rather than refuse them
  std::string precision;           ///< "f32", "bf16", "f16"; empty: the bundle's, else f32
  bool measure_precision = false;  ///< with 16 bits: also run in f32 and report the error
  CacheOptions cache;              ///< for documents; a bundle is already compiled
  ExecutorOptions executor;
  /// What is not started by then is not: no partition is compiled, no run begins.
  std::optional<std::chrono::steady_clock::time_point> deadline;
};

/// Runs a document on its devices: partitioned as it says or, if it has no device tags, placed by
/// cost, and a note in `diagnostics` says how. Collects faults of inputs and weights in
/// `diagnostics`; the result is meaningful only if there are none.
RunReport run_model(Graph& graph, const RunModelOptions& options, Diagnostics& diagnostics);

/// Runs a bundle: nothing is compiled, and its sections are used where they are mapped. One with a
/// template runs the entry with the least predicted time that the inputs fit in, padded; outputs
/// are cut, and comparisons are with the model at the inputs' own sizes. If the blobs hold weights
/// that `verify_device` needs, `weights` has to supply them.
RunReport run_bundle(const Bundle& bundle, const RunModelOptions& options,
                     Diagnostics& diagnostics);

/// The ops that the backends of the target's devices have registered, custom ops included. If
/// `device` is not empty, lists only that device. See format_backend_ops.
std::string list_registered_ops(const RunModelOptions& options, const std::string& device);

}  // namespace npu
