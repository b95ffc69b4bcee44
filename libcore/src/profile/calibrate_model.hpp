// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "npu/device/blob.hpp"
#include "npu/ir/graph.hpp"
#include "npu/runtime/run_model.hpp"
#include "npu/runtime/weight_store.hpp"
#include "npu/support/error.hpp"
#include "npu/support/progress.hpp"
#include "npu/tensor/tensor.hpp"
#include "profile/product_ranges.hpp"
#include "quant/tensor_ranges.hpp"

namespace npu {

/// The options of npu-profile --calibrate.
struct CalibrateOptions {
  std::vector<InputFile> samples;
  std::vector<NamedTensor> states = {};  ///< samples of states, see SampleFiles
  WeightFactors factors = {};            ///< of weights that have some already
  std::string target;                    ///< in place of the document's; empty: that, or "host"
  WeightSource weights;                  ///< an empty file means `npu.weights_file`
  std::int32_t threads = 0;
  std::int64_t error_samples = 4;  ///< on which each op is run in int8 alone; 0: none
  /// Called for each sample with how many there are and the outputs of the graph, and perhaps more
  /// behind them.
  std::function<void(std::int64_t samples, const std::vector<Tensor>& outputs)> outputs = {};
};

/// Runs a model on samples, on the last device of its target that runs all of it, and records what
/// its tensors of floating-point numbers held: graph inputs and results of nodes. Memory does not
/// depend on the number of samples. Then runs it on some of them with one op at a time in int8.
/// `progress` is called for each sample; if it returns false, Error kIo is thrown. Collects faults
/// of samples and weights in `diagnostics`; the result is meaningful only if there are none. Throws
/// Error kUnsupported if no device runs the whole model.
TensorRanges calibrate_model(const Graph& graph, const CalibrateOptions& options,
                             const ProgressCallback& progress, Diagnostics& diagnostics);

/// A table for people: each tensor with its extremes and the range by each method.
std::string format_tensor_ranges(const TensorRanges& ranges);

}  // namespace npu
