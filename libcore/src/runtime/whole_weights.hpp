// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "npu/compile/bundle.hpp"
#include "npu/ir/graph.hpp"
#include "npu/runtime/weight_store.hpp"
#include "npu/support/error.hpp"
#include "npu/tensor/tensor.hpp"

namespace npu {

/// Every weight of a graph that a bundle was made of, by TensorId: those of an entry, or, if it
/// lacks one, all from the source that was given or from the seed that the bundle names. Throws
/// what load_weights throws.
std::vector<Tensor> whole_weights(const Bundle& bundle, const Graph& graph,
                                  const WeightSource& given, Diagnostics& diagnostics,
                                  std::size_t entry = 0);

}  // namespace npu
