// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "npu/compile/cache.hpp"
#include "npu/compile/compiler.hpp"
#include "npu/compile/fold_constants.hpp"
#include "npu/ir/graph.hpp"
#include "npu/runtime/compile_model.hpp"
#include "npu/support/error.hpp"
#include "npu/tensor/tensor.hpp"
#include "runtime/place_model.hpp"

namespace npu {

/// A document that is placed and has its weights, before any backend compiles it.
struct PreparedCompile {
  PlacedModel placed;
  CompileOptions options;
  std::vector<Tensor> weights;  ///< by TensorId, with what was folded
  FoldedConstants folded;
  bool has_random_weights = false;
};

/// A graph of the same document that was prepared before: weights are read once.
struct PreparedBefore {
  const Graph* graph = nullptr;  ///< null: none
  const PreparedCompile* compile = nullptr;

  /// Null if it has no such weight.
  const Tensor* find(const TensorInfo& weight) const;
};

/// compile_model in two steps, so that several documents can compile together in between. Collects
/// faults; the result is meaningful only if there are none.
PreparedCompile prepare_compile(Graph& graph, const CompileModelOptions& options,
                                CompileCache& cache, Diagnostics& diagnostics,
                                const PreparedBefore& before = {});
CompileModelResult finish_compile(Graph& graph, PreparedCompile prepared,
                                  const CompileModelOptions& options, CompileCache& cache,
                                  KnownPartitions known, Diagnostics& diagnostics);

}  // namespace npu
