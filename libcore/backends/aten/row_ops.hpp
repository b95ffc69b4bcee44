// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>

namespace npu::aten {

/// The rows behind the first `valid` ones: zeros, minus infinity, or copies of the last valid one.
/// Throws c10::Error where they do not fit.
at::Tensor tail(const at::Tensor& self, const at::Tensor& valid, std::int64_t dim,
                c10::string_view fill);

/// Which of `keys` keys each position sees: those below `valid`, up to itself, the last `window`.
at::Tensor length_mask(const c10::optional<at::Tensor>& positions,
                       const c10::optional<at::Tensor>& valid, c10::string_view operands,
                       std::int64_t keys, bool causal, std::int64_t window);

}  // namespace npu::aten
