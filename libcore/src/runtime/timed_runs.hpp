// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "npu/runtime/executor.hpp"
#include "npu/runtime/run_model.hpp"
#include "npu/tensor/tensor.hpp"

namespace npu {

/// One run, and those of --bench or --in-flight.
struct Runs {
  std::vector<Tensor> outputs;  ///< of the first run
  RunRecord first;
  RunRecord last;
  std::vector<double> times;  ///< of all but the first, in milliseconds
  double seconds = 0;         ///< that those took together
  bool is_same = true;        ///< all gave the bits of the first
  bool is_cut_short = false;  ///< by the deadline
  bool is_late = false;       ///< the last one has ended after it
  bool is_recovered = false;  ///< a device was lost, and all were made again
};

/// Makes all runs that the options ask for. Throws Error kInfeasible if the deadline is over before
/// the first one.
Runs run_all(Executor& executor, const std::vector<Tensor>& inputs, const RunModelOptions& options);

}  // namespace npu
