// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace npu::onednn {

/// GELU by the error function (absolute error of erf below 2e-7) on float32 values, in place if
/// `target` is `source`.
void run_gelu(const float* source, float* target, std::int64_t count);

}  // namespace npu::onednn
