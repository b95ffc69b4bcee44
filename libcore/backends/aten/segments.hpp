// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>

namespace npu::aten {

/// Aggregates rows over the edges of each node, which offsets delimit; a node without edges gets 0.
/// `reduce`: sum, mean, amax or softmax, of npu-gnn(5). Throws c10::Error where they do not fit.
at::Tensor segment_reduce(const at::Tensor& self, const at::Tensor& offsets,
                          const c10::optional<at::Tensor>& indices,
                          const c10::optional<at::Tensor>& weights, c10::string_view reduce);

}  // namespace npu::aten
