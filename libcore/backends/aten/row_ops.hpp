// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>

namespace npu::aten {

/// Which of `keys` keys each position sees: those below `valid`, up to itself, the last `window`.
at::Tensor length_mask(const c10::optional<at::Tensor>& positions,
                       const c10::optional<at::Tensor>& valid, c10::string_view operands,
                       std::int64_t keys, bool causal, std::int64_t window);

}  // namespace npu::aten
