// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "npu/ir/graph.hpp"
#include "npu/runtime/run_model.hpp"
#include "npu/support/error.hpp"
#include "npu/tensor/tensor.hpp"

namespace npu {

/// The data of every graph input, in order: from the files, and from `seed` for the others; states
/// stay empty. With `steps` an input may be a stack of that many, in one more dimension, as those
/// from the seed are: of step i from seed + i. Adds an error for every tensor that is missing,
/// unknown or not of the graph's type; the result is meaningful only if there is none. Throws Error
/// for a file that cannot be read.
std::vector<Tensor> gather_inputs(const Graph& graph, const std::vector<InputFile>& files,
                                  std::optional<std::uint64_t> seed, Diagnostics& diagnostics,
                                  std::optional<std::int64_t> steps = {});

/// Writes the outputs of a run: the first one to .npy, or all of them to safetensors. An output
/// that is listed twice is written once.
void write_outputs(const std::vector<std::string>& names, const std::vector<Tensor>& outputs,
                   const std::string& path);

}  // namespace npu
