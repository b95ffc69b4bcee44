// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "npu/ir/graph.hpp"
#include "npu/tensor/safetensors.hpp"

namespace npu {

/// Where the data of a graph's weights comes from.
struct WeightSource {
  std::string file;  ///< safetensors, or a model that a frontend reads; empty: none
  std::optional<std::uint64_t> random_seed;  ///< for weights that no file has
};

/// Resolves `npu.weights_file` against the folder of the document that names it (the working
/// directory for stdin). Empty if the document names none.
std::string weights_file_of(const Graph& graph);

/// Rewrites a relative `npu.weights_file`, and the path in `npu.weights_map`, so that a reader of
/// the document at `output` can resolve it (empty: stdout, whose reader resolves it against the
/// working directory).
void rebase_weights_file(Graph& graph, const std::string& output);

/// Data for every weight that a node or a graph output reads, by TensorId (others stay empty, and
/// so do results of folded nodes, which fold_constants computes). A lifted constant takes its data
/// from `constants` unless the file has it; what neither the file nor a seed gives is looked up in
/// `npu.weights_map`. Collects one error per weight that is missing or differs in dtype or shape
/// from the graph's declaration.
///
/// `loaded` has data of weights that were loaded before, of another graph of the same document;
/// null for others. Constants are not asked for.
std::vector<Tensor> load_weights(
    const Graph& graph, const WeightSource& source, Diagnostics& diagnostics,
    const std::function<const Tensor*(const TensorInfo&)>& loaded = nullptr);

/// The data of a lifted constant in the document's `constants`, converted to its dtype.
/// Throws Error kInvalidGraph if a value does not fit.
Tensor constant_tensor(const Graph& graph, const TensorInfo& tensor);

}  // namespace npu
