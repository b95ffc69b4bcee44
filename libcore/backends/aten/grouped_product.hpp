// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

namespace npu::aten {

/// aten::_grouped_mm of PyTorch 2.
at::Tensor grouped_mm(const at::Tensor& self, const at::Tensor& mat2,
                      const c10::optional<at::Tensor>& offs, const c10::optional<at::Tensor>& bias,
                      c10::optional<at::ScalarType> out_dtype);
/// transformers::grouped_mm_fallback.
at::Tensor grouped_mm_fallback(const at::Tensor& self, const at::Tensor& mat2,
                               const at::Tensor& offs);

}  // namespace npu::aten
