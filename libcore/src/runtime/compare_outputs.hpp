// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "npu/runtime/run_model.hpp"
#include "npu/runtime/run_report.hpp"
#include "npu/tensor/tensor.hpp"

namespace npu {

/// The tolerances that were asked for; one that is not given depends on the dtype.
struct ToleranceOptions {
  std::optional<double> rtol = {};  ///< default: 1e-3; 2e-2 for 16-bit floats
  std::optional<double> atol = {};  ///< default: 1e-4; 2e-2 for 16-bit floats
  bool is_narrow = false;           ///< computed in 16 bits, whatever the dtype
};

/// True for a precision that computes or keeps float32 tensors in 16 bits: bf16, f16.
bool is_narrow_precision(std::string_view precision);

/// The tolerance of a tensor of this dtype.
Tolerance tolerance_for(DType dtype, const ToleranceOptions& options);

/// Compares every output with `expected`; nothing there means "not in the file". All are as long as
/// `names`.
ComparisonReport compare_outputs(const std::vector<std::string>& names,
                                 const std::vector<Tensor>& outputs,
                                 const std::vector<std::optional<Tensor>>& expected,
                                 const ToleranceOptions& tolerance);

/// The outputs of these names in files. Those of a safetensors file go by name, a single one may
/// have any; a .pb file holds one output: the one that the file is said to be, else the one that it
/// names, else the only one. Throws Error for a file that cannot be read.
std::vector<std::optional<Tensor>> expected_outputs(const std::vector<std::string>& names,
                                                    const std::vector<InputFile>& files);

}  // namespace npu
