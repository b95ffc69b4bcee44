// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "npu/compile/cache.hpp"
#include "npu/compile/compiler.hpp"
#include "npu/ir/graph.hpp"
#include "npu/target/target.hpp"

namespace npu {

/// What fold_constants did.
struct FoldedConstants {
  std::string device;        ///< that computed them; empty: there was nothing to compute
  std::int64_t nodes = 0;    ///< folded
  std::int64_t tensors = 0;  ///< that other nodes or the graph's outputs read
  std::int64_t bytes = 0;    ///< of these
  bool cache_hit = false;
  double ms = 0;
  /// The device that was opened for it, by name; none if the cache had the results.
  OpenDevices devices;
};

/// Computes what the graph's folded nodes hand to others, on the device that folds
/// (folding_device), and adds it to `weights`, by TensorId, which must hold the weights that those
/// nodes read. Always in full precision. `cache` may be null; a backend is loaded only for results
/// that are not in it. Throws Error kInvalidGraph for a folded node that depends on more than
/// constants, kUnsupported if the device or its backend does not compute them.
FoldedConstants fold_constants(const Graph& graph, const Target& target,
                               const CompileOptions& options, CompileCache* cache,
                               std::vector<Tensor>& weights);

}  // namespace npu
