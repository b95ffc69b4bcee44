// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "npu/runtime/run_model.hpp"
#include "npu/tensor/tensor.hpp"
#include "runtime/generate/step_model.hpp"

namespace npu {

/// The sources of requests in files of tensors: one for a tensor with the dimensions of the input,
/// and as many as the first dimension says for one with one more in front. Throws Error kUsage for
/// a file without the input or a second one for it, kInvalidGraph for another dtype or number of
/// dimensions, and what reading a file throws.
std::vector<Tensor> read_sources(const std::vector<InputFile>& files, const SourceInput& input);

/// A list of ids as a source: int64 [1, S].
Tensor source_of_ids(const std::vector<std::int64_t>& ids);

}  // namespace npu
