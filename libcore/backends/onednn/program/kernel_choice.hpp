// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace npu::onednn {

/// Why a step's kernel was taken, for the report.
struct KernelChoice {
  struct Rejected {
    std::string kernel;
    std::string reason;
  };
  std::optional<double> cycles;  ///< by the estimate of the kernel that was taken
  std::vector<Rejected> rejected;
  /// The rounding error to expect, root mean square, in units of 2^-24 of the results; set for
  /// kernels that round more than the definition does.
  std::optional<double> rounding{};
  /// By that of oneDNN's primitive, which computes by the definition, in float32.
  std::optional<double> primitive_cycles{};
};

}  // namespace npu::onednn
