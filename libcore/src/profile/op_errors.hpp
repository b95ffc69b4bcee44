// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "npu/compile/compiler.hpp"
#include "npu/ir/graph.hpp"
#include "npu/runtime/executor.hpp"
#include "npu/support/error.hpp"
#include "npu/target/target.hpp"
#include "npu/tensor/tensor.hpp"
#include "profile/sample_files.hpp"
#include "quant/tensor_ranges.hpp"

namespace npu {

/// What a model runs with while single ops are quantized.
struct OpErrorRuns {
  const Graph* graph = nullptr;
  const std::vector<Tensor>* weights = nullptr;  ///< by TensorId, folded ones included
  const Target* target = nullptr;
  std::string device;  ///< runs the whole model
  ExecutorOptions execution;
  OpenDevices devices;  ///< that are open already, with these options
  const SampleFiles* samples = nullptr;
  std::int64_t count = 0;  ///< of samples that are used
};

/// The error at the outputs with one op in int8 and all others in float, for each op that can be
/// int8, by ranges of least and greatest numbers; ops that are one kernel count as their first one.
/// `tell` is called with the ops that are done and all of them. Adds a warning, and returns
/// nothing, if the device lacks the nodes that it takes. Cost: a run of the model for each op and
/// sample.
std::vector<OpError> measure_op_errors(const OpErrorRuns& runs, const TensorRanges& ranges,
                                       const std::function<void(std::int64_t, std::int64_t)>& tell,
                                       Diagnostics& diagnostics);

}  // namespace npu
