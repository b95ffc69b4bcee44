// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "npu/compile/bundle.hpp"
#include "npu/compile/cache.hpp"
#include "npu/ir/graph.hpp"
#include "npu/runtime/executor.hpp"
#include "npu/runtime/run_report.hpp"
#include "npu/runtime/weight_store.hpp"
#include "npu/support/error.hpp"

namespace npu {

/// A file with inputs: safetensors with any number of them, or .npy with one.
struct InputFile {
  std::optional<std::string> input;  ///< of .npy: its input; may be absent if there is only one
  std::string path;
};

/// What npu-run(1) can be asked for.
struct RunModelOptions {
  std::string target;    ///< for documents without `npu.target`; empty: "host"
  WeightSource weights;  ///< an empty file means `npu.weights_file`
  std::vector<InputFile> inputs;
  std::optional<std::uint64_t> random_inputs;
  std::string outputs;         ///< file to write: safetensors, or .npy for a single output
  std::string expect;          ///< safetensors with the expected outputs
  std::string verify_device;   ///< device of the target to run the whole graph on, for comparison
  std::optional<double> rtol;  ///< default: 1e-3; 2e-2 for outputs of 16-bit floats
  std::optional<double> atol;  ///< default: 1e-4; 2e-2 for outputs of 16-bit floats
  std::int64_t bench = 0;      ///< timed runs after the first one
  std::string trace;           ///< file to write
  std::vector<std::string> load_ops;  ///< shared objects of custom ops, see npu/custom_op.hpp
  bool promote = false;   ///< operands of different dtypes are promoted rather than refused
  std::string precision;  ///< "f32" or "bf16"; empty: the bundle's, else f32
  bool measure_precision = false;  ///< with bf16, run in f32, too, and report how far off it is
  CacheOptions cache;              ///< for documents; a bundle is compiled already
  ExecutorOptions executor;
};

/// Runs a document on its devices: partitioned as it says, or, if it has no device tags, whole on
/// the last device of the target. Collects faults of inputs and weights in `diagnostics`; the
/// result is meaningful only if there is none.
RunReport run_model(Graph& graph, const RunModelOptions& options, Diagnostics& diagnostics);

/// Runs a bundle: nothing is compiled, and what it holds is used where it is mapped.
/// `verify_device` needs weights that the blobs may have packed; they come from `weights` then.
RunReport run_bundle(const Bundle& bundle, const RunModelOptions& options,
                     Diagnostics& diagnostics);

/// What the backends of the target's devices have registered, custom ops included; `device` alone
/// if it is not empty. See format_backend_ops.
std::string list_registered_ops(const RunModelOptions& options, const std::string& device);

}  // namespace npu
