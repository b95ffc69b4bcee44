// SPDX-License-Identifier: Apache-2.0
// What the options of npu-run(1) mean for devices, compiles and runs.
#include "runtime/run_options.hpp"

#include "device/custom_op_library.hpp"
#include "npu/support/error.hpp"
#include "runtime/compare_outputs.hpp"

namespace npu {

ExecutorOptions executor_options(const RunModelOptions& options) {
  ExecutorOptions result = options.executor;
  for (const std::string& library : options.load_ops) load_custom_ops(library);
  if (!options.load_ops.empty()) result.backend_options["load_ops"] = options.load_ops;
  if (options.promote) result.backend_options["promote"] = true;
  return result;
}

ExecutorOptions reference_options(const RunModelOptions& options) {
  ExecutorOptions result = executor_options(options);
  result.stop = nullptr;
  result.in_flight = 1;
  return result;
}

CompileOptions compile_options(const RunModelOptions& options) {
  const ExecutorOptions devices = executor_options(options);
  CompileOptions compile;
  compile.precision = options.precision;
  compile.threads = devices.threads;
  compile.backend_options = devices.backend_options;
  compile.control.deadline = options.deadline;
  return compile;
}

bool measures_precision(const RunModelOptions& options) {
  return options.measure_precision && is_narrow_precision(options.precision);
}

void check_options(const RunModelOptions& options, std::size_t outputs, const Target& target) {
  if (!options.verify_device.empty() && target.find_device(options.verify_device) == nullptr) {
    throw Error(ErrorCode::kUsage, "--verify " + options.verify_device + ": target '" +
                                       target.name + "' has no such device");
  }
  const bool holds_one = options.outputs.ends_with(".npy") || options.outputs.ends_with(".pb");
  if (holds_one && outputs != 1) {
    throw Error(ErrorCode::kUsage, "--outputs " + options.outputs +
                                       ": such a file holds one tensor, the graph has " +
                                       std::to_string(outputs) + " outputs; use .safetensors");
  }
}

}  // namespace npu
